"""The interval of a coefficient of variation, and estimates in other units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from concurve.estimate import Estimate
from concurve.stats.moments import mean, stdev, t_quantile

#: The tails of fewer values are not known.
_TAILS_FROM = 10


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
    """Coefficient of variation, of three values at least, with the wider of two intervals: Vangel's
    modification of McKay's (1996), which takes the values as normal, and that of the standard
    deviation by Bonett (2006), which takes their tails into account. Tails that the values do not
    show are in neither, and those of fewer than ten are not known."""
    from scipy.special import chdtri

    n, ratio = len(values), stdev(values) / abs(mean(values))
    df = n - 1

    def bound(upper_tail: float) -> float:
        u = float(chdtri(df, upper_tail))
        inside = ((u + 2) / n - 1) * ratio**2 + u / df
        return float(ratio / inside**0.5) if inside > 0 else float("inf")

    tail = (1 - confidence) / 2
    share, half = _bonett(values, tail)
    low, high = ratio * share * math.exp(-half), ratio * share * math.exp(half)
    return Estimate(
        value=ratio,
        low=min(bound(tail), low),
        high=max(bound(1 - tail), high),
        n=n,
        confidence=confidence,
    )


def _bonett(values: Sequence[float], tail: float) -> tuple[float, float]:
    """Of the standard deviation: the middle of its interval as a multiple of it, and half the
    interval on the logarithm. The kurtosis is taken about a trimmed mean, as that of few values
    with a long tail would be too small."""
    n, spread = len(values), stdev(values)
    quantile = t_quantile(1 - tail, math.inf)
    if n < max(_TAILS_FROM, 2 * quantile) or spread == 0:
        return 1.0, 0.0
    ordered, cut = sorted(values), int(n * 0.5 / math.sqrt(n - 4))
    trimmed = mean(ordered[cut : n - cut])
    fourth = math.fsum(((value - trimmed) / spread) ** 4 for value in values)
    kurtosis = n * fourth / (n - 1) ** 2
    small = n / (n - quantile)
    error = math.sqrt(max(0.0, kurtosis - (n - 3) / n) / (n - 1))
    return math.sqrt(small), quantile * small * error / 2
