"""The shape of a cell's trials, where one figure does not say it: two levels, a slow tail, and a
change of the level in time that all cells share.

What chance alone shows in normal noise is known by simulation: a finding goes beyond that at the
level :data:`LEVEL`. Positive values are taken on the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from concurve.stats.blocks import Blocks
from concurve.stats.changes import LENGTH_MIN, single_change
from concurve.stats.moments import median

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: The share of samples of normal noise in which something is found by chance.
LEVEL = 0.01
_LEVEL_OF_TWO = 0.015
#: The share of cells with normal noise that seem to have two levels or a slow tail. It is that of a
#: cell, not of a run: reports say so where they looked at several.
BY_CHANCE = LEVEL + _LEVEL_OF_TWO
#: Fewer trials have no shape.
TRIALS_MIN = 8
#: A level has at least this many trials.
_LEVEL_MIN = 2
#: The spread within a level is at most this many times that within the other.
_SPREADS_ALIKE = 4.0
#: Equal values, whose logarithms are rounded.
_ROUNDING = 1e-12
#: Changes below this share are not worth mentioning, however certain.
_CHANGE_MIN = 0.005
#: Simulated samples; of long ones fewer, whose statistics hardly vary.
_SIMULATED = 20_000
_SIMULATED_NUMBERS = 1_000_000

Direction = Literal["lower", "higher", "neither"]


class TwoLevels(NamedTuple):
    """The trials of a cell are at two levels: the median of each, and how many trials it has."""

    low: float
    high: float
    trials_low: int
    trials_high: int


class SlowTail(NamedTuple):
    """So many ``trials`` are far worse than the others: ``factor`` is the median of those over that
    of the others, ``worst`` the worst one."""

    trials: int
    factor: float
    worst: float


class LevelChange(NamedTuple):
    """From the block with the index ``block`` on, the figures of all cells were ``factor`` times as
    high."""

    block: int
    factor: float


def two_levels(values: Sequence[float]) -> TwoLevels | None:
    """The two levels of a cell's trials, if they have two.

    The split into a lower and an upper part with the greatest classification likelihood (two normal
    distributions of one spread, with their shares; Symons 1981) is significant if that exceeds what
    normal noise shows. The trials of each level must be about as close together: a few slow ones
    that are far apart are a tail.
    """
    if len(values) < TRIALS_MIN or min(values) <= 0:
        return None
    import numpy as np

    ordered = np.sort(np.log(np.asarray(values, dtype=float)))
    rounding = _ROUNDING * max(1.0, abs(float(ordered[0])), abs(float(ordered[-1])))
    if ordered[-1] - ordered[0] <= rounding:
        return None
    likelihoods = _likelihoods(ordered[None, :])[0]
    split = int(likelihoods.argmax()) + _LEVEL_MIN
    if likelihoods.max() <= _critical_split(len(ordered)):
        return None
    lower, upper = np.exp(ordered[:split]), np.exp(ordered[split:])
    spreads = sorted((float(ordered[:split].std(ddof=1)), float(ordered[split:].std(ddof=1))))
    if spreads[1] > _SPREADS_ALIKE * max(spreads[0], rounding):
        return None
    return TwoLevels(float(np.median(lower)), float(np.median(upper)), split, len(ordered) - split)


def slow_tail(values: Sequence[float], better: Direction) -> SlowTail | None:
    """The trials of a cell that are far worse than its others, if there are such: further from the
    median, in median deviations, than any trial in normal noise."""
    if len(values) < TRIALS_MIN or better == "neither" or min(values) <= 0:
        return None
    sign = 1 if better == "lower" else -1
    logs = [sign * math.log(value) for value in values]
    middle = median(logs)
    deviation = median([abs(value - middle) for value in logs])
    if deviation <= 0:
        return None
    fence = middle + _critical_deviation(len(logs)) * deviation
    slow = [value for value in logs if value > fence]
    if not slow:
        return None
    others = median([value for value in logs if value <= fence])
    factor = math.exp(sign * (median(slow) - others))
    worst = max(values) if better == "lower" else min(values)
    return SlowTail(len(slow), factor, worst)


def may_have_shape(rows: npt.NDArray[np.float64], better: Direction) -> npt.NDArray[np.bool_]:
    """Which of very many cells, a row each, may have two levels or a slow tail: those of which
    :func:`two_levels` or :func:`slow_tail` is to be asked. The others have neither."""
    import numpy as np

    count, n = rows.shape
    found = np.zeros(count, dtype=bool)
    positive = np.flatnonzero((rows > 0).all(axis=1))
    if n < TRIALS_MIN or not len(positive):
        return found
    logs = np.sort(np.log(rows[positive]), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        split = np.nan_to_num(_likelihoods(logs).max(axis=1), nan=-np.inf)
    found[positive] = split > _critical_split(n) - _ROUNDING
    if better != "neither":
        apart = logs - np.median(logs, axis=1, keepdims=True)
        worst = apart[:, -1] if better == "lower" else -apart[:, 0]
        fence = _critical_deviation(n) * np.median(abs(apart), axis=1)
        found[positive] |= worst > fence - _ROUNDING
    return found


def level_change(cells: Sequence[Blocks]) -> LevelChange | None:
    """The change of the level in time that the cells share, if there is one: the greatest.

    A block's level is the median over its cells of their distance from the cell's own median. A
    permutation test of the series of blocks tells a change from chance. None is found in fewer
    blocks than that test needs: the cells of a block share its noise, so that many cells say no
    more of a change in time than one.
    """
    logs = [
        {block: math.log(value) for block, value in cell.items()}
        for cell in cells
        if len(cell) > 1 and min(cell.values()) > 0
    ]
    if not logs:
        return None
    residuals = [_from_centre(cell) for cell in logs]
    blocks = sorted(set().union(*residuals))
    levels = _levels(residuals, blocks)
    found = single_change(levels, LEVEL) if len(blocks) >= LENGTH_MIN else None
    if found is None:
        return None
    shift = median(levels[found.start :]) - median(levels[: found.start])
    if abs(shift) < _CHANGE_MIN:
        return None
    return LevelChange(blocks[found.start], math.exp(shift))


def _levels(residuals: Sequence[Mapping[int, float]], blocks: Sequence[int]) -> list[float]:
    """The median of each block over the cells that have it."""
    if all(len(cell) == len(blocks) for cell in residuals):
        import numpy as np

        whole = np.array([[cell[block] for block in blocks] for cell in residuals])
        return list(np.median(whole, axis=0).tolist())
    return [median([cell[block] for cell in residuals if block in cell]) for block in blocks]


def _from_centre(cell: Mapping[int, float]) -> dict[int, float]:
    middle = median(list(cell.values()))
    return {block: value - middle for block, value in cell.items()}


def _likelihoods(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Per row of ascending values: the log likelihood of each split, for each value, above that of
    one distribution."""
    import numpy as np

    n = rows.shape[1]
    lower = np.arange(_LEVEL_MIN, n - _LEVEL_MIN + 1)
    centred = rows - rows.mean(axis=1, keepdims=True)
    sums = np.cumsum(centred, axis=1)[:, lower - 1]
    explained = sums**2 * n / (lower * (n - lower)) / (centred**2).sum(axis=1, keepdims=True)
    share = lower / n
    entropy = share * np.log(share) + (1 - share) * np.log(1 - share)
    found: npt.NDArray[np.float64] = entropy - np.log(np.maximum(1 - explained, 1e-12)) / 2
    return found


@lru_cache(maxsize=256)
def _critical_split(n: int) -> float:
    """The likelihood that the best split of a normal sample exceeds in :data:`_LEVEL_OF_TWO` of
    them."""
    import numpy as np

    found = _likelihoods(_simulated(n)).max(axis=1)
    return float(np.quantile(found, 1 - _LEVEL_OF_TWO))


@lru_cache(maxsize=256)
def _critical_deviation(n: int) -> float:
    """How many median deviations the greatest value of a normal sample lies from its median, in
    :data:`LEVEL` of them."""
    import numpy as np

    rows = _simulated(n)
    apart = rows - np.median(rows, axis=1, keepdims=True)
    return float(np.quantile(apart.max(axis=1) / np.median(abs(apart), axis=1), 1 - LEVEL))


@lru_cache(maxsize=1)
def _simulated(n: int) -> npt.NDArray[np.float64]:
    """Samples of n normal values in ascending order, always the same."""
    import numpy as np

    count = max(200, min(_SIMULATED, _SIMULATED_NUMBERS // n))
    rows = np.random.default_rng(n).standard_normal((count, n))
    rows.sort(axis=1)
    return rows
