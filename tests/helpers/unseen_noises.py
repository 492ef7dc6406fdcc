"""A second catalogue of noises, by someone who did not write the statistics that it judges.

All were written down, with their bounds, before any was simulated, and are not tuned. Beside what
:mod:`tests.helpers.noises` can say, the level of a trial may depend on its cell **and** its time (a
step in one cell), or on the trial before it (warm caches).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from concurve.store.rows import TrialKey
from tests.helpers.noises import (
    Floats,
    Shape,
    alternating,
    drift,
    log_normal,
    several_levels,
    spaced,
)

Levels = Callable[[np.random.Generator, int, int], Floats]
"""Generator, number of trials and of cells → the level of each cell at the time of each trial."""

Group = Literal["kind", "hard", "hopeless"]


class Unseen(NamedTuple):
    """What a trial's time is multiplied by: a draw of its cell's ``own`` noise, the ``levels`` of
    the cell at that time, and ``warm`` where the trial before it was of the same cell.

    ``group``: which bounds hold; *hopeless* noise is confounded with the cells by its nature, so no
    analysis of a run can see it. ``tick``: the resolution of the clock, ``digits``: how it prints.
    ``moves``: the ratio of two cells truly changes in the run's time; its truth is then the ratio
    of their centres over that time, and to tell them apart is right.
    """

    name: str
    group: Group
    own: Shape
    levels: Levels | None = None
    warm: float = 1.0
    tick: float = 0.0
    digits: int = 9
    mixed: bool = False
    moves: bool = False


class World:
    """The noise of one run: a trial's factor by its number and its key, in the order of time."""

    def __init__(self, noise: Unseen, rng: np.random.Generator, trials: int, cells: int) -> None:
        median, self._quantiles = spaced(noise.own, cells)
        self._noise = noise
        self._own = noise.own(rng, trials, cells) / median
        self._levels = np.ones((trials, cells))
        if noise.levels is not None:
            self._levels = noise.levels(rng, trials, cells)
        self._cells: list[int] = []

    def factor(self, number: int, key: TrialKey) -> float:
        """What the time of a trial is multiplied by; to be asked in the order of time."""
        is_warm = bool(self._cells) and self._cells[-1] == key.cell
        self._cells.append(key.cell)
        carried = self._noise.warm if is_warm else 1.0
        return float(self._own[number, key.cell] * self._levels[number, key.cell]) * carried

    def centre(self, cell: int) -> float:
        """The true centre of a cell: the median of its factor over the time of the run."""
        if self._noise.levels is None and self._noise.warm == 1:
            # Its own noise is divided by its median; of two levels in equal shares, the middle of
            # their gap, of which its quantiles know an edge.
            return 1.0
        systematic = self._levels[: len(self._cells), cell]
        if self._noise.warm != 1:
            systematic = np.array(
                [
                    self._noise.warm if place and self._cells[place - 1] == cell else 1.0
                    for place, own in enumerate(self._cells)
                    if own == cell
                ]
            )
        return float(np.median(np.outer(systematic, self._quantiles[:, cell])))

    def read(self, seconds: float) -> float:
        """The clock's reading of a time."""
        tick = self._noise.tick
        if not tick:
            return seconds
        return round(round(seconds / tick) * tick, self._noise.digits)


def uniform(half: float) -> Shape:
    """As likely anywhere between two bounds: a program that waits for a periodic event."""
    return lambda rng, trials, cells: 1 + half * rng.uniform(-1, 1, (trials, cells))


def pareto(part: float, index: float) -> Shape:
    """A part of the time has a Pareto tail."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        return 1 - part + part * rng.uniform(0, 1, (trials, cells)) ** (-1 / index)

    return shape


def heavy_by_cell(low: float, high: float, df: float) -> Shape:
    """Student's t with few degrees of freedom, and a spread of its own for each cell."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        drawn = rng.standard_t(df, (trials, cells)) * np.geomspace(low, high, cells)
        return np.exp(np.clip(drawn, -2, 2))

    return shape


def shared(common: Callable[[np.random.Generator, int], Floats]) -> Levels:
    """A level in time that all cells share."""
    return lambda rng, trials, cells: np.repeat(common(rng, trials)[:, None], cells, axis=1)


def decay(amount: float, time: float) -> Callable[[np.random.Generator, int], Floats]:
    """A machine that begins cool and fast, and slows down as it becomes hot."""
    return lambda _, trials: 1 - amount * np.exp(-np.arange(trials) / time)


def season(spread: float, period: float, damping: float) -> Callable[
    [np.random.Generator, int], Floats
]:  # fmt: skip
    """Second-order autoregression: a season of about this period, whose phase wanders."""

    def common(rng: np.random.Generator, trials: int) -> Floats:
        first, second = 2 * damping * math.cos(2 * math.pi / period), -(damping**2)
        steps = rng.normal(0, 1, trials + 200)
        level = np.zeros(trials + 200)
        for place in range(2, len(level)):
            level[place] = first * level[place - 1] + second * level[place - 2] + steps[place]
        level *= spread / level.std()
        return np.exp(level[200:])

    return common


def cron(every: int, factor: float) -> Callable[[np.random.Generator, int], Floats]:
    """Another program runs at each so-manieth trial."""

    def common(rng: np.random.Generator, trials: int) -> Floats:
        begun = int(rng.integers(every))
        return np.where((np.arange(trials) + begun) % every == 0, factor, 1.0)

    return common


