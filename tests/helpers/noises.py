"""Noises of real machines and programs, as factors on the time of a trial: one catalogue for tests
and benches.

They were written down before the code that they judge was tuned, and are not tuned to it. A noise
is drawn for all trials of a run at once: one row a trial in the order of time, one column a cell.
So a trial's factor depends on when it runs, and on its cell, and on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Shape = Callable[[np.random.Generator, int, int], Floats]
"""Generator, number of trials, number of cells → the factors of each cell's own noise."""

Common = Callable[[np.random.Generator, int], Floats]
"""Generator, number of trials → factors that all cells share, by the time of the trial."""

Group = Literal["even", "rough"]

#: Draws of each cell from which its true median is computed: its error is 0.2 % of the spread.
_DRAWS = 1 << 19

_QUANTILES = 101


class Noise(NamedTuple):
    """What a trial's time is multiplied by, and how a clock reads it.

    ``group``: which bounds hold (*even* noises have the stricter ones). ``block_spread``: the
    standard deviation of a level, on the logarithm, that all cells of a block share and that each
    block draws anew; beside it, ``own`` must be log-normal. ``tick``: the resolution
    of the clock in seconds; ``reads``: how it reads a time: ``nearest`` tick, or ``ticks`` that
    pass between two instants. ``mixed``: its cells differ in the shape of their noise.
    ``lopsided``: the median of few trials jumps between levels, to one side more than to the other;
    then not the mean of the figures is near the truth, but their median.
    """

    name: str
    group: Group
    own: Shape
    common: Common | None = None
    block_spread: float = 0.0
    tick: float = 0.0
    reads: Literal["nearest", "ticks"] = "nearest"
    mixed: bool = False
    lopsided: bool = False


class Path(NamedTuple):
    """The factors of one run: those of each cell, divided by their median, and the common ones;
    and evenly spaced quantiles of each cell's own factors."""

    own: Floats
    common: Floats | None
    quantiles: Floats

    def factor(self, trial: int, cell: int) -> float:
        """What the time of a trial is multiplied by."""
        shared = 1.0 if self.common is None else float(self.common[trial])
        return float(self.own[trial, cell]) * shared

    def centre(self, trials: int, cell: int) -> float:
        """The true centre of a cell: the median of its factor, over the time of the run."""
        if self.common is None:
            return 1.0
        return float(np.median(np.outer(self.common[:trials], self.quantiles[:, cell])))


