"""The shape of a cell's trials, where one figure does not say it: two levels, a few trials far off,
and a change of the level in time that all cells share.

What chance alone shows in noise with one level is known by simulation
(:mod:`concurve.stats.shape_limits`): a finding goes beyond that at the level :data:`LEVEL`.
Positive values are taken on the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from concurve.stats import serial
from concurve.stats.blocks import Blocks
from concurve.stats.changes import LENGTH_MIN, greatest_change, single_change
from concurve.stats.moments import growth, mean, median, medians, t_quantile
from concurve.stats.rank_sums import shifted
from concurve.stats.shape_limits import Limits, limits_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: The share of samples of normal noise in which something is found by chance.
LEVEL = 0.01
_LEVEL_OF_TWO = 0.015
#: From so many trials on, two levels are told from uniform noise too, which would seem to have them
#: in up to half of its samples. With fewer that would hide levels that are a little apart.
_FLAT_FROM = 50
#: The share of cells with normal noise that seem to have two levels or trials far off. It is that
#: of a cell, not of a run: reports say so where they looked at several.
BY_CHANCE = LEVEL + _LEVEL_OF_TWO
#: Fewer trials have no shape.
TRIALS_MIN = 8
#: A level has at least this many trials.
_LEVEL_MIN = 2
#: One without a clear gap has at least this share of the trials: two of forty are outliers, and two
#: of 25 may be the slower level of a fifth of the trials.
_LEVEL_SHARE_MIN = 0.08
#: A level of so many trials that all lie closer together than the gap is one, whatever its spread.
_GROUP_MIN = 3
#: The spread within a level is at most this many times that within the other.
_SPREADS_ALIKE = 4.0
#: Equal values, whose logarithms are rounded.
_ROUNDING = 1e-12
#: Changes below this share are not worth mentioning, however certain.
_CHANGE_MIN = 0.005
#: Of more cells than this, the level of all is that of the others.
_MANY = 20
#: Decimals of a logarithm that are no rounding.
_DIGITS = 9
#: Simulated samples; of long ones fewer, whose statistics hardly vary. So many numbers at once.
_SIMULATED = 20_000
_SIMULATED_NUMBERS = 1_000_000

Direction = Literal["lower", "higher", "neither"]


class TwoLevels(NamedTuple):
    """The trials of a cell are at two levels: the median of each, and how many trials it has.
    ``clear``: the gap between them is wider than one in a tail of a single level."""

    low: float
    high: float
    trials_low: int
    trials_high: int
    clear: bool


class SlowTail(NamedTuple):
    """So many ``trials`` are far worse than the others: ``factor`` is the median of those over that
    of the others, ``worst`` the worst one."""

    trials: int
    factor: float
    worst: float


class FastTail(NamedTuple):
    """So many ``trials`` are far better than the others: ``factor`` as in :class:`SlowTail`,
    ``best`` the best one."""

    trials: int
    factor: float
    best: float


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
    that are far apart are a tail, and so are very few without a clear gap. They need not where the
    gap is wider than all of either level, of three trials or more: tails rarely have such a gap.
    Noise of one level that is skewed splits as well, but without such a gap
    (:func:`_is_beyond_tail`).
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
    if likelihoods.max() <= critical(len(ordered)).split:
        return None
    lower, upper = np.exp(ordered[:split]), np.exp(ordered[split:])
    gap = float(ordered[split] - ordered[split - 1])
    sides = (ordered[split - 1] - ordered[:split], ordered[split:] - ordered[split])
    is_wide = all(len(side) >= _GROUP_MIN and gap > side.max() for side in sides)
    spreads = sorted((float(ordered[:split].std(ddof=1)), float(ordered[split:].std(ddof=1))))
    if not is_wide and spreads[1] > _SPREADS_ALIKE * max(spreads[0], rounding):
        return None
    is_clear = is_wide or all(_is_beyond_tail(gap, side.tolist(), rounding) for side in sides)
    if not is_clear and min(split, len(ordered) - split) / len(ordered) < _LEVEL_SHARE_MIN:
        return None
    return TwoLevels(
        low=float(np.median(lower)),
        high=float(np.median(upper)),
        trials_low=split,
        trials_high=len(ordered) - split,
        clear=is_clear,
    )


def _is_beyond_tail(gap: float, beyond: Sequence[float], rounding: float) -> bool:
    """Is a gap wider than one in an exponential tail, but for :data:`LEVEL` of them? ``beyond`` are
    the distances from the gap of all values on that side of it, the nearest at 0.

    In such a tail the gap before m values is exponentially distributed, with 1/m of the mean of the
    distances of the others (Rényi 1953): so their ratio has the F-distribution with 2 and 2(m − 1)
    degrees of freedom. In heavier tails gaps are smaller for what lies beyond them.
    """
    others = len(beyond) - 1
    ratio = gap * len(beyond) / max(math.fsum(beyond) / others, rounding)
    return (1 + ratio / others) ** -others <= LEVEL


def slow_tail(
    values: Sequence[float], better: Direction, resolution: float = 0.0
) -> SlowTail | None:
    """The trials of a cell that are far worse than its others, if there are such: further from the
    median, in median deviations, than any trial in normal noise. ``resolution``: a reading may be
    off by so much, in the unit of the values; on a coarse clock most of them are equal."""
    found = None if better == "neither" else _tail(values, better == "lower", resolution)
    return None if found is None else SlowTail(*found)


def fast_tail(
    values: Sequence[float], better: Direction, resolution: float = 0.0
) -> FastTail | None:
    """The trials that are as far better: they may have done less than the others."""
    found = None if better == "neither" else _tail(values, better == "higher", resolution)
    return None if found is None else FastTail(*found)


def _tail(
    values: Sequence[float], above: bool, resolution: float
) -> tuple[int, float, float] | None:
    """How many trials lie far above (or below) the others, the median of those over that of the
    others, and the furthest one."""
    if len(values) < TRIALS_MIN or min(values) <= 0:
        return None
    sign = 1 if above else -1
    logs = [sign * math.log(value) for value in values]
    middle = median(logs)
    deviation = median([abs(value - middle) for value in logs])
    deviation = max(deviation, resolution / median(values) / 2)
    if deviation <= 0:
        return None
    fence = middle + critical(len(logs)).deviation * deviation
    far = [value for value in logs if value > fence]
    if not far:
        return None
    others = median([value for value in logs if value <= fence])
    factor = math.exp(sign * (median(far) - others))
    return len(far), factor, max(values) if above else min(values)


def may_have_shape(rows: npt.NDArray[np.float64], better: Direction) -> npt.NDArray[np.bool_]:
    """Which of very many cells, a row each, may have two levels or trials far off: those of which
    :func:`two_levels`, :func:`slow_tail` and :func:`fast_tail` are to be asked. The others have
    none of these."""
    import numpy as np

    count, n = rows.shape
    found = np.zeros(count, dtype=bool)
    positive = np.flatnonzero((rows > 0).all(axis=1))
    if n < TRIALS_MIN or not len(positive):
        return found
    logs = np.sort(np.log(rows[positive]), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        split = np.nan_to_num(_likelihoods(logs).max(axis=1), nan=-np.inf)
    found[positive] = split > critical(n).split - _ROUNDING
    if better != "neither":
        apart = logs - medians(logs)[:, None]
        furthest = np.maximum(apart[:, -1], -apart[:, 0])
        fence = critical(n).deviation * medians(abs(apart))
        found[positive] |= furthest > fence - _ROUNDING
    return found


def level_change(cells: Sequence[Blocks]) -> LevelChange | None:
    """The change of the level in time that the cells share, if there is one: the greatest.

    A block's level is the median over its cells of their distance from the cell's own median. A
    permutation test of the series of blocks tells a change from chance. None is found in fewer
    blocks than that test needs: the cells of a block share its noise, so that many cells say no
    more of a change in time than one.
    """
    blocks, levels = _levels_in_time(cells)
    if len(blocks) < LENGTH_MIN:
        return None
    start = greatest_change(levels)
    shift = median(levels[start:]) - median(levels[:start])
    # The test takes far longer than to see that a change would be too small to be told.
    if abs(shift) < _CHANGE_MIN or single_change(levels, LEVEL) is None:
        return None
    return LevelChange(blocks[start], math.exp(shift))


def drift(cells: Sequence[Blocks]) -> float | None:
    """By which share the greatest level of a block lies above the least one, where the level that
    the cells share wanders: the levels of blocks that follow each other are alike
    (:mod:`concurve.stats.serial`), whether or not they change at once."""
    _, levels = _levels_in_time(cells)
    if serial.p_value(levels) > LEVEL:
        return None
    share = growth(max(levels) - min(levels)) - 1
    return share if _CHANGE_MIN <= share < math.inf else None


def course(cells: Sequence[Blocks]) -> float | None:
    """By which share the level that the cells share lies higher in the last third of the blocks
    than in the first (below 0: lower), by the medians of both; ``None`` where that is little, as of
    a level that came back."""
    _, levels = _levels_in_time(cells)
    third = len(levels) // 3
    if not third:
        return None
    share = growth(median(levels[-third:]) - median(levels[:third])) - 1
    return share if _CHANGE_MIN <= abs(share) < math.inf else None


def explains(change: LevelChange, cells: Sequence[Blocks]) -> bool:
    """Is the level that the cells share the same but for this change? Not where neighbouring blocks
    are alike before and after it as well (5 %): such a level drifts, and that it was another one
    from some block on says too much."""
    blocks, levels = _levels_in_time(cells)
    sides = [
        [level for block, level in zip(blocks, levels, strict=True) if is_side(block)]
        for is_side in (change.block.__gt__, change.block.__le__)
    ]
    return serial.p_value([level - median(side) for side in sides for level in side]) > serial.LEVEL


def is_shared(
    cells: Sequence[Blocks], change: LevelChange | None = None, resolutions: Sequence[float] = ()
) -> bool:
    """Do all cells follow the level that they share? One does not if its distance from that level
    depends on the time as well: neighbouring blocks have alike distances, or they are other ones
    after the ``change``.

    A change of one cell of two is half a change of their level, and so as certain as that. The
    error of 5 % is shared among the cells and the two tests. ``resolutions`` are the shares by
    which the readings of each cell may be off: what coarse clocks make of one change differs by so
    much.
    """
    blocks, levels = _levels_in_time(cells)
    level = dict(zip(blocks, levels, strict=True))
    bound = max((*resolutions, _CHANGE_MIN))
    apart: list[dict[int, float]] = []
    for cell in cells:
        if len(cell) > 1 and min(cell.values()) > 0:
            own = _from_centre(cell)
            apart.append({block: round(own[block] - level[block], _DIGITS) for block in own})
    if len(apart) < 2:
        return True
    # Of two cells, each lies as far above the level as the other lies below it.
    most = serial.LEVEL / (len(apart) - 1)
    if change is not None:
        most /= 2
        if any(_p_moved(one, change.block, bound) <= most for one in apart):
            return False
    spans = (max(one.values()) - min(one.values()) for one in apart)
    p_values = serial.p_values([[one[block] for block in sorted(one)] for one in apart])
    return all(p > most or span <= bound for p, span in zip(p_values, spans, strict=True))


def is_shown_shared(cells: Sequence[Blocks], margin: float) -> bool:
    """Is it shown that ratios of the cells hold while their level changes? That no cell was seen to
    depart from it (:func:`is_shared`) is no proof where blocks are few or noise is great.

    Each cell follows that of all others in a straight line, in logarithms: the bounds of its slope
    (95 %, shared among the cells) say how far it may depart from them where the level lies furthest
    from its middle, and that is no more than half of ``margin``: of two cells, each may depart so
    far, one up and the other down. The noise of the others makes slopes smaller, so what is shown
    is so.
    """
    judged = [_from_centre(cell) for cell in cells if len(cell) > 1 and min(cell.values()) > 0]
    if len(judged) < 2:
        return True
    blocks, levels = _levels_in_time(cells)
    whole = dict(zip(blocks, levels, strict=True))
    reach = (max(levels) - min(levels)) / 2
    error = serial.LEVEL / len(judged)
    for own in judged:
        level = whole if len(judged) > _MANY else _level_without(own, judged)
        if _departs(own, level, error) * reach > math.log1p(margin) / 2:
            return False
    return True


def _level_without(own: dict[int, float], cells: Sequence[dict[int, float]]) -> dict[int, float]:
    """The level of the other cells in each block that one of them has."""
    others = [cell for cell in cells if cell is not own]
    known = {block: [cell[block] for cell in others if block in cell] for block in own}
    return {block: median(values) for block, values in known.items() if values}


def _departs(own: dict[int, float], level: dict[int, float], error: float) -> float:
    """By how much the slope of a cell over a level may differ from 1; infinite where that is not
    known."""
    pairs = [(level[block], own[block]) for block in own if block in level]
    n = len(pairs)
    if n < 3:
        return math.inf
    x, y = ([pair[side] for pair in pairs] for side in (0, 1))
    middle, height = mean(x), mean(y)
    square = math.fsum((value - middle) ** 2 for value in x)
    if not square:
        return math.inf
    slope = math.fsum((a - middle) * (b - height) for a, b in pairs) / square
    left = math.fsum((b - height - slope * (a - middle)) ** 2 for a, b in pairs)
    spread = math.sqrt(left / (n - 2) / square)
    return abs(slope - 1) + t_quantile(1 - error / 2, n - 2) * spread


def _p_moved(apart: dict[int, float], block: int, bound: float) -> float:
    """The two-sided p-value of "no further apart from this block on than by ``bound``"."""
    before = [value for at, value in apart.items() if at < block]
    after = [value for at, value in apart.items() if at >= block]
    found = shifted(after, before, bound)
    return 1.0 if found is None else 2 * min(found.p_above(), found.p_below())


def _levels_in_time(cells: Sequence[Blocks]) -> tuple[list[int], list[float]]:
    """The blocks of some cells, and the level of each; none where no cell has two trials."""
    judged = [cell for cell in cells if len(cell) > 1 and min(cell.values()) > 0]
    are_alike = all(list(cell) == list(judged[0]) for cell in judged)
    blocks = sorted(judged[0] if judged and are_alike else set().union(*judged))
    return blocks, _levels(judged, blocks) if blocks else []


def _levels(cells: Sequence[Blocks], blocks: Sequence[int]) -> list[float]:
    """The median of each block over the cells that have it, each from its own centre."""
    if all(list(cell) == blocks for cell in cells):
        import numpy as np

        logs = np.log([list(cell.values()) for cell in cells])
        logs -= medians(logs)[:, None]
        return list(medians(logs.T).tolist())
    residuals = [_from_centre(cell) for cell in cells]
    return [median([cell[block] for cell in residuals if block in cell]) for block in blocks]


def _from_centre(cell: Blocks) -> dict[int, float]:
    logs = {block: math.log(value) for block, value in cell.items()}
    middle = median(list(logs.values()))
    return {block: value - middle for block, value in logs.items()}


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
def critical(n: int) -> Limits:
    """What a finding in so many trials must exceed: known for the usual numbers of trials and
    between neighbours of a grid above them, else simulated."""
    return limits_of(n) or simulated_limits(n)


def simulated_limits(n: int, samples: int = 0) -> Limits:
    """What chance shows in samples of n values, always the same ones: the likelihood that the best
    split exceeds in :data:`_LEVEL_OF_TWO` of normal samples, and of many trials in as many uniform
    ones, since of all distributions with one mode a uniform one splits best (Hartigan & Hartigan
    1985); and how many median deviations the furthest value of a normal sample lies from its
    median, in :data:`LEVEL` of them."""
    import numpy as np

    left = samples or max(200, min(_SIMULATED, _SIMULATED_NUMBERS // n))
    generator = np.random.default_rng(n)
    splits: list[float] = []
    flat: list[float] = []
    deviations: list[float] = []
    while left > 0:
        count = min(left, max(1, _SIMULATED_NUMBERS // n))
        left -= count
        rows = generator.standard_normal((count, n))
        rows.sort(axis=1)
        splits += _likelihoods(rows).max(axis=1).tolist()
        apart = rows - medians(rows)[:, None]
        deviations += (abs(apart).max(axis=1) / medians(abs(apart))).tolist()
        if n >= _FLAT_FROM:
            uniform = generator.random((count, n))
            uniform.sort(axis=1)
            flat += _likelihoods(uniform).max(axis=1).tolist()
    split = max(float(np.quantile(each, 1 - _LEVEL_OF_TWO)) for each in (splits, flat) if each)
    return Limits(split, float(np.quantile(deviations, 1 - LEVEL)))
