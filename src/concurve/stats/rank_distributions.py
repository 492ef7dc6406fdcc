"""How the signed-rank sum and the rank-sum statistic are distributed under their hypotheses: exact
for few values, normal for many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

#: Above this number of values, a rank sum is taken as normal; below, its distribution is exact.
NORMAL_FROM = 60


def signed_upper_tail(n: int, rank_sum: int) -> float:
    """P(W ≥ rank_sum) of ``n`` values that lie symmetrically around the bound."""
    most = n * (n + 1) // 2
    if n > NORMAL_FROM:
        return _normal_upper_tail(rank_sum, most, _signed_deviation(n))
    return _signed_lower_tails(n)[most - rank_sum] if rank_sum <= most else 0.0


def signed_rejected(n: int, tail: float) -> int:
    """How many rank sums at each end reject, at least one: the most k with P(W < k) ≤ tail."""
    if n > NORMAL_FROM:
        return max(1, _normal_rejected(tail, n * (n + 1) // 2, _signed_deviation(n)))
    return _rejected(_signed_lower_tails(n), tail)


def shift_upper_tail(n: int, m: int, above: int) -> float:
    """P(U ≥ above) of samples of ``n`` and ``m`` values without a shift; U counts the pairs whose
    difference lies above the bound."""
    if n + m > NORMAL_FROM:
        return _normal_upper_tail(above, n * m, _shift_deviation(n, m))
    return _shift_lower_tails(*sorted((n, m)))[n * m - above]


def shift_rejected(n: int, m: int, tail: float) -> int:
    """How many of the differences at each end are rejected: the most k with P(U < k) ≤ tail."""
    if n + m > NORMAL_FROM:
        return max(0, _normal_rejected(tail, n * m, _shift_deviation(n, m)))
    return _rejected(_shift_lower_tails(*sorted((n, m))), tail)


def _signed_deviation(n: int) -> float:
    return math.sqrt(n * (n + 1) * (2 * n + 1) / 24)


def _shift_deviation(n: int, m: int) -> float:
    return math.sqrt(n * m * (n + m + 1) / 12)


def _normal_upper_tail(found: int, most: int, deviation: float) -> float:
    """With the correction for whole numbers."""
    return 0.5 * math.erfc((found - 0.5 - most / 2) / deviation / math.sqrt(2))


def _normal_rejected(tail: float, most: int, deviation: float) -> int:
    return math.floor(most / 2 + NormalDist().inv_cdf(tail) * deviation + 0.5)


def _rejected(tails: Sequence[float], tail: float) -> int:
    rank = 0
    while tails[rank] <= tail:
        rank += 1
    return rank


@lru_cache(maxsize=128)
def _signed_lower_tails(n: int) -> tuple[float, ...]:
    """P(W ≤ w) for each rank sum w of ``n`` values: subsets of 1…n by their sum."""
    counts = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for total in range(len(counts) - 1, rank - 1, -1):
            counts[total] += counts[total - rank]
    return _shares_up_to(counts, 1 << n)


@lru_cache(maxsize=128)
def _shift_lower_tails(n: int, m: int) -> tuple[float, ...]:
    """P(U ≤ u) for each count u of pairs: the coefficients of a Gaussian binomial."""
    counts = [1] + [0] * (n * m)
    for rank in range(1, n + 1):
        for total in range(n * m, m + rank - 1, -1):
            counts[total] -= counts[total - m - rank]
        for total in range(rank, n * m + 1):
            counts[total] += counts[total - rank]
    return _shares_up_to(counts, math.comb(n + m, n))


def _shares_up_to(counts: Sequence[int], whole: int) -> tuple[float, ...]:
    sums, below = [], 0
    for count in counts:
        below += count
        sums.append(below / whole)
    return tuple(sums)