def chain(
    rng: np.random.Generator, trials: int, enter: float, leave: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """A two-state Markov chain in its stationary state: is it in the second state?"""
    states = np.empty(trials, dtype=bool)
    state = rng.random() < enter / (enter + leave)
    for place, drawn in enumerate(rng.random(trials)):
        state = bool(drawn >= leave) if state else bool(drawn < enter)
        states[place] = state
    return states


def bursts(enter: float, leave: float, factor: float) -> Callable[
    [np.random.Generator, int], Floats
]:  # fmt: skip
    """Slow trials come in bursts, whatever their cell."""
    return lambda rng, trials: np.where(chain(rng, trials, enter, leave), factor, 1.0)


def sticky(stay: float, factor: float) -> Levels:
    """Each cell has a state of its own, slow or fast in equal shares, that lasts for some time."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        columns = [chain(rng, trials, 1 - stay, 1 - stay) for _ in range(cells)]
        return np.where(np.stack(columns, axis=1), factor, 1.0)

    return levels


def own_drift(spread: float, rho: float) -> Levels:
    """Each cell drifts for itself: its files, its caches, its tables."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        return np.stack([drift(spread, rho)(rng, trials) for _ in range(cells)], axis=1)

    return levels


def drawn_once(factor: float) -> Levels:
    """Each cell draws one of two levels, and keeps it for the whole run (page colours, layout)."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        return np.tile(np.where(rng.random(cells) < 0.5, factor, 1.0), (trials, 1))

    return levels


def step_in_one(factor: float) -> Levels:
    """From some trial on, between the 8th and the 20th, the last cell alone is slower."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        found = np.ones((trials, cells))
        found[int(rng.integers(8, 20)) :, -1] = factor
        return found

    return levels


def warm_up(amount: float, blocks: float) -> Levels:
    """Each trial is faster than those before it, less and less, over some blocks."""
    return lambda _, trials, cells: np.repeat(
        1 + amount * np.exp(-np.arange(trials) / (blocks * cells))[:, None], cells, axis=1
    )


def within_blocks(spread: float, rho: float) -> Levels:
    """Each block has a level, and within it the trials depend on the one before."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        found = np.empty(trials)
        for first in range(0, trials, cells):
            part = found[first : first + cells]
            part[:] = drift(spread, rho)(rng, cells)[: len(part)]
        return np.repeat(found[:, None], cells, axis=1)

    return levels


def hot_cells(spread: float, rho: float) -> Levels:
    """The machine drifts, and all cells but the first follow it: they use more of it."""

    def levels(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        found = np.repeat(drift(spread, rho)(rng, trials)[:, None], cells, axis=1)
        found[:, 0] = 1
        return found

    return levels


UNSEEN: tuple[Unseen, ...] = (
    Unseen("log-normal 10 %", "kind", log_normal(0.10)),
    Unseen("uniform, ±8 %", "kind", uniform(0.08)),
    Unseen("heat: 10 % slower in the end", "kind", log_normal(0.015), shared(decay(0.10, 25))),
    Unseen("season of 11 trials, AR(2) 4 %", "kind", log_normal(0.01),
           shared(season(0.04, 11, 0.97))),
    Unseen("AR .6 within a block, 4 %", "kind", log_normal(0.02), within_blocks(0.04, 0.6)),
    Unseen("clock of 1/64 s in ms", "kind", log_normal(0.01), tick=1 / 64, digits=3),
    Unseen("three levels 60/30/10, far apart", "hard",
           several_levels((1.3, (0.3,)), (2.0, (0.1,)), spread=0.004)),
    Unseen("a mode a process, 70/30 +40 %", "hard", several_levels((1.4, (0.3,)), spread=0.01)),
    Unseen("modes that last, 50/50 +12 %", "hard", log_normal(0.01), sticky(0.85, 1.12)),
    Unseen("each cell drifts alone, 3 %", "hard", log_normal(0.01), own_drift(0.03, 0.85)),
    Unseen("all but the base drift, 3 %", "hard", log_normal(0.01), hot_cells(0.03, 0.85)),
    Unseen("cron each 7th trial, +30 %", "hard", log_normal(0.02), shared(cron(7, 1.3))),
    Unseen("bursts of 4 trials, +50 %", "hard", log_normal(0.02), shared(bursts(0.03, 0.25, 1.5))),
    Unseen("t(2.5), 1 to 6 % by cell", "hard", heavy_by_cell(0.01, 0.06, 2.5), mixed=True),
    Unseen("Pareto tail 2.2", "hard", pareto(0.2, 2.2)),
    Unseen("Pareto tail beside normal", "hard", alternating(log_normal(0.02), pareto(0.2, 2.2)),
           mixed=True),
    Unseen("a step of 10 % in one cell", "hard", log_normal(0.02), step_in_one(1.10), moves=True),
    Unseen("two levels on a 50 ms clock", "hard", several_levels((1.15, (0.2,)), spread=0.01),
           tick=0.05),
    Unseen("8 % faster after itself", "hard", log_normal(0.02), warm=0.92),
    Unseen("1 in 10 ends early, × .55", "hard", several_levels((0.55, (0.1,)), spread=0.02)),
    Unseen("warms up over 3 blocks, +25 %", "hard", log_normal(0.02), warm_up(0.25, 3)),
    Unseen("a level for each cell, 6 %", "hopeless", log_normal(0.01), drawn_once(1.06)),
)  # fmt: skip


def by_name(name: str) -> Unseen:
    """A noise by its name.

    Raises:
        KeyError: there is none.
    """
    for noise in UNSEEN:
        if noise.name == name:
            return noise
    raise KeyError(name)
