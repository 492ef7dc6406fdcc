"""The interval of a coefficient of variation, and estimates in other units."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from concurve.estimate import Estimate
from concurve.stats.moments import mean, stdev


def scaled(estimate: Estimate, factor: float, unit: str | None = None) -> Estimate:
    """The estimate times an exact positive factor."""

    def times(value: float | None) -> float | None:
        return None if value is None else value * factor

    return msgspec.structs.replace(
        estimate,
        value=estimate.value * factor,
        low=times(estimate.low),
        high=times(estimate.high),
        unit=estimate.unit if unit is None else unit,
        median=times(estimate.median),
        min=times(estimate.min),
        max=times(estimate.max),
        stdev=times(estimate.stdev),
        mean=times(estimate.mean),
    )


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
