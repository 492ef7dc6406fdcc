"""A third catalogue of noises: those of machines that others use too.

It was written down as a whole, with its bounds, and stored before any of it was simulated; nothing
was tuned before. Groups and worlds are those of :mod:`tests.helpers.unseen_noises`. Beside what
stands there: interference whose period has nothing to do with trials or blocks, ramps that reset,
levels drawn anew by each process, tails of several weights, spreads and shares that change in time,
and dependence in one cell alone.
"""

from __future__ import annotations

import math

import numpy as np

from tests.helpers.noises import Common, Floats, Shape, alternating, log_normal, several_levels
from tests.helpers.unseen_noises import Levels, Unseen, shared


def times(*shapes: Shape) -> Shape:
    """Independent factors together."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        found = np.ones((trials, cells))
        for own in shapes:
            found *= own(rng, trials, cells)
        return found

    return shape


def gamma_tail(mean: float, order: float) -> Shape:
    """Longer by a gamma distributed part; the lower its order, the heavier its tail."""
    return lambda rng, trials, cells: 1 + rng.gamma(order, mean / order, (trials, cells))


def weibull_tail(scale: float, order: float) -> Shape:
    """Longer by a Weibull distributed part."""
    return lambda rng, trials, cells: 1 + scale * rng.weibull(order, (trials, cells))


def boosted(share: float, most: float) -> Shape:
    """A share of the trials is faster, by up to so much: a clock that sometimes boosts."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        is_fast = rng.random((trials, cells)) < share
        return 1 - is_fast * rng.uniform(0.2 * most, most, (trials, cells))

    return shape


def left_tail(mean: float) -> Shape:
    """Skewed to the left: most trials near the greatest time, some well below it."""
    return lambda rng, trials, cells: 1 / (1 + rng.exponential(mean, (trials, cells)))


def poisson(count: float) -> Shape:
    """The time of a Poisson distributed number of equal steps: twice as many on the average in the
    first cell, which takes twice as long."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        means = np.where(np.arange(cells) == 0, 2 * count, count)
        drawn: Floats = np.maximum(rng.poisson(means, (trials, cells)), 1) / means
        return drawn

    return shape


def added(part: float) -> Shape:
    """An exponentially distributed time is added, the same in seconds in all cells: half as large a
    part of the first cell's, which takes twice as long."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        parts = np.where(np.arange(cells) == 0, part / 2, part)
        return 1 + parts * rng.exponential(1, (trials, cells))

    return shape


def two_spreads(first: float, then: float, blocks: int) -> Shape:
    """The spread changes after so many blocks."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        spread = np.where(np.arange(trials) < blocks * cells, first, then)
        return np.exp(rng.normal(0, 1, (trials, cells)) * spread[:, None])

    return shape


def beat(period: float, duty: float, factor: float) -> Common:
    """Another program runs for a part of each period, which is no whole number of trials."""

    def common(rng: np.random.Generator, trials: int) -> Floats:
        phase = (np.arange(trials) + rng.uniform(0, period)) / period % 1
        return np.where(phase < duty, factor, 1.0)

    return common


def near_block(blocks: float, duty: float, factor: float) -> Levels:
    """The period is a little longer than a block: it meets the same place of many blocks."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        return shared(beat(blocks * cells, duty, factor))(rng, trials, cells)

    return levels


def ramps(amount: float, least: int, most: int) -> Common:
    """Slower and slower as it becomes hot, until the machine has cooled down at once."""

    def common(rng: np.random.Generator, trials: int) -> Floats:
        found: list[float] = []
        while len(found) < trials + most:
            found += np.linspace(1, 1 + amount, int(rng.integers(least, most + 1))).tolist()
        begun = int(rng.integers(most))
        return np.array(found[begun : begun + trials])

    return common


def sawtooth(amount: float, blocks: int) -> Levels:
    """What each cell keeps grows for some blocks, and is collected: each cell in its own phase."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        block = np.arange(trials)[:, None] // cells
        phase = rng.integers(blocks, size=cells)[None, :]
        return 1 + amount * ((block + phase) % blocks) / blocks

    return levels


def growing_share(first: float, apart: float, by_block: float, factor: float) -> Levels:
    """The share of slow trials is larger from cell to cell, and grows from block to block."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        block = np.arange(trials)[:, None] // cells
        share = first + apart * np.arange(cells)[None, :] / max(1, cells - 1) + by_block * block
        is_slow = rng.random((trials, cells)) < np.minimum(share, 0.42)
        return np.where(is_slow, factor, 1.0)

    return levels


def spells(share: float, least: int, most: int, factors: tuple[float, float]) -> Common:
    """Spells of some trials, each as slow as it happens to be, in about this share of the time."""

    def common(rng: np.random.Generator, trials: int) -> Floats:
        found = np.ones(trials)
        at = -int(rng.integers(most))
        while at < trials:
            length = int(rng.integers(least, most + 1))
            found[max(0, at) : max(0, at + length)] = rng.uniform(*factors)
            at += length + int(rng.geometric(2 * share / ((1 - share) * (least + most))))
        return found

    return common


