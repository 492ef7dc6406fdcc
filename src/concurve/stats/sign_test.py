"""The sign test: the interval of a median that assumes nothing but independence.

Few values cannot reach a small error probability: of five, the test's least one-sided p-value is
1/32. Beyond that reach Student's t decides as well: a centre is rejected where all values lie on
one side of it **and** t rejects it. So the interval of few values is the wider of the range and of
Student's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from concurve.stats.moments import mean, stdev, t_quantile


def median_interval(ordered: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the median of at least two values in ascending order, by the sign test.

    Between two order statistics the bound is interpolated for the confidence asked for
    (Hettmansperger & Sheather 1986).
    """
    tail, n = (1 - confidence) / 2, len(ordered)
    if tail < 0.5**n:
        return beyond_reach(ordered, tail)
    inner = order_statistic(n, tail)
    outside, inside = binomial_below(n, inner), binomial_below(n, inner + 1)
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


@lru_cache(maxsize=1024)
def order_statistic(n: int, tail: float) -> int:
    """The greatest index i with P(fewer than i + 1 of n below the median) ≤ tail."""
    index = 0
    while index + 1 < n // 2 and binomial_below(n, index + 1) <= tail:
        index += 1
    return index


@lru_cache(maxsize=4096)
def binomial_below(n: int, most: int) -> float:
    """P(at most ``most`` of ``n`` fair coins show heads)."""
    from scipy.special import bdtr

    return float(bdtr(most, n, 0.5))
