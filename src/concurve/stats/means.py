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


#: Halvings of the range in which an end of an interval of a share is looked for.
_HALVINGS = 20


def share_of_difference(
    part: tuple[Sequence[float], Sequence[float]],
    whole: tuple[Sequence[float], Sequence[float]],
    is_staged: bool = False,
) -> Estimate:
    """Which share of the difference of two means a part of it is, from 0 to 1 (Fieller 1954).

    The interval has each share ``r`` for which ``part - r * whole`` does not surely differ between
    the two sides: it holds the noise of the whole, too, and that both vary together. No interval
    where a side has a single value.

    Args:
        part: the values of the part, of the upper side and of the lower one.
        whole: those of the whole in the same trials. The difference of its means is above 0.
    """

    def rest(share: float) -> Estimate:
        top, bottom = (
            [one - share * all_of_it for one, all_of_it in zip(*side, strict=True)]
            for side in zip(part, whole, strict=True)
        )
        return mean_difference(top, bottom, is_staged=is_staged)

    def end(inside: float, outside: float) -> float:
        """Where the interval ends between two shares; the second one if it is in it, too."""
        if not _leaves_out_zero(rest(outside)):
            return outside
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            if _leaves_out_zero(rest(middle)):
                outside = middle
            else:
                inside = middle
        return inside

    exact = mean_difference(*part).value / mean_difference(*whole).value
    value = min(1.0, max(0.0, exact))
    n = min(len(side) for side in part)
    if n < 2:
        return Estimate(value=value, n=n)
    if exact != value:  # the part is more than the whole, or less than nothing
        other = 1.0 - value
        reached = value if _leaves_out_zero(rest(value)) else end(value, other)
        return Estimate(value=value, low=min(value, reached), high=max(value, reached), n=n)
    return Estimate(value=value, low=end(value, 0.0), high=end(value, 1.0), n=n)


def _leaves_out_zero(found: Estimate) -> bool:
    return found.low is not None and found.high is not None and not found.low <= 0 <= found.high
