"""Change points of a short series: where its level changed permanently.

``ruptures`` proposes them (PELT, Killick, Fearnhead & Eckley 2012, with the penalty of BIC), and a
permutation test confirms each against the segment between its adjacent change points (as E-divisive
does, Matteson & James 2014): no distribution is assumed, and the test holds its level for any
length.

Of several series each segment is held against what chance gives in all of them (Tusher, Tibshirani
& Chu 2001). Of its own values there may be no better split than one in C(n, k), which is not rare
enough among many series: two slow runs of 20 come last in one of 190 orders, or first. That the
split is so clear in another series is far rarer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
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

#: So many shuffled segments are judged at once.
_AT_ONCE = 50
#: Later more, as long as they are so many numbers: 8 MB.
_NUMBERS_AT_ONCE = 1_000_000

#: No more are shuffled when so many were as clear: the p-value is known to a tenth then (Besag &
#: Clifford 1991), and what chance made is soon done.
_ENOUGH = 100

#: Long series are permuted less often: so many numbers at most.
_NUMBERS_MAX = 2_000_000

#: The same of a segment of many series together.
_NUMBERS_OF_ALL_MAX = 20_000_000


class ChangePoint(NamedTuple):
    """``start``: index of the first value after the change; ``p_value`` of "nothing changed"."""

    start: int
    p_value: float


def change_points(values: Sequence[float], level: float = 0.05) -> list[ChangePoint]:
    """Where the level of a series changed, in order; none in a series below
    :data:`LENGTH_MIN`. Positive values are taken on the logarithm, so that ratios count. The
    p-values are multiplied by the number of changes that were proposed (Bonferroni)."""
    return change_points_of_all([values], level)[0]


def change_points_of_all(
    series: Sequence[Sequence[float]], level: float = 0.05
) -> list[list[ChangePoint]]:
    """Where each of several series changed, as in :func:`change_points`, so that of the series
    that are said to have changed no more than the share ``level`` did not (false discovery rate).
    The last values of all series were measured together, and so were those before.

    Benjamini & Hochberg (1995) over the least p-value of each series that is long enough, and then
    the changes of those that are left, at the level that the selection leaves (Benjamini &
    Bogomolov 2014).
    """
    from concurve.stats.comparison import benjamini_hochberg

    long = [_on_a_scale(values) for values in series if len(values) >= LENGTH_MIN]
    proposed = [_proposed(values) for values in long]

    @cache
    def by_chance(begin: int, end: int) -> _ByChance:
        """Of the segment of all series that is so far from their ends."""
        segments = [
            values[len(values) - begin : len(values) - end]
            for values in long
            if len(values) >= begin
        ]
        return _ByChance(segments)

    def told(values: npt.NDArray[np.float64], points: list[int], at: float) -> list[ChangePoint]:
        def p_value(before: int, after: int) -> float:
            chance = by_chance(len(values) - before, len(values) - after)
            rounds = _rounds(len(long), len(points), after - before)
            share = float(_shares(values[None, before:after])[0])
            return chance.p_value(share, rounds, _ENOUGH)

        return _confirmed(len(values), points, at, p_value)

    found = [told(values, points, level) for values, points in zip(long, proposed, strict=True)]
    least = [min((change.p_value for change in each), default=1.0) for each in found]
    kept = [p_value <= level for p_value in benjamini_hochberg(least)]
    left = level * sum(kept) / max(1, len(long))
    changes = iter(
        told(values, points, left) if is_kept else []
        for values, points, is_kept in zip(long, proposed, kept, strict=True)
    )
    return [next(changes) if len(values) >= LENGTH_MIN else [] for values in series]


def _rounds(series: int, proposed: int, length: int) -> int:
    """How often a segment of each series is shuffled: so often that a change of one series alone
    can be told, whose p-value is multiplied by the number of series and by that of the proposed
    changes."""
    return max(1, min(PERMUTATIONS * proposed, _NUMBERS_OF_ALL_MAX // (series * length)))


def single_change(values: Sequence[float], level: float = 0.05) -> ChangePoint | None:
    """The one split of a series that changes its level most, if it is significant; ``None`` in a
    series below :data:`LENGTH_MIN`."""
    import numpy as np

    if len(values) < LENGTH_MIN:
        return None
    series = np.asarray(values, dtype=float)
    permutations = max(2 * round(1 / level), min(PERMUTATIONS, _NUMBERS_MAX // len(series)))
    share = float(_shares(series[None, :])[0])
    beyond = math.floor(level * (permutations + 1)) + 1
    p_value = _ByChance([series]).p_value(share, permutations, beyond)
    if p_value > level:
        return None
    return ChangePoint(greatest_change(values), p_value)


def greatest_change(values: Sequence[float]) -> int:
    """Where a series of at least :data:`LENGTH_MIN` values changes its level most, by chance or
    not: the index of the first value after the split."""
    import numpy as np

    return int(_gains(np.asarray(values, dtype=float)[None, :]).argmax()) + LASTING


def _on_a_scale(values: Sequence[float]) -> npt.NDArray[np.float64]:
    import numpy as np

    series = np.asarray(values, dtype=float)
    scaled: npt.NDArray[np.float64] = np.log(series) if min(values) > 0 else series
    return scaled


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
    length: int,
    proposed: Sequence[int],
    level: float,
    p_value: Callable[[int, int], float],
) -> list[ChangePoint]:
    """Drop the least significant change repeatedly until all remaining ones are significant, each
    by its p-value times the number of proposed changes (Bonferroni). ``p_value`` has that of the
    segment between two indices."""
    points = list(proposed)
    while points:
        bounds = [0, *points, length]
        tested = [
            ChangePoint(point, min(1.0, len(proposed) * p_value(before, after)))
            for before, point, after in zip(bounds, points, bounds[2:], strict=False)
        ]
        weakest = max(tested, key=lambda change: change.p_value)
        if weakest.p_value <= level:
            return tested
        points.remove(weakest.start)
    return []


class _ByChance:
    """How clear the best split of a segment is by chance: of several series, each of which is
    shuffled by itself, in rounds. What was drawn is kept for further questions."""

    def __init__(self, segments: Sequence[npt.NDArray[np.float64]]) -> None:
        import numpy as np

        self._segments = np.stack(segments)
        self._generator = np.random.default_rng(0)
        self._drawn: list[npt.NDArray[np.float64]] = []
        self._rounds = 0

    def p_value(self, share: float, rounds: int, enough: int) -> float:
        """The share of shuffled segments whose best split takes at least this share of their sum of
        squares: in so many rounds, or in fewer where ``enough`` of them are found before."""
        series = len(self._segments)
        least = share * (1 - 1e-12)
        found = 1 + sum(int((drawn >= least).sum()) for drawn in self._drawn)
        while self._rounds < rounds and found < enough:
            # Twice as many in all each time: many small draws take longer than what is not needed.
            fit = _NUMBERS_AT_ONCE // self._segments.size
            drawn = max(1, _AT_ONCE // series, min(fit, self._rounds))
            self._draw(min(drawn, rounds - self._rounds))
            found += int((self._drawn[-1] >= least).sum())
        return found / (series * self._rounds + 1)

    def _draw(self, rounds: int) -> None:
        import numpy as np

        rows = np.tile(self._segments, (rounds, 1))
        self._drawn.append(_shares(self._generator.permuted(rows, axis=1)))
        self._rounds += rounds


def _shares(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Per row the share of its sum of squares that its best split takes; 0 of equal values, and of
    values whose squares are no floats."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square(rows - rows.mean(axis=1, keepdims=True)).sum(axis=1)
        has_share = (np.ptp(rows, axis=1) > 0) & (squares > 0) & np.isfinite(squares)
        gains = _gains(rows).max(axis=1)
        shares = np.zeros(len(rows))
        np.divide(gains, squares, out=shares, where=has_share)
    return shares


def _gains(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Per row the drop of the sum of squares that each split gives."""
    import numpy as np

    n = rows.shape[1]
    left = np.arange(LASTING, n - LASTING + 1)
    sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, left - 1]
    gains: npt.NDArray[np.float64] = sums**2 * n / (left * (n - left))
    return gains
