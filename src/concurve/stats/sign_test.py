"""The sign test: the interval of a median that assumes nothing but independence.

Few values cannot reach a small error probability: of five, the test's least one-sided p-value is
1/32. Beyond that reach Student's t decides as well: a centre is rejected where all values lie on
one side of it **and** t rejects it. So the interval of few values is the wider of the range and of
Student's.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from concurve.stats.moments import mean, stdev, t_quantile

#: Of so many coins or fewer, tails are sums of whole numbers: to import scipy for them would take
#: longer than most views of a run. Of more they are scipy's.
_EXACT_MOST = 10_000


def median_interval(ordered: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the median of at least two values in ascending order, by the sign test.

    Between two order statistics the bound is interpolated for the confidence asked for
    (Hettmansperger & Sheather 1986).
    """
    tail, n = (1 - confidence) / 2, len(ordered)
    if tail < 0.5**n:
        return beyond_reach(ordered, tail)
    inner, weight = between(n, tail)
    low = (1 - weight) * ordered[inner] + weight * ordered[inner + 1]
    high = (1 - weight) * ordered[-1 - inner] + weight * ordered[-2 - inner]
    return low, high


def between(n: int, tail: float) -> tuple[int, float]:
    """Where the lower bound of a median lies among ``n`` values in ascending order: behind the one
    with this index, by this share of the way to the next one. The upper one mirrors it."""
    inner = order_statistic(n, tail)
    outside, inside = binomial_below(n, inner), binomial_below(n, inner + 1)
    share = (tail - outside) / (inside - outside)
    return inner, (n - inner - 1) * share / (inner + 1 + (n - 2 * (inner + 1)) * share)


def beyond_reach(ordered: Sequence[float], tail: float) -> tuple[float, float]:
    """The wider of the range and of Student's interval, for values that are too few for ranks."""
    centre, n = mean(ordered), len(ordered)
    half = t_quantile(1 - tail, n - 1) * stdev(ordered) / math.sqrt(n)
    return min(ordered[0], centre - half), max(ordered[-1], centre + half)


@lru_cache(maxsize=1024)
def order_statistic(n: int, tail: float) -> int:
    """The greatest index i with P(fewer than i + 1 of n below the median) ≤ tail."""
    indices = range(max(1, n // 2))
    return max(0, bisect_right(indices, tail, key=lambda index: binomial_below(n, index)) - 1)


def binomial_below(n: int, most: int) -> float:
    """P(at most ``most`` of ``n`` fair coins show heads)."""
    if n > _EXACT_MOST:
        from scipy.special import bdtr

        return float(bdtr(most, n, 0.5))
    if not 0 <= most < n:
        return 0.0 if most < 0 else 1.0
    tails = _lower_tails(n)
    return tails[most] if most < len(tails) else 1 - tails[n - most - 1]


@lru_cache(maxsize=64)
def _lower_tails(n: int) -> tuple[float, ...]:
    """P(at most k of ``n`` fair coins show heads), for each k up to half of them."""
    whole = 1 << n
    tails, ways, below = [], 1, 0
    for heads in range(n // 2 + 1):
        below += ways
        tails.append(below / whole)
        ways = ways * (n - heads) // (heads + 1)
    return tuple(tails)
