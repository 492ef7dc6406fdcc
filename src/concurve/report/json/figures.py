"""Estimates without what is not finite."""

from __future__ import annotations

import math

import msgspec

from concurve.estimate import Estimate


class Indicator(msgspec.Struct, frozen=True):
    """An estimate; what is not finite is left out."""

    value: float
    low: float | msgspec.UnsetType
    high: float | msgspec.UnsetType
    n: int
    unit: str
    confidence: float
    median: float | msgspec.UnsetType
    min: float | msgspec.UnsetType
    max: float | msgspec.UnsetType
    stdev: float | msgspec.UnsetType


def indicator_of(figure: Estimate) -> Indicator | None:
    """The estimate without what is not finite; ``None`` if its value is not."""
    if not math.isfinite(figure.value):
        return None
    both = _finite(figure.low) is not msgspec.UNSET and _finite(figure.high) is not msgspec.UNSET
    return Indicator(
        value=figure.value,
        low=_finite(figure.low) if both else msgspec.UNSET,
        high=_finite(figure.high) if both else msgspec.UNSET,
        n=figure.n,
        unit=figure.unit,
        confidence=figure.confidence,
        median=_finite(figure.median),
        min=_finite(figure.min),
        max=_finite(figure.max),
        stdev=_finite(figure.stdev),
    )


def _finite(value: float | None) -> float | msgspec.UnsetType:
    return msgspec.UNSET if value is None or not math.isfinite(value) else value
