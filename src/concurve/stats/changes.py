"""Change points of a short series: where its level changed permanently.

``ruptures`` proposes them (PELT, Killick, Fearnhead & Eckley 2012, with the penalty of BIC), and a
permutation test confirms each against the segment between its adjacent change points (as E-divisive
does, Matteson & James 2014): no distribution is assumed, and the test holds its level for any
length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from concurve.stats.moments import median

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: In shorter series a change cannot be distinguished from chance.
LENGTH_MIN = 8

#: A change must last for at least this many values.
LASTING = 2

PERMUTATIONS = 1999

#: Among many series a single change is told by a smaller p-value: so many shufflings for each of
#: them, and so many at most.
_TO_TELL = 60
_PERMUTATIONS_MAX = 19_999

#: So many shuffled series are judged at once.
_AT_ONCE = 50

#: Long series are permuted less often: so many numbers at most.
_NUMBERS_MAX = 2_000_000


class ChangePoint(NamedTuple):
    """``start``: index of the first value after the change; ``p_value`` of "nothing changed"."""

    start: int
    p_value: float


def change_points(
    values: Sequence[float],
    level: float = 0.05,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
) -> list[ChangePoint]:
    """Where the level of a series changed, in order; none in a series below
    :data:`LENGTH_MIN`. Positive values are taken on the logarithm, so that ratios count. The
    p-values are multiplied by the number of changes that were proposed (Bonferroni)."""
    import numpy as np

    if len(values) < LENGTH_MIN:
        return []
    positive = min(values) > 0
    series = np.log(values) if positive else np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    return _confirmed(series, _proposed(series), level, generator, permutations)


def change_points_of_all(
    series: Sequence[Sequence[float]], level: float = 0.05
) -> list[list[ChangePoint]]:
    """Where each of several series changed, so that of the series that are said to have changed no
    more than the share ``level`` did not (false discovery rate).

    Benjamini & Hochberg (1995) over the least p-value of each series that is long enough, and then
    the changes of those that are left, at the level that the selection leaves (Benjamini &
    Bogomolov 2014).
    """
    from concurve.stats.comparison import benjamini_hochberg

    long = [values for values in series if len(values) >= LENGTH_MIN]
    permutations = min(max(PERMUTATIONS, _TO_TELL * len(long)), _PERMUTATIONS_MAX)
    found = [change_points(values, level, permutations=permutations) for values in long]
    least = [min((change.p_value for change in each), default=1.0) for each in found]
    kept = [p_value <= level for p_value in benjamini_hochberg(least)]
    left = level * sum(kept) / max(1, len(long))
    told = iter(
        change_points(values, left, permutations=permutations) if is_kept else []
        for values, is_kept in zip(long, kept, strict=True)
    )
    return [next(told) if len(values) >= LENGTH_MIN else [] for values in series]


def single_change(values: Sequence[float], level: float = 0.05) -> ChangePoint | None:
    """The one split of a series that changes its level most, if it is significant; ``None`` in a
    series below :data:`LENGTH_MIN`."""
    import numpy as np

    if len(values) < LENGTH_MIN:
        return None
    series = np.asarray(values, dtype=float)
    permutations = max(2 * round(1 / level), min(PERMUTATIONS, _NUMBERS_MAX // len(series)))
    p_value = _p_value(series, np.random.default_rng(0), permutations, level)
    if p_value > level:
        return None
    return ChangePoint(greatest_change(values), p_value)


def greatest_change(values: Sequence[float]) -> int:
    """Where a series of at least :data:`LENGTH_MIN` values changes its level most, by chance or
    not: the index of the first value after the split."""
    import numpy as np

    return int(_gains(np.asarray(values, dtype=float)[None, :]).argmax()) + LASTING


def _proposed(series: npt.NDArray[np.float64]) -> list[int]:
    """Change points by PELT; the noise is estimated from adjacent values, which changes hardly
    affect."""
    from ruptures import Pelt

    steps = [abs(float(step)) for step in series[1:] - series[:-1]]
    noise = 1.4826 * median(steps) / math.sqrt(2)
    spread = float(series.std())
    if spread == 0:
        return []
    penalty = 2 * math.log(len(series)) * max(noise, 1e-6 * spread) ** 2
    found: list[int] = Pelt(model="l2", min_size=LASTING, jump=1).fit_predict(series, penalty)
    return found[:-1]


def _confirmed(
    series: npt.NDArray[np.float64],
    points: list[int],
    level: float,
    generator: np.random.Generator,
    permutations: int,
) -> list[ChangePoint]:
    """Drop the least significant change repeatedly until all remaining ones are significant, each
    by its p-value times the number of proposed changes (Bonferroni)."""
    proposed = len(points)
    while points:
        bounds = [0, *points, len(series)]
        tested = [
            ChangePoint(
                point, min(1.0, proposed * _p_value(series[before:after], generator, permutations))
            )
            for before, point, after in zip(bounds, points, bounds[2:], strict=False)
        ]
        weakest = max(tested, key=lambda change: change.p_value)
        if weakest.p_value <= level:
            return tested
        points.remove(weakest.start)
    return []


def _p_value(
    stretch: npt.NDArray[np.float64],
    generator: np.random.Generator,
    permutations: int = PERMUTATIONS,
    level: float = 1.0,
) -> float:
    """The share of shuffled segments whose best split is at least as good as that of this one.
    Where it will exceed ``level``, fewer are shuffled: then it is a lower bound above the level."""
    import numpy as np

    if len(stretch) < 2 * LASTING:
        return 1.0
    least = float(_gains(stretch[None, :]).max()) * (1 - 1e-12)
    found = 1
    for first in range(0, permutations, _AT_ONCE):
        count = min(_AT_ONCE, permutations - first)
        shuffled = generator.permuted(np.tile(stretch, (count, 1)), axis=1)
        found += int((_gains(shuffled).max(axis=1) >= least).sum())
        if found > level * (permutations + 1):
            break
    return found / (permutations + 1)


def _gains(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Per row the drop of the sum of squares that each split gives."""
    import numpy as np

    n = rows.shape[1]
    left = np.arange(LASTING, n - LASTING + 1)
    sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, left - 1]
    gains: npt.NDArray[np.float64] = sums**2 * n / (left * (n - left))
    return gains
