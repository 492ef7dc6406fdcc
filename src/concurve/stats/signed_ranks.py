"""The signed-rank test of a centre (Wilcoxon 1945), with the interval that it gives when inverted.

It assumes that the values lie symmetrically around their centre. It is exact for few values, and
conservative where values are equal.

Log ratios of two programs whose noise differs in shape, one with a slow level and one without, do
not lie symmetrically. Where values are skewed, the sign test must reject as well: so the interval
is the wider of both, and the estimate is the median. Too few values for ranks are judged as
:mod:`concurve.stats.sign_test` says.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence, Set
from functools import lru_cache
from operator import neg
from typing import TYPE_CHECKING, NamedTuple

from concurve.stats.moments import LONG, mean, median, medians, stdev, t_upper
from concurve.stats.rank_distributions import signed_rejected, signed_upper_tail
from concurve.stats.sign_test import beyond_reach, binomial_below, order_statistic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Of more values than this, the means of pairs are not all listed.
_LISTED_MOST = 600
#: So many sums of pairs are listed at once, where there are many samples: they stay in a cache.
_SUMS_AT_ONCE = 100_000
#: Where very many of them are alike, they are known to this share of the range.
_PAIR_MEANS_APART = 1e-9
#: Up to so many values, Python itself lists and sorts the means of pairs sooner than NumPy does.
_PLAIN_MOST = 9
#: Of many values, the pairs of so many say where the ranks of all pairs lie, to this share of them.
_GUIDING = 300
_GUIDED_WITHIN = 0.004
#: Values are taken as skewed if their mean lies so many standard errors from their median. One in
#: six symmetric samples does, for which the sign test costs little.
_SKEWED_FROM = 1.4
#: √(π/2 − 1): the standard error of mean less median, times √n, of normal values of spread 1.
_APART = math.sqrt(math.pi / 2 - 1)


class Ranked(NamedTuple):
    """Values around a centre, in ascending order, as the signed-rank test reads them.

    ``resolution``: the values may be off by so much, because a clock ticked so coarsely.
    """

    values: tuple[float, ...]
    resolution: float = 0.0

    @property
    def value(self) -> float:
        """The Hodges–Lehmann estimate: the median of the means of all pairs (1963); the median of
        skewed values."""
        if self.is_skewed:
            return median(self.values)
        return _middle(*self._pair_means(*self._middles()))

    @property
    def is_skewed(self) -> bool:
        """Do mean and median lie further apart than those of symmetric values (Cabilio & Masaro
        1996)?"""
        values: Sequence[float] = self.values
        if len(values) >= LONG:
            import numpy as np

            values = np.asarray(values)  # type: ignore[assignment]  # read three times
        apart = abs(mean(values) - median(values))
        return apart > _SKEWED_FROM * _APART * stdev(values) / math.sqrt(len(values))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds of the centre: those that the test does not reject."""
        return self.value_and_interval(confidence)[1:]

    def value_and_interval(self, confidence: float = 0.95) -> tuple[float, float, float]:
        """The estimate and its bounds: together they take one look at all pairs."""
        tail, n = (1 - confidence) / 2, len(self.values)
        is_skewed = self.is_skewed
        ranks: tuple[int, ...] = () if is_skewed else self._middles()
        if tail < 0.5**n:
            found = self._pair_means(*ranks)
            low, high = beyond_reach(self.values, tail)
        else:
            beyond, pairs = signed_rejected(n, tail) - 1, n * (n + 1) // 2
            low, high, *found = self._pair_means(beyond, pairs - 1 - beyond, *ranks)
            if is_skewed:
                outer = order_statistic(n, tail)
                low, high = min(low, self.values[outer]), max(high, self.values[-1 - outer])
        value = median(self.values) if is_skewed else _middle(*found)
        return value, low - self.resolution, high + self.resolution

    def _middles(self) -> tuple[int, int]:
        return _middles(len(self.values))

    def _pair_means(self, *ranks: int) -> list[float]:
        return _pair_means(self.values, ranks) if ranks else []

    def p_above(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the centre is at most ``bound``."""
        bound += self.resolution
        if self.values[0] > bound:
            return _all_above(self.values, bound)
        n = len(self.values)
        p = signed_upper_tail(n, _pairs_above(self.values, bound))
        if self.is_skewed:
            p = max(p, binomial_below(n, bisect_right(self.values, bound)))
        return p

    def p_below(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the centre is at least ``bound``."""
        if self.values[-1] < bound - self.resolution and not _chance_of_all(len(self.values)):
            return 0.0  # what the values mirrored say, without mirroring that many
        return Ranked(tuple(map(neg, reversed(self.values))), self.resolution).p_above(-bound)


def ranked(values: Sequence[float], resolution: float = 0.0) -> Ranked | None:
    """The test of these values; ``None`` for fewer than two."""
    return Ranked(tuple(sorted(values)), resolution) if len(values) > 1 else None


def values_and_intervals(
    rows: npt.NDArray[np.float64], confidence: float = 0.95
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """:meth:`Ranked.value_and_interval` of very many samples of one length at once, without their
    resolutions: the estimates, the lower and the upper bounds. Each row stands in ascending order,
    and has values enough for ranks (:func:`are_enough`)."""
    import numpy as np

    n = rows.shape[1]
    tail, pairs = (1 - confidence) / 2, n * (n + 1) // 2
    beyond, outer = signed_rejected(n, tail) - 1, order_statistic(n, tail)
    means = _pair_means_of_rows(rows, beyond, pairs - 1 - beyond, *_middles(n))
    low, high = means[:2]
    values, is_skewed = _values_of(rows, means[2:])
    return (
        values,
        np.where(is_skewed, np.minimum(low, rows[:, outer]), low),
        np.where(is_skewed, np.maximum(high, rows[:, n - 1 - outer]), high),
    )


def values_of_rows(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The estimates of :func:`values_and_intervals` alone."""
    return _values_of(rows, _pair_means_of_rows(rows, *_middles(rows.shape[1])))[0]


def _pair_means_of_rows(rows: npt.NDArray[np.float64], *ranks: int) -> npt.NDArray[np.float64]:
    """For each rank the means of pairs with it, of all rows."""
    import numpy as np

    places, (first, second) = sorted(set(ranks)), _pairs(rows.shape[1])
    found = np.empty((len(ranks), len(rows)))
    chunk = max(1, _SUMS_AT_ONCE // len(first))
    for begin in range(0, len(rows), chunk):
        some = rows[begin : begin + chunk]
        sums = some.take(first, axis=1)
        sums += some.take(second, axis=1)
        sums.partition(places, axis=1)
        found[:, begin : begin + chunk] = sums[:, ranks].T / 2
    return found


def _values_of(
    rows: npt.NDArray[np.float64], middles: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The estimate of each row by the middle two means of its pairs, and whether it is skewed."""
    import numpy as np

    of_rows = medians(rows)
    error = _APART * rows.std(axis=1, ddof=1) / math.sqrt(rows.shape[1])
    is_skewed = np.abs(rows.mean(axis=1) - of_rows) > _SKEWED_FROM * error
    return np.where(is_skewed, of_rows, (middles[0] + middles[1]) / 2), is_skewed


def are_enough(n: int, confidence: float) -> bool:
    """Do so many values give an interval by ranks, and few enough pairs to be listed?"""
    return 1 < n <= _LISTED_MOST and (1 - confidence) / 2 >= 0.5**n


def p_values_above(
    rows: npt.NDArray[np.float64], bounds: npt.NDArray[np.float64], enough: float = 0.0
) -> npt.NDArray[np.float64]:
    """:meth:`Ranked.p_above` of very many samples at once: of the values in each row that are no
    NaN, against its own bound. 1 for fewer than two values. A p-value of at most ``enough`` may be
    an upper bound."""
    import numpy as np

    held = ~np.isnan(rows)
    n = held.sum(axis=1)
    above = np.where(held, rows - bounds[:, None], -np.inf)
    ranks = _rank_sums(above)
    p = np.ones(len(rows))
    # By sets: the first call of numpy's own function imports masked arrays, which takes longer.
    for count in sorted(set(n[n > 1].tolist())):
        own = n == count
        most = count * (count + 1) // 2
        sums = ranks[own].tolist()
        tails = {rank: signed_upper_tail(count, rank) for rank in set(sums)}
        p[own] = [tails[rank] for rank in sums]
        is_whole = count == rows.shape[1] and bool(own.all())
        values = above if is_whole else above[own][held[own]].reshape(-1, count)
        p[own] = _raised_by_sign_test(p[own], values)
        whole, least = ranks[own] == most, 0.5**count
        p[own & (ranks == most)] = (
            least if least <= enough else np.minimum(least, _t_above_all(values[whole]))
        )
    return p


def _rank_sums(above: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Per row the rank sum of the values above 0; of equal sizes, those above it come first. Then
    each of them is above 0 in the mean with as many values as its place says."""
    import numpy as np

    # The bits of floats that are not negative are in the order of the floats, and leave one bit for
    # the side: one sort of plain numbers takes a fifth of the time of a sort by two keys.
    keys = np.abs(above).view(np.uint64) << np.uint64(1)
    keys |= above <= 0
    keys.sort(axis=1)
    is_above: npt.NDArray[np.int64] = 1 - (keys & np.uint64(1)).astype(np.int64)
    return is_above @ np.arange(1, above.shape[1] + 1)


def _raised_by_sign_test(
    p: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The p-values of the rows, or the sign test's where that is greater and the row is skewed."""
    import numpy as np

    count = rows.shape[1]
    below = (rows <= 0).sum(axis=1).tolist()
    tails = {most: binomial_below(count, most) for most in set(below)}
    by_signs = np.array([tails[most] for most in below])
    greater = np.flatnonzero(by_signs > p)
    chosen = rows[greater]
    apart = abs(chosen.mean(axis=1) - medians(chosen))
    error = _APART * chosen.std(axis=1, ddof=1) / math.sqrt(count)
    raised = greater[apart > _SKEWED_FROM * error]
    p[raised] = by_signs[raised]
    return p


def _t_above_all(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Student's one-sided p-values that the means of the rows are above 0."""
    import numpy as np
    from scipy.special import stdtr

    count = rows.shape[1]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        spread = rows.std(axis=1, ddof=1)
        t = rows.mean(axis=1) / (spread / math.sqrt(count))
    p = np.where(spread == 0, 0.0, stdtr(count - 1, -t))
    return np.asarray(np.where(np.isnan(p), 1.0, p))


def _chance_of_all(n: int) -> float:
    """That all of so many values lie on one side of their centre; of very many it is below the
    least double."""
    return 0.5**n


def _all_above(values: Sequence[float], bound: float) -> float:
    """The p-value where all values lie above a bound. Student's t is asked only where it can be
    less: scipy, which knows it, takes as long to import as many views of a run."""
    by_ranks = _chance_of_all(len(values))
    return min(by_ranks, _t_above(values, bound)) if by_ranks else 0.0


def _t_above(values: Sequence[float], bound: float) -> float:
    spread = stdev(values)
    if spread == 0:
        return 0.0
    n = len(values)
    return t_upper((mean(values) - bound) / (spread / math.sqrt(n)), n - 1)


def _walsh(values: Sequence[float]) -> list[float]:
    """Means of all pairs, each value with itself included, in ascending order."""
    return sorted(
        (first + second) / 2 for index, first in enumerate(values) for second in values[index:]
    )


@lru_cache(maxsize=8)
def _pairs(n: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The places of both values of each pair."""
    import numpy as np

    rows, columns = np.triu_indices(n)
    return rows, columns


def _middles(n: int) -> tuple[int, int]:
    """The ranks of the middle two among the means of all pairs of so many values."""
    pairs = n * (n + 1) // 2
    return (pairs - 1) // 2, pairs // 2


def _middle(low: float, high: float) -> float:
    return low if low == high else (low + high) / 2


def _pair_means(values: Sequence[float], ranks: Sequence[int]) -> list[float]:
    """The means of pairs with these ranks (from 0) among all in ascending order."""
    if len(values) <= _PLAIN_MOST:
        averages = _walsh(values)
        return [averages[rank] for rank in ranks]
    if len(values) <= _LISTED_MOST:
        import numpy as np

        array, (rows, columns) = np.asarray(values), _pairs(len(values))
        found = np.partition(array[rows] + array[columns], sorted(set(ranks)))
        return [float(found[rank]) / 2 for rank in ranks]
    import numpy as np

    array = np.asarray(values)
    guides, known = _guides(array, ranks), dict[int, float]()
    for rank in ranks:
        if rank not in known:
            known |= _found_pair_means(array, guides[rank], rank, guides.keys())
    return [known[rank] for rank in ranks]


def _guides(array: npt.NDArray[np.float64], ranks: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Between which bounds the means of pairs with these ranks probably lie: the pairs of a part of
    the values, every so many of them, lie nearly as those of all do."""
    step = max(1, len(array) // _GUIDING)
    part = array[step // 2 :: step]
    rows, columns = _pairs(len(part))
    sums, all_pairs = part[rows] + part[columns], len(array) * (len(array) + 1) // 2

    def place(share: float) -> int:
        return min(max(int(share * len(sums)), 0), len(sums) - 1)

    shares = {rank: rank / all_pairs for rank in ranks}
    places = {
        rank: (place(share - _GUIDED_WITHIN), place(share + _GUIDED_WITHIN))
        for rank, share in shares.items()
    }
    sums.partition(sorted({at for both in places.values() for at in both}))
    return {
        rank: (float(sums[low]) / 2, float(sums[high]) / 2) for rank, (low, high) in places.items()
    }


def _found_pair_means(
    array: npt.NDArray[np.float64], guides: tuple[float, float], rank: int, wanted: Set[int]
) -> dict[int, float]:
    """The mean of pairs with this rank by bisection, and those of other wanted ranks that are met:
    very many pairs are counted, and the last few between two bounds are listed."""
    import numpy as np

    places = np.arange(len(array))

    def up_to(bound: float) -> npt.NDArray[np.intp]:
        """For each value, before which one its means with others exceed the bound."""
        return np.maximum(np.searchsorted(array, 2 * bound - array, side="right"), places)

    low, high = float(array[0]), float(array[-1])
    first, last = places, np.full(len(array), len(array))
    ends, finest = [0, len(array) * (len(array) + 1) // 2], _PAIR_MEANS_APART * (high - low)

    def is_wide() -> bool:
        """Are too many left to be listed? Neighbouring floats have nothing between them, however
        far apart they are."""
        is_many = ends[1] - ends[0] > 4 * len(array)
        return is_many and high - low > finest and low < low + (high - low) / 2 < high

    def divide(bound: float) -> None:
        nonlocal low, high, first, last
        ending = up_to(bound)
        count = int((ending - places).sum())
        if count > rank:
            high, last, ends[1] = bound, ending, count
        else:
            low, first, ends[0] = bound, ending, count

    for bound in guides:
        if low < bound < high and is_wide():
            divide(bound)
    while is_wide():
        width = high - low
        # Where the counts say that it lies, then on the other side of that, then in the middle.
        guess = low + (rank + 0.5 - ends[0]) / (ends[1] - ends[0]) * width
        for bound in (guess, guess - 0.02 * width, guess + 0.02 * width):
            if low < bound < high and is_wide():
                divide(bound)
        if high - low > width / 2 and is_wide():
            divide(low + (high - low) / 2)
    left = ends[1] - ends[0]
    if left > 4 * len(array):
        return {rank: high}
    lengths = last - first
    within = np.arange(left) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    sums = np.repeat(array, lengths) + array[np.repeat(first, lengths) + within]
    met = sorted(rank - ends[0] for rank in wanted if ends[0] <= rank < ends[1])
    sums.partition(met)
    return {ends[0] + place: float(sums[place]) / 2 for place in met}


def _pairs_above(values: Sequence[float], bound: float) -> int:
    """How many means of pairs lie above the bound: the rank sum, where no values are tied."""
    found, first = 0, 0
    for last in range(len(values) - 1, -1, -1):
        while first <= last and values[first] + values[last] <= 2 * bound:
            first += 1
        if first > last:
            break
        found += last - first + 1
    return found
