"""Intervals of means, of ratios of means, and of the coefficient of variation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from concurve.estimate import Estimate
from concurve.stats.moments import mean, stdev, summary, t_quantile
from concurve.stats.welch import deviation_of, growth, log_ratio


def mean_estimate(
    values: Sequence[float],
    unit: str = "",
    confidence: float = 0.95,
    floor: float | None = 0.0,
    pilot: int | None = None,
    ceiling: float | None = None,
) -> Estimate:
    """Mean of independent trials, in the order in which they were made, with its t interval.

    Where the spread of the first ``pilot`` values has set the number of trials, the interval
    rests on that spread and its degrees of freedom; so it keeps its level for normal errors
    (Stein 1945), which the spread of all values would not. ``floor`` and ``ceiling`` bound the
    interval where the quantity cannot lie beyond; ``None`` where it can. A single value has no
    interval.

    Raises:
        ValueError: no values, or one that is not finite.
    """
    n, found = len(values), summary(values)
    centre = found.mean
    low = high = None
    if min(n, pilot or n) > 1:
        beyond = pilot is not None and pilot < n
        deviation, df = deviation_of(values, pilot) if beyond else (found.stdev, n - 1)
        half = t_quantile((1 + confidence) / 2, df) * deviation / math.sqrt(n)
        low, high = centre - half, centre + half
        if floor is not None and centre >= floor:
            low = max(floor, low)
        if ceiling is not None and centre <= ceiling:
            high = min(ceiling, high)
    return Estimate(
        value=centre,
        low=low,
        high=high,
        n=n,
        unit=unit,
        confidence=confidence,
        median=found.median,
        min=found.min,
        max=found.max,
        stdev=found.stdev if n > 1 else None,
    )


def ratio_estimate(
    numerator: Sequence[float],
    denominator: Sequence[float],
    confidence: float = 0.95,
    pilot: int | None = None,
) -> Estimate | None:
    """Ratio of two means of independent positive samples, with its interval on the logarithm
    (see :func:`concurve.stats.welch.log_ratio`). ``None`` where a mean is not above 0.
    """
    top, bottom = mean(numerator), mean(denominator)
    if top <= 0 or bottom <= 0:
        return None
    ratio, n = top / bottom, min(len(numerator), len(denominator))
    log = log_ratio(numerator, denominator, pilot)
    if log is None:
        return Estimate(value=ratio, n=n, confidence=confidence)
    low, high = (ratio * growth(bound - log.value) for bound in log.interval(confidence))
    return Estimate(value=ratio, low=low, high=high, n=n, confidence=confidence)


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
