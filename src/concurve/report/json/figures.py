"""Estimates without numbers that are not finite."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import msgspec

from concurve.estimate import Estimate
from concurve.fields import Count, about


class Indicator(msgspec.Struct, frozen=True):
    """An estimate; a number that is not finite is left out."""

    KEYWORDS: ClassVar = {"dependentRequired": {"low": ["high"], "high": ["low"]}}

    value: float
    low: Annotated[float | msgspec.UnsetType, about("Lower bound of the interval.")]
    high: Annotated[float | msgspec.UnsetType, about("Upper bound of the interval.")]
    n: Annotated[Count, about("Trials behind the value.")]
    unit: str
    confidence: Annotated[float, about(exclusiveMinimum=0, exclusiveMaximum=1)]
    median: float | msgspec.UnsetType
    min: float | msgspec.UnsetType
    max: float | msgspec.UnsetType
    stdev: Annotated[float | msgspec.UnsetType, about(minimum=0)]
    mean: float | msgspec.UnsetType = msgspec.UNSET
    in_doubt: Annotated[
        bool | msgspec.UnsetType,
        about("The machine was not quiet, and too few other trials are left. Left out if not so."),
    ] = msgspec.UNSET


def indicator_of(figure: Estimate) -> Indicator | None:
    """The estimate without numbers that are not finite; ``None`` if its value is not finite."""
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
        mean=_finite(figure.mean),
        in_doubt=figure.in_doubt or msgspec.UNSET,
    )


def _finite(value: float | None) -> float | msgspec.UnsetType:
    return msgspec.UNSET if value is None or not math.isfinite(value) else value
