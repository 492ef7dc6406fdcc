"""Ratios of two cells, block by block: what slows a whole block drops out.

Two cells whose noise has one and the same shape have log ratios that lie symmetrically around that
of their centres, whatever the shape; so the signed-rank test holds its level for them
(:mod:`concurve.stats.signed_ranks`). It takes the blocks as independent; ratios that depend on
those before are spread first (:mod:`concurve.stats.serial`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from operator import truediv
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.stats.centre import staged
from concurve.stats.moments import LONG, growth, stdev
from concurve.stats.serial import stretched, stretched_rows
from concurve.stats.signed_ranks import Ranked, are_enough, ranked, values_and_intervals

#: From so many ratios on, those of as many blocks are computed together.
MANY = 50

Blocks = Mapping[int, float]
"""Values of a cell's trials in use, by block."""


def log_ratios(top: Blocks, bottom: Blocks, resolution: float = 0.0) -> Ranked | None:
    """The log ratios of the blocks that hold both cells; ``None`` for fewer than two such blocks,
    or where a value is not above 0.

    ``resolution`` is that of a ratio: 0.01 where each may be off by 1 %.
    """
    if len(top) >= LONG and list(top) == list(bottom):
        return _long_log_ratios(top, bottom, resolution)
    both = sorted(top.keys() & bottom.keys())
    if not both or min(min(top[block], bottom[block]) for block in both) <= 0:
        return None
    # A difference of logarithms: the quotient may be beyond the range of a float.
    logs = [math.log(top[block]) - math.log(bottom[block]) for block in both]
    return ranked(stretched(logs), math.log1p(resolution))


def _long_log_ratios(top: Blocks, bottom: Blocks, resolution: float) -> Ranked | None:
    """Those of two cells of the same blocks, of which there are many."""
    import numpy as np

    sides = np.array([list(top.values()), list(bottom.values())])
    if not (sides > 0).all():
        return None
    logs = np.log(sides)
    ratios = stretched((logs[0] - logs[1]).tolist())
    return Ranked(tuple(np.sort(np.asarray(ratios)).tolist()), math.log1p(resolution))


def block_ratio(
    top: Blocks,
    bottom: Blocks,
    confidence: float = 0.95,
    is_staged: bool = False,
    resolution: float = 0.0,
) -> Estimate | None:
    """``top`` over ``bottom`` over their common blocks, with its interval. ``None`` without such
    a block, or where a value is not above 0; a single block has no interval."""
    found = log_ratios(top, bottom, resolution)
    if found is None:
        alone = quotients(top, bottom)
        if alone is None or len(alone) != 1:
            return None
        return Estimate(value=next(iter(alone.values())), n=1, confidence=confidence)
    value, low, high = found.value_and_interval(staged(confidence, is_staged))
    return Estimate(
        value=growth(value),
        low=growth(low),
        high=growth(high),
        n=len(found.values),
        confidence=confidence,
    )


def quotients(top: Blocks, bottom: Blocks) -> Blocks | None:
    """``top`` over ``bottom`` in each common block; ``None`` where a value is not above 0."""
    both = sorted(top if list(top) == list(bottom) else top.keys() & bottom.keys())
    above, below = ([side[block] for block in both] for side in (top, bottom))
    if both and min(itertools.chain(above, below)) <= 0:
        return None
    return dict(zip(both, map(truediv, above, below), strict=True))


def geometric_means(cells: Sequence[Blocks]) -> Blocks | None:
    """Those of some cells in each block that holds all of them; ``None`` where a value is not above
    0: to leave out a block for its values would bias the others."""
    common = sorted(set.intersection(*(set(cell) for cell in cells)))
    if any(min(cell[block] for cell in cells) <= 0 for block in common):
        return None
    return {
        block: math.exp(math.fsum(math.log(cell[block]) for cell in cells) / len(cells))
        for block in common
    }


class Range(NamedTuple):
    """How far cells lie apart: the indices of the greatest and the least centre, and the ``ratio``
    of these two with its interval; ``spread``: the standard deviation of that pair's log ratios."""

    greatest: int
    least: int
    ratio: Estimate
    spread: float


