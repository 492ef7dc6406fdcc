"""By how much a reading may be off, because its clock ticks or its figure was rounded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from concurve.stats.centre import centre

#: A step below this share of the greatest reading is none: it is the rounding of floats.
_NEGLIGIBLE = 1e-8


def step_of(readings: Iterable[float]) -> float:
    """The step between neighbouring readings of a coarse clock: all readings are multiples of it.
    0 for readings that have no such step.

    Of several distinct readings it is their greatest common divisor, of a single one the place of
    its last decimal digit: more cannot be known of it.
    """
    distinct = sorted({abs(reading) for reading in readings if reading})
    if not distinct:
        return 0.0
    if len(distinct) == 1:
        return _last_digit(distinct[0])
    tolerance = _NEGLIGIBLE / 10 * distinct[-1]
    divisor = distinct[0]
    for reading in distinct[1:]:
        divisor = _common(reading, divisor, tolerance)
        if divisor <= _NEGLIGIBLE * distinct[-1]:
            return 0.0
    return divisor


def step_of_rates(rates: Sequence[float]) -> float:
    """The step of the times whose reciprocals these rates are; 0 where there is none."""
    times = {1 / rate for rate in rates if rate}
    return step_of(times) if len(times) > 1 else 0.0


def _common(greater: float, less: float, tolerance: float) -> float:
    """The greatest common divisor of two numbers that are rounded (Euclid)."""
    while less > tolerance:
        rest = math.fmod(greater, less)
        greater, less = less, min(rest, less - rest)
    return greater


def _last_digit(reading: float) -> float:
    """The value of a one at the last decimal digit: 0.01 of 0.25, 1 of 3, 0 of 0.1234567891."""
    _, _, decimals = f"{reading:.9f}".rstrip("0").partition(".")
    return 0.0 if len(decimals) == 9 else 10.0 ** -len(decimals)


def relative(resolution: float, values: Sequence[float]) -> float:
    """A resolution as a share of the centre of the values that have it; 0 where that is 0."""
    middle = abs(centre(values)) if resolution else 0.0
    return resolution / middle if middle else 0.0
