"""Distribution-free tests of a centre, with the intervals that they give when inverted.

The sign test makes no assumption but independence; the signed-rank test (Wilcoxon 1945) assumes
that the values lie symmetrically around their centre; the rank-sum test of two samples (Mann &
Whitney 1947) that their noise has one shape. All are exact for few values, and conservative where
values are equal.

Log ratios of two programs whose noise differs in shape, one with a slow level and one without, do
not lie symmetrically. Where values are skewed, the sign test must reject as well: so the interval
is the wider of both, and the estimate is the median.

Few values cannot reach a small error probability: of five, the sign test's least one-sided p-value
is 1/32. Beyond that reach Student's t decides as well: a centre is rejected where all values lie
on one side of it **and** t rejects it. So the intervals of few values are the wider of the range
and of Student's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from concurve.stats.moments import mean, median, square, stdev, t_quantile, t_upper

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Above this number of values, the rank sum is taken as normal; below, its distribution is exact.
_NORMAL_FROM = 60
#: Of more values than this, the means of pairs are not listed.
_LISTED_MOST = 600
#: They are then known to this share of the range.
_PAIR_MEANS_APART = 1e-9
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
        n = len(self.values)
        pairs = n * (n + 1) // 2
        low, high = _pair_means(self.values, ((pairs - 1) // 2, pairs // 2))
        return low if low == high else (low + high) / 2

    @property
    def is_skewed(self) -> bool:
        """Do mean and median lie further apart than those of symmetric values (Cabilio & Masaro
        1996)?"""
        apart = abs(mean(self.values) - median(self.values))
        error = _APART * stdev(self.values) / math.sqrt(len(self.values))
        return apart > _SKEWED_FROM * error

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds of the centre: those that the test does not reject."""
        tail, n = (1 - confidence) / 2, len(self.values)
        if tail < 0.5**n:
            low, high = beyond_reach(self.values, tail)
        else:
            beyond, pairs = _rejected_ranks(n, tail) - 1, n * (n + 1) // 2
            low, high = _pair_means(self.values, (beyond, pairs - 1 - beyond))
            if self.is_skewed:
                outer = _order_statistic(n, tail)
                low, high = min(low, self.values[outer]), max(high, self.values[-1 - outer])
        return low - self.resolution, high + self.resolution

    def p_above(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the centre is at most ``bound``."""
        bound += self.resolution
        if self.values[0] > bound:
            return min(0.5 ** len(self.values), _t_above(self.values, bound))
        n = len(self.values)
        p = _upper_tail(n, _pairs_above(self.values, bound))
        if self.is_skewed:
            p = max(p, _binomial_below(n, sum(value <= bound for value in self.values)))
        return p

    def p_below(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the centre is at least ``bound``."""
        return Ranked(tuple(-value for value in reversed(self.values)), self.resolution).p_above(
            -bound
        )


class Shifted(NamedTuple):
    """How far one sample lies above another, both in ascending order, as the rank-sum test reads
    them. ``resolution`` as in :class:`Ranked`."""

    top: tuple[float, ...]
    bottom: tuple[float, ...]
    resolution: float = 0.0

    @property
    def value(self) -> float:
        """The Hodges–Lehmann estimate: the median of the differences of all pairs (1963)."""
        return median(_differences(self.top, self.bottom))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds of the shift: those that the test does not reject."""
        tail, n, m = (1 - confidence) / 2, len(self.top), len(self.bottom)
        if tail < 1 / math.comb(n + m, n):
            low, high = self._beyond_reach(tail)
        else:
            found = _differences(self.top, self.bottom)
            rank = _rejected_differences(n, m, tail)
            # The normal approximation may reach less far than the exact test.
            low, high = (found[rank - 1], found[-rank]) if rank else self._beyond_reach(tail)
        return low - self.resolution, high + self.resolution

    def p_above(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the shift is at most ``bound``."""
        bound += self.resolution
        n, m = len(self.top), len(self.bottom)
        if self.top[0] - self.bottom[-1] > bound:
            return min(1 / math.comb(n + m, n), self._t_above(bound))
        return _upper_tail_of_two(n, m, _differences_above(self.top, self.bottom, bound))

    def p_below(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the shift is at least ``bound``."""
        return Shifted(self.bottom, self.top, self.resolution).p_above(-bound)

    def _beyond_reach(self, tail: float) -> tuple[float, float]:
        """The wider of the range of all differences and of the interval by Student's t for
        spreads that differ (Welch 1947)."""
        apart, error, df = self._student()
        half = t_quantile(1 - tail, df) * error if error else 0.0
        return (
            min(self.top[0] - self.bottom[-1], apart - half),
            max(self.top[-1] - self.bottom[0], apart + half),
        )

    def _t_above(self, bound: float) -> float:
        apart, error, df = self._student()
        return t_upper((apart - bound) / error, df) if error else 0.0

    def _student(self) -> tuple[float, float, float]:
        """The difference of the means, its standard error, and the degrees of freedom."""
        first, second = (square(stdev(side)) / len(side) for side in (self.top, self.bottom))
        total = first + second
        shares = square(first) / (len(self.top) - 1) + square(second) / (len(self.bottom) - 1)
        least = min(len(self.top), len(self.bottom)) - 1
        df = square(total) / shares if shares and math.isfinite(square(total)) else least
        return mean(self.top) - mean(self.bottom), math.sqrt(total), df


def shifted(
    top: Sequence[float], bottom: Sequence[float], resolution: float = 0.0
) -> Shifted | None:
    """The test of two samples; ``None`` where one has fewer than two values."""
    if min(len(top), len(bottom)) < 2:
        return None
    return Shifted(tuple(sorted(top)), tuple(sorted(bottom)), resolution)


def ranked(values: Sequence[float], resolution: float = 0.0) -> Ranked | None:
    """The test of these values; ``None`` for fewer than two."""
    return Ranked(tuple(sorted(values)), resolution) if len(values) > 1 else None


def p_values_above(
    rows: npt.NDArray[np.float64], bounds: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """:meth:`Ranked.p_above` of very many samples at once: of the values in each row that are no
    NaN, against its own bound. 1 for fewer than two values."""
    import numpy as np

    held = ~np.isnan(rows)
    n = held.sum(axis=1)
    above = np.where(held, rows - bounds[:, None], -np.inf)
    sizes = np.where(held, np.abs(above), np.inf)
    # In ascending order of their sizes, those above the bound first among equals, each value above
    # it lies above as many means of pairs as its place says.
    order = np.lexsort((above <= 0, sizes), axis=-1)
    places = np.arange(1, rows.shape[1] + 1)
    ranks = (np.take_along_axis(above, order, axis=1) > 0) @ places
    p = np.ones(len(rows))
    for count in np.unique(n[n > 1]).tolist():
        own = n == count
        most = count * (count + 1) // 2
        known, place = np.unique(ranks[own], return_inverse=True)
        p[own] = np.array([_upper_tail(count, rank) for rank in known.tolist()])[place]
        p[own] = np.maximum(p[own], _sign_test_of_skewed(above, held, own, count))
        whole = own & (ranks == most)
        p[whole] = np.minimum(0.5**count, _t_above_all(above, held, whole, count))
    return p


def _sign_test_of_skewed(
    above: npt.NDArray[np.float64],
    held: npt.NDArray[np.bool_],
    chosen: npt.NDArray[np.bool_],
    count: int,
) -> npt.NDArray[np.float64]:
    """The sign test's p-values of the chosen rows that are skewed; 0 of others."""
    import numpy as np
    from scipy.special import bdtr

    values = above[chosen][held[chosen]].reshape(-1, count)
    apart = abs(values.mean(axis=1) - np.median(values, axis=1))
    error = _APART * values.std(axis=1, ddof=1) / math.sqrt(count)
    p = bdtr((values <= 0).sum(axis=1), count, 0.5)
    return np.where(apart > _SKEWED_FROM * error, p, 0.0)


def _t_above_all(
    above: npt.NDArray[np.float64],
    held: npt.NDArray[np.bool_],
    chosen: npt.NDArray[np.bool_],
    count: int,
) -> npt.NDArray[np.float64]:
    """Student's one-sided p-values that the means of the chosen rows are above 0."""
    import numpy as np
    from scipy.special import stdtr

    values = above[chosen][held[chosen]].reshape(-1, count)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        spread = values.std(axis=1, ddof=1)
        t = values.mean(axis=1) / (spread / math.sqrt(count))
    p = np.where(spread == 0, 0.0, stdtr(count - 1, -t))
    return np.asarray(np.where(np.isnan(p), 1.0, p))


def median_interval(ordered: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the median of at least two values in ascending order, by the sign test.

    Between two order statistics the bound is interpolated for the confidence asked for
    (Hettmansperger & Sheather 1986).
    """
    tail, n = (1 - confidence) / 2, len(ordered)
    if tail < 0.5**n:
        return beyond_reach(ordered, tail)
    inner = _order_statistic(n, tail)
    outside, inside = _binomial_below(n, inner), _binomial_below(n, inner + 1)
    share = (tail - outside) / (inside - outside)
    weight = (n - inner - 1) * share / (inner + 1 + (n - 2 * (inner + 1)) * share)
    low = (1 - weight) * ordered[inner] + weight * ordered[inner + 1]
    high = (1 - weight) * ordered[-1 - inner] + weight * ordered[-2 - inner]
    return low, high


def beyond_reach(ordered: Sequence[float], tail: float) -> tuple[float, float]:
    """The wider of the range and of Student's interval, for values that are too few for ranks."""
    centre, n = mean(ordered), len(ordered)
    half = t_quantile(1 - tail, n - 1) * stdev(ordered) / math.sqrt(n)
    return min(ordered[0], centre - half), max(ordered[-1], centre + half)


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


def _pair_means(values: Sequence[float], ranks: tuple[int, int]) -> tuple[float, float]:
    """The means of pairs with these two ranks (from 0) among all in ascending order."""
    if len(values) <= _NORMAL_FROM:
        averages = _walsh(values)
        return averages[ranks[0]], averages[ranks[1]]
    if len(values) <= _LISTED_MOST:
        import numpy as np

        array, (rows, columns) = np.asarray(values), _pairs(len(values))
        found = np.partition(array[rows] + array[columns], ranks)
        return float(found[ranks[0]]) / 2, float(found[ranks[1]]) / 2
    first = _pair_mean(values, ranks[0])
    return first, first if ranks[0] == ranks[1] else _pair_mean(values, ranks[1])


def _pair_mean(values: Sequence[float], rank: int) -> float:
    """The mean of pairs with this rank by bisection: very many pairs are counted, not listed."""
    import numpy as np

    array, places = np.asarray(values), np.arange(len(values))

    def up_to(bound: float) -> int:
        counts = np.searchsorted(array, 2 * bound - array, side="right") - places
        return int(counts[counts > 0].sum())

    low, high = float(values[0]), float(values[-1])
    ends, finest = [0, len(values) * (len(values) + 1) // 2], _PAIR_MEANS_APART * (high - low)
    # Neighbouring floats have nothing between them, however far apart they are.
    while high - low > finest and low < low + (high - low) / 2 < high:
        width = high - low
        # Where the counts say that it lies, then on the other side of that, then in the middle.
        share = (rank + 0.5 - ends[0]) / (ends[1] - ends[0])
        guess = low + share * width
        for bound in (guess, guess - 0.02 * width, guess + 0.02 * width):
            if low < bound < high:
                count = up_to(bound)
                low, high = (low, bound) if count > rank else (bound, high)
                ends[count > rank] = count
        if high - low > width / 2:
            middle = low + (high - low) / 2
            count = up_to(middle)
            low, high = (low, middle) if count > rank else (middle, high)
            ends[count > rank] = count
    return high


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


def _upper_tail(n: int, rank_sum: int) -> float:
    """P(W ≥ rank_sum) of ``n`` values under the hypothesis of symmetry."""
    most = n * (n + 1) // 2
    if n > _NORMAL_FROM:
        deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return 0.5 * math.erfc((rank_sum - 0.5 - most / 2) / deviation / math.sqrt(2))
    return _lower_tails(n)[most - rank_sum] if rank_sum <= most else 0.0


def _rejected_ranks(n: int, tail: float) -> int:
    """How many rank sums at each end reject, at least one: the most k with P(W < k) ≤ tail."""
    if n > _NORMAL_FROM:
        from scipy.special import ndtri

        deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(1, math.floor(n * (n + 1) / 4 + float(ndtri(tail)) * deviation + 0.5))
    tails = _lower_tails(n)
    rank = 0
    while tails[rank] <= tail:
        rank += 1
    return rank


@lru_cache(maxsize=128)
def _lower_tails(n: int) -> tuple[float, ...]:
    """P(W ≤ w) for each rank sum w of ``n`` values: subsets of 1…n by their sum."""
    counts = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for total in range(len(counts) - 1, rank - 1, -1):
            counts[total] += counts[total - rank]
    whole, sums, below = 1 << n, [], 0
    for count in counts:
        below += count
        sums.append(below / whole)
    return tuple(sums)


def _differences(top: Sequence[float], bottom: Sequence[float]) -> list[float]:
    """The differences of all pairs, in ascending order."""
    if len(top) * len(bottom) > _NORMAL_FROM**2:
        import numpy as np

        return list(
            np.sort(np.subtract.outer(np.asarray(top), np.asarray(bottom)).ravel()).tolist()
        )
    return sorted(high - low for high in top for low in bottom)


def _differences_above(top: Sequence[float], bottom: Sequence[float], bound: float) -> int:
    """Of how many pairs the difference lies above the bound."""
    found, below = 0, 0
    for high in top:
        while below < len(bottom) and high - bottom[below] > bound:
            below += 1
        found += below
    return found


def _upper_tail_of_two(n: int, m: int, above: int) -> float:
    """P(U ≥ above) of samples of ``n`` and ``m`` values under the hypothesis of no shift."""
    if n + m > _NORMAL_FROM:
        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        return 0.5 * math.erfc((above - 0.5 - n * m / 2) / deviation / math.sqrt(2))
    return _lower_tails_of_two(*sorted((n, m)))[n * m - above]


def _rejected_differences(n: int, m: int, tail: float) -> int:
    """How many of the differences at each end are rejected: the most k with P(U < k) ≤ tail."""
    if n + m > _NORMAL_FROM:
        from scipy.special import ndtri

        deviation = math.sqrt(n * m * (n + m + 1) / 12)
        return max(0, math.floor(n * m / 2 + float(ndtri(tail)) * deviation + 0.5))
    tails = _lower_tails_of_two(*sorted((n, m)))
    rank = 0
    while tails[rank] <= tail:
        rank += 1
    return rank


@lru_cache(maxsize=128)
def _lower_tails_of_two(n: int, m: int) -> tuple[float, ...]:
    """P(U ≤ u) for each count u of pairs: the coefficients of a Gaussian binomial."""
    counts = [1] + [0] * (n * m)
    for rank in range(1, n + 1):
        for total in range(n * m, m + rank - 1, -1):
            counts[total] -= counts[total - m - rank]
        for total in range(rank, n * m + 1):
            counts[total] += counts[total - rank]
    whole, sums, below = math.comb(n + m, n), [], 0
    for count in counts:
        below += count
        sums.append(below / whole)
    return tuple(sums)


@lru_cache(maxsize=1024)
def _order_statistic(n: int, tail: float) -> int:
    """The greatest index i with P(fewer than i + 1 of n below the median) ≤ tail."""
    index = 0
    while index + 1 < n // 2 and _binomial_below(n, index + 1) <= tail:
        index += 1
    return index


@lru_cache(maxsize=4096)
def _binomial_below(n: int, most: int) -> float:
    """P(at most ``most`` of ``n`` fair coins show heads)."""
    from scipy.special import bdtr

    return float(bdtr(most, n, 0.5))