def stays(index: float, factor: float) -> Common:
    """A neighbour comes and goes; how long it stays has a heavy tail."""

    def common(rng: np.random.Generator, trials: int) -> Floats:
        found, is_here = np.ones(trials), rng.random() < 0.5
        at = 0
        while at < trials:
            length = max(1, int(3 * rng.random() ** (-1 / index)))
            found[at : at + length] = factor if is_here else 1.0
            at, is_here = at + length, not is_here
        return found

    return common


def own_in_last(spread: float, rho: float) -> Levels:
    """The last cell alone has a level that depends on that in the block before."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        blocks = trials // cells + 1
        steps = rng.normal(0, spread, blocks)
        steps[1:] *= math.sqrt(1 - rho**2)
        level = np.empty(blocks)
        last = 0.0
        for place, step in enumerate(steps):
            last = rho * last + step
            level[place] = last
        found = np.ones((trials, cells))
        found[:, -1] = np.exp(np.repeat(level, cells)[:trials])
        return found

    return levels


def growing_last(by_block: float) -> Levels:
    """The last cell alone becomes slower: its files grow."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        found = np.ones((trials, cells))
        found[:, -1] += by_block * (np.arange(trials) // cells)
        return found

    return levels


SHARED: tuple[Unseen, ...] = (
    Unseen("beat of 8.6 trials, 30 % of it +20 %", "hard", log_normal(0.02),
           shared(beat(8.6, 0.3, 1.2))),
    Unseen("beat of 1.05 blocks, 40 % of it +15 %", "hard", log_normal(0.02),
           near_block(1.05, 0.4, 1.15)),
    Unseen("heat ramps of 12 to 22 trials, 12 %", "kind", log_normal(0.015),
           shared(ramps(0.12, 12, 22))),
    Unseen("each cell collects after 6 blocks, 15 %", "hard", log_normal(0.01), sawtooth(0.15, 6)),
    Unseen("gamma tail of 12 %, order 1/2", "hard", times(log_normal(0.01), gamma_tail(0.12, 0.5))),
    Unseen("Weibull tail of 5 %, order .6", "hard",
           times(log_normal(0.01), weibull_tail(0.05, 0.6))),
    Unseen("exponential tail of 10 % beside normal 4 %", "hard",
           alternating(log_normal(0.04), times(log_normal(0.01), gamma_tail(0.10, 1.0))),
           mixed=True),
    Unseen("a slow share of 5 to 20 %, that grows", "hard", log_normal(0.02),
           growing_share(0.05, 0.15, 0.006, 1.25), mixed=True, moves=True),
    Unseen("a layout a process, 6 levels", "hard",
           several_levels((1.03, (0.2,)), (1.05, (0.2,)), (1.09, (0.15,)), (1.14, (0.12,)),
                          (1.2, (0.08,)), spread=0.004)),
    Unseen("a layout a process, 4 levels", "hard",
           several_levels((1.04, (0.25,)), (1.10, (0.25,)), (1.18, (0.25,)), spread=0.006)),
    Unseen("3 % of the trials at + 80 %", "hard", several_levels((1.8, (0.03,)), spread=0.015)),
    Unseen("spells of 3 to 10 trials, +10 to 60 %", "hard", log_normal(0.02),
           shared(spells(0.2, 3, 10, (1.1, 1.6)))),
    Unseen("2 %, and an added time, clock of 10 ms", "kind", times(log_normal(0.02), added(0.02)),
           tick=0.01, digits=2, mixed=True),
    Unseen("0.5 %, from block 12 on 5 %", "kind", two_spreads(0.005, 0.05, 12)),
    Unseen("5 %, from block 8 on 0.5 %", "kind", two_spreads(0.05, 0.005, 8)),
    Unseen("the last cell remembers, .7 a block, 4 %", "hard", log_normal(0.015),
           own_in_last(0.04, 0.7)),
    Unseen("15 % of the trials boosted by 3 to 15 %", "hard",
           times(log_normal(0.01), boosted(0.15, 0.15))),
    Unseen("tail to the left, 6 %", "hard", times(log_normal(0.005), left_tail(0.06))),
    Unseen("Poisson steps, 200 and 400", "kind", poisson(200), tick=1 / 200, digits=3, mixed=True),
    Unseen("Poisson steps, 40 and 80", "kind", poisson(40), tick=1 / 40, digits=3, mixed=True),
    Unseen("a neighbour that stays, Pareto 1.3, +10 %", "hard", log_normal(0.015),
           shared(stays(1.3, 1.10))),
    Unseen("the last cell grows by 0.5 % a block", "hard", log_normal(0.02), growing_last(0.005),
           moves=True),
)  # fmt: skip
