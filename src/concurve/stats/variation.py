"""The coefficient of variation and its interval."""

from __future__ import annotations

from collections.abc import Sequence

from concurve.estimate import Estimate
from concurve.stats.moments import mean, stdev


def variation_estimate(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Coefficient of variation with Vangel's modification of McKay's interval (1996)."""
    from scipy.special import chdtri

    n, ratio = len(values), stdev(values) / abs(mean(values))
    df = n - 1

    def bound(upper_tail: float) -> float:
        u = float(chdtri(df, upper_tail))
        inside = ((u + 2) / n - 1) * ratio**2 + u / df
        return float(ratio / inside**0.5) if inside > 0 else float("inf")

    tail = (1 - confidence) / 2
    return Estimate(value=ratio, low=bound(tail), high=bound(1 - tail), n=n, confidence=confidence)
