"""Means with their intervals by Student's t: for the parts of a total, which must add up to it.

The medians of the parts do not. Every other figure is a median (:mod:`concurve.stats.centre`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from concurve.estimate import Estimate
from concurve.stats.centre import staged
from concurve.stats.moments import mean, stdev, t_quantile, welch


def mean_estimate(
    values: Sequence[float], unit: str = "", confidence: float = 0.95, is_staged: bool = False
) -> Estimate:
    """The mean of independent trials of what cannot be negative. A single value has no interval.

    ``is_staged``: their spread has set their number, for which a share of the error probability is
    kept back (:func:`~concurve.stats.centre.staged`).
    """
    n, value = len(values), mean(values)
    low = high = None
    if n > 1:
        tail = (1 - staged(confidence, is_staged)) / 2
        half = t_quantile(1 - tail, n - 1) * stdev(values) / math.sqrt(n)
        low, high = max(0.0, value - half), value + half
    return Estimate(value=value, low=low, high=high, n=n, unit=unit, confidence=confidence)


def mean_difference(
    top: Sequence[float],
    bottom: Sequence[float],
    unit: str = "",
    confidence: float = 0.95,
    is_staged: bool = False,
) -> Estimate:
    """By how much one mean exceeds another, whose spread may differ (Welch 1947). No interval where
    a side has a single value; ``is_staged`` as in :func:`mean_estimate`."""
    n = min(len(top), len(bottom))
    if n < 2:
        value = mean(top) - mean(bottom)
        return Estimate(value=value, n=n, unit=unit, confidence=confidence)
    value, error, df = welch(top, bottom)
    tail = (1 - staged(confidence, is_staged)) / 2
    half = t_quantile(1 - tail, df) * error if error else 0.0
    return Estimate(
        value=value, low=value - half, high=value + half, n=n, unit=unit, confidence=confidence
    )