def range_of(
    cells: Sequence[Blocks],
    confidence: float = 0.95,
    is_staged: bool = False,
    resolution: float = 0.0,
) -> Range | None:
    """The greatest true centre of at least two cells over the least one, by the blocks that hold
    all of them. ``None`` for fewer than two such blocks, or where a value is not above 0.

    It is the greatest of the ratios of all ordered pairs. Its upper bound is the greatest upper
    bound of a pair: that of the true extremes suffices, so nothing is shared. Its lower bound is
    the greatest lower bound of a pair; each of them must hold, so the error is shared among them
    (Bonferroni). ``resolution`` is that of a ratio.
    """
    common = sorted(set.intersection(*(set(cell) for cell in cells)))
    if len(common) < 2 or min(cell[block] for cell in cells for block in common) <= 0:
        return None
    logs = [[math.log(cell[block]) for block in common] for cell in cells]
    pairs = list(itertools.combinations(range(len(cells)), 2))
    alone = staged(confidence, is_staged)
    shared = staged(1 - (1 - confidence) / (2 * len(pairs)), is_staged)
    least_bounds = [0.0]
    greatest_bounds: list[float] = []
    widest: tuple[float, int, int, Ranked] | None = None
    for first, second in pairs:
        apart = [one - other for one, other in zip(logs[first], logs[second], strict=True)]
        found = ranked(stretched(apart), math.log1p(resolution))
        assert found is not None
        low, high = found.interval(shared)
        least_bounds += [low, -high]
        low, high = found.interval(alone)
        greatest_bounds += [high, -low]
        value = found.value
        if widest is None or abs(value) > widest[0]:
            top, bottom = (first, second) if value >= 0 else (second, first)
            widest = (abs(value), top, bottom, found)
    assert widest is not None
    value, top, bottom, found = widest
    ratio = Estimate(
        value=growth(value),
        low=growth(max(least_bounds)),
        high=growth(max(greatest_bounds)),
        n=len(common),
        confidence=confidence,
    )
    return Range(top, bottom, ratio, stdev(found.values))


def block_ratios(
    pairs: Sequence[tuple[Blocks, Blocks]],
    confidence: float = 0.95,
    is_staged: bool = False,
    resolutions: Sequence[float] = (),
) -> list[Estimate | None]:
    """:func:`block_ratio` of many pairs of cells; those whose blocks are as many are computed
    together. ``resolutions`` are those of the ratios."""
    off = resolutions or [0.0] * len(pairs)
    level = staged(confidence, is_staged)
    found: dict[int, Estimate | None] = {}
    together: dict[int, list[int]] = {}
    for place, (top, bottom) in enumerate(pairs):
        if are_enough(len(top), level) and list(top) == list(bottom):
            together.setdefault(len(top), []).append(place)
        else:
            found[place] = block_ratio(top, bottom, confidence, is_staged, off[place])
    for places in together.values():
        if len(places) < MANY:
            found |= {
                place: block_ratio(*pairs[place], confidence, is_staged, off[place])
                for place in places
            }
            continue
        found |= _alike(pairs, places, confidence, level, off)
    return [found[place] for place in range(len(pairs))]


def _alike(
    pairs: Sequence[tuple[Blocks, Blocks]],
    places: Sequence[int],
    confidence: float,
    level: float,
    off: Sequence[float],
) -> dict[int, Estimate | None]:
    """The ratios of pairs whose blocks are as many, by their places. ``confidence`` is that of the
    intervals as they are shown, ``level`` the one that they are computed with."""
    import numpy as np

    sides = np.array([[list(side.values()) for side in pairs[place]] for place in places])
    positive = np.asarray((sides > 0).all(axis=(1, 2)))
    logs = np.log(sides[positive])
    rows = np.sort(stretched_rows(logs[:, 0] - logs[:, 1]), axis=1)
    columns = (column.tolist() for column in values_and_intervals(rows, level))
    figures = zip(*columns, strict=True)
    found: dict[int, Estimate | None] = {}
    for place, is_positive in zip(places, positive.tolist(), strict=True):
        found[place] = None
        if is_positive:
            value, low, high = next(figures)
            wider = math.log1p(off[place])
            found[place] = Estimate(
                value=growth(value),
                low=growth(low - wider),
                high=growth(high + wider),
                n=rows.shape[1],
                confidence=confidence,
            )
    return found
