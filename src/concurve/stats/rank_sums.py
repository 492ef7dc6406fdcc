"""The rank-sum test of two samples (Mann & Whitney 1947), with the interval of their shift.

It assumes that the noise of both has one shape. It is exact for few values, and conservative where
values are equal. Where values are too few for ranks, a shift is rejected if all differences of
pairs lie on one side of it **and** Student's t for spreads that differ rejects it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from concurve.stats.moments import median, t_quantile, t_upper, welch
from concurve.stats.rank_distributions import NORMAL_FROM, shift_rejected, shift_upper_tail


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
            rank = shift_rejected(n, m, tail)
            # The normal approximation may reach less far than the exact test.
            low, high = (found[rank - 1], found[-rank]) if rank else self._beyond_reach(tail)
        return low - self.resolution, high + self.resolution

    def p_above(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the shift is at most ``bound``."""
        bound += self.resolution
        n, m = len(self.top), len(self.bottom)
        if self.top[0] - self.bottom[-1] > bound:
            return min(1 / math.comb(n + m, n), self._t_above(bound))
        return shift_upper_tail(n, m, _differences_above(self.top, self.bottom, bound))

    def p_below(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the shift is at least ``bound``."""
        return Shifted(self.bottom, self.top, self.resolution).p_above(-bound)

    def _beyond_reach(self, tail: float) -> tuple[float, float]:
        """The wider of the range of all differences and of the interval by Student's t for
        spreads that differ (Welch 1947)."""
        apart, error, df = welch(self.top, self.bottom)
        half = t_quantile(1 - tail, df) * error if error else 0.0
        return (
            min(self.top[0] - self.bottom[-1], apart - half),
            max(self.top[-1] - self.bottom[0], apart + half),
        )

    def _t_above(self, bound: float) -> float:
        apart, error, df = welch(self.top, self.bottom)
        return t_upper((apart - bound) / error, df) if error else 0.0


def shifted(
    top: Sequence[float], bottom: Sequence[float], resolution: float = 0.0
) -> Shifted | None:
    """The test of two samples; ``None`` where one has fewer than two values."""
    if min(len(top), len(bottom)) < 2:
        return None
    return Shifted(tuple(sorted(top)), tuple(sorted(bottom)), resolution)


def _differences(top: Sequence[float], bottom: Sequence[float]) -> list[float]:
    """The differences of all pairs, in ascending order."""
    if len(top) * len(bottom) > NORMAL_FROM**2:
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