def draw(noise: Noise, rng: np.random.Generator, trials: int, cells: int) -> Path:
    """The noise of one run of at most so many trials."""
    median, quantiles = spaced(noise.own, cells)
    common = None if noise.common is None else noise.common(rng, trials)
    own = noise.own(rng, trials, cells) / median
    if noise.block_spread:
        levels = np.exp(rng.normal(0, noise.block_spread, trials // cells + 1))
        own *= np.repeat(levels, cells)[:trials, None]
    return Path(own, common, quantiles)


def read(noise: Noise, seconds: float, rng: np.random.Generator) -> float:
    """The clock's reading of a time."""
    if not noise.tick:
        return seconds
    begun = float(rng.random()) if noise.reads == "ticks" else 0.5
    return math.floor(begun + seconds / noise.tick) * noise.tick


@lru_cache(maxsize=256)
def spaced(own: Shape, cells: int) -> tuple[Floats, Floats]:
    """The median of each cell's own noise, and evenly spaced quantiles over it.

    Half of the trials may lie at either side of a gap: so the median is taken as the middle of the
    quantiles 0.48 and 0.52.
    """
    rng = np.random.default_rng(1)
    drawn = np.concatenate([own(rng, _DRAWS // 8, cells) for _ in range(8)])
    evenly = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    low, high, *spaced = np.quantile(drawn, (0.48, 0.52, *evenly), axis=0)
    median = np.sqrt(low * high)
    return median, np.array(spaced) / median


def log_normal(spread: float) -> Shape:
    """One spread."""
    return lambda rng, trials, cells: np.exp(rng.normal(0, spread, (trials, cells)))


def unequal_spreads(low: float, high: float) -> Shape:
    """Each cell has its own spread."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        spread = np.geomspace(low, high, cells)
        return np.exp(rng.normal(0, 1, (trials, cells)) * spread)

    return shape


def slow_trials(shares: tuple[float, ...], mean: float = 0.5, spread: float = 0.02) -> Shape:
    """A share of the trials is slower by an exponentially distributed part; the shares are those
    of the cells in turn."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        share = np.resize(shares, cells)
        is_slow = rng.random((trials, cells)) < share
        return np.exp(rng.normal(0, spread, (trials, cells))) * (
            1 + is_slow * rng.exponential(mean, (trials, cells))
        )

    return shape


def several_levels(*levels: tuple[float, tuple[float, ...]], spread: float = 0.01) -> Shape:
    """Each trial runs at one of several levels: a factor, and its shares in the cells in turn; the
    rest runs at 1."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        place = rng.random((trials, cells))
        factor = np.ones((trials, cells))
        used = np.zeros(cells)
        for value, shares in levels:
            share = np.resize(shares, cells)
            factor[(place >= used) & (place < used + share)] = value
            used = used + share
        return factor * np.exp(rng.normal(0, spread, (trials, cells)))

    return shape


def log_student(spread: float, df: float) -> Shape:
    """Heavy tails at both sides."""
    return lambda rng, trials, cells: np.exp(spread * rng.standard_t(df, (trials, cells)))


def gamma(spread: float) -> Shape:
    """A little skewed."""
    order = spread**-2
    return lambda rng, trials, cells: rng.gamma(order, 1 / order, (trials, cells))


def alternating(*shapes: Shape) -> Shape:
    """The shapes of the cells in turn."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        drawn = [own(rng, trials, cells) for own in shapes]
        return np.stack([drawn[cell % len(drawn)][:, cell] for cell in range(cells)], axis=1)

    return shape


def drift(spread: float, rho: float) -> Common:
    """First-order autoregression over the trials, begun in its stationary state."""

    def common(rng: np.random.Generator, trials: int) -> Floats:
        steps = rng.normal(0, spread * math.sqrt(1 - rho**2), trials)
        steps[0] = rng.normal(0, spread)
        level = np.empty(trials)
        last = 0.0
        for index, step in enumerate(steps):
            last = rho * last + step
            level[index] = last
        return np.exp(level)

    return common


def step(after: int, factor: float) -> Common:
    """All trials after so many take longer."""
    return lambda _, trials: np.where(np.arange(trials) < after, 1.0, factor)


def periodic(every: int, factor: float) -> Common:
    """Every so many trials one takes longer."""

    def common(rng: np.random.Generator, trials: int) -> Floats:
        phase = int(rng.integers(every))
        return np.where(np.arange(trials) % every == phase, factor, 1.0)

    return common


def cold_start(factor: float, spread: float) -> Shape:
    """The first trial of each cell is slower."""

    def shape(rng: np.random.Generator, trials: int, cells: int) -> Floats:
        drawn = np.exp(rng.normal(0, spread, (trials, cells)))
        drawn[:cells] *= factor
        return drawn

    return shape


NOISES: tuple[Noise, ...] = (
    Noise("log-normal 3 %", "even", log_normal(0.03)),
    Noise("spreads of 1 to 10 %", "even", unequal_spreads(0.01, 0.10)),
    Noise("drift alone", "even", log_normal(0.005), drift(0.03, 0.95)),
    Noise("drift, spread of 2 %", "even", log_normal(0.02), drift(0.03, 0.95)),
    Noise("drift, spreads of 1 to 5 %", "even", unequal_spreads(0.01, 0.05), drift(0.03, 0.95)),
    Noise("blocks of 5 %, spread of 1 %", "even", log_normal(0.01), block_spread=0.05),
    Noise("3 %, clock of 10 ms", "even", log_normal(0.03), tick=0.01),
    Noise("3 %, clock of 50 ms", "even", log_normal(0.03), tick=0.05),
    Noise("0.2 %, clock of 10 ms", "even", log_normal(0.002), tick=0.01, reads="ticks"),
    Noise("1 in 10 slow, +Exp(.5)", "rough", slow_trials((0.1,))),
    Noise("two levels 80/20", "rough", several_levels((1.15, (0.2,)), spread=0.003)),
    Noise("two levels 80/20, wide", "rough", several_levels((1.15, (0.2,)), spread=0.02)),
    Noise("two levels 50/50", "rough", several_levels((1.15, (0.5,)), spread=0.003)),
    Noise("two levels 50/50, wide", "rough", several_levels((1.15, (0.5,)), spread=0.02)),
    Noise("step", "rough", log_normal(0.02), step(14, 1.08)),
    Noise("step, spreads of 1 to 5 %", "rough", unequal_spreads(0.01, 0.05), step(14, 1.08)),
    Noise("three levels 60/30/10", "rough", several_levels((1.10, (0.3,)), (1.25, (0.1,))),
          lopsided=True),
    Noise("two levels, own shares", "rough", several_levels((1.15, (0.1, 0.35))), mixed=True,
          lopsided=True),
    Noise("slow shares 5 % and 20 %", "rough", slow_trials((0.05, 0.2)), mixed=True, lopsided=True),
    Noise("log-normal beside slow", "rough", alternating(log_normal(0.03), slow_trials((0.1,))),
          mixed=True),
    Noise("log-t(3) 2 %", "rough", log_student(0.02, 3)),
    Noise("gamma 10 %", "rough", gamma(0.10)),
    Noise("stalls: 1 in 25 × 3", "rough", several_levels((3.0, (0.04,)), spread=0.02)),
    Noise("cold start, +30 %", "rough", cold_start(1.3, 0.02)),
    Noise("every 5th trial +20 %", "rough", log_normal(0.02), periodic(5, 1.2)),
)  # fmt: skip

#: What the table calls a noise, in words.
DESCRIPTIONS = """*drift*: first-order autoregression with a stationary spread of 3 % and
ρ = 0.95 from one trial to the next, common to all cells; trials have a spread of their own of
0.5 % (*alone*), or more. *blocks*: each block has a level of its own, common to its cells, that
spreads by 5 %. *step*: all trials after the 14th of the run take 8 % longer. *two
levels*: the given share of the trials takes 15 % longer, each level with a spread of 0.3 %, or of
2 % (*wide*); *own shares*: 10 % of the trials of one cell and 35 % of the next. *three levels*:
1, 1.10 and 1.25. *slow*: so many trials, 1 in 10 unless said, are longer by an exponentially
distributed part with a mean of 50 %. *log-normal beside slow*: the cells have them in turn.
*stalls*: one trial in 25 takes three times as long. *cold start*: the first trial of each cell.
*every 5th trial*: in the order of time, whatever the cell. A clock reads whole ticks."""


def by_name(name: str) -> Noise:
    """A noise by its name.

    Raises:
        KeyError: there is none.
    """
    for noise in (*NOISES, _SMALL):
        if noise.name == name:
            return noise
    raise KeyError(name)


_SMALL = Noise("log-normal 2 %", "even", log_normal(0.02))
