"""Durations and shares as texts for people."""

from __future__ import annotations

import math
import re

from concurve.definition.indicator_names import split_name
from concurve.errors import StudyError

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
#: A year: a longer duration is a typing error, and very long ones overflow a count of nanoseconds.
LONGEST_SECONDS = 366 * 24 * 3600.0

#: Parts of a second, each up to where three digits would be rounded to 1e+03.
_PARTS = ((0.9995e-6, 1e9, "ns"), (0.9995e-3, 1e6, "µs"), (0.9995, 1e3, "ms"))

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|m|h)?\s*")


#: Units of a time in which programs report.
_TIMES = {*_SECONDS, "sec", "secs", "second", "seconds", "msec", "usec", "nsec", "millis",
          "milliseconds", "microseconds", "nanoseconds", "min", "minutes", "hours"}  # fmt: skip

#: Prefixes of 1000 and of 1024.
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
             "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip
_SHORT_TIMES = {"ps": 1e-12, "min": 60.0, "sec": 1.0, "msec": 1e-3, "usec": 1e-6, "nsec": 1e-9}

_RATE_NAME = re.compile(
    r"per_(second|worker|sec|minute|s)\b|_rate\b|\brate\b|throughput|^([trq]ps|iops)$"
)
_RATE_UNIT = re.compile(
    r"/\s*(s|sec|second|ms|min|minute|h)$|\bper (second|sec|minute)$"
    r"|^(Hz|[kKMG]?[bB]ps|[trq]ps|QPS|TPS|IOPS)$"
)
_TIME_NAME = re.compile(r"(^|_)(seconds|millis|micros|nanos|ms|us|ns|latency|duration|time)($|_)")


def is_time(name: str, unit: str) -> bool:
    """Is an indicator with this name and unit a time?"""
    return unit in _TIMES or (not unit and bool(_TIME_NAME.search(split_name(name).own)))


def is_rate(name: str, unit: str) -> bool:
    """Is an indicator with this name and unit a rate: so much in a time?"""
    if unit:
        return bool(_RATE_UNIT.search(unit))
    return bool(_RATE_NAME.search(split_name(name).own))


def in_base_unit(unit: str) -> float | None:
    """How many seconds, bytes, or operations (also a second) one of this unit is: ``ms`` 0.001,
    ``KiB`` 1024, ``M`` 1,000,000, ``ops/ms`` 1000, ``ns/op`` 1e-9; ``None`` for another unit.
    ``m`` is a minute."""
    times = {**_SECONDS, **_SHORT_TIMES}
    if unit in times:
        return times[unit]
    count, slash, time = unit.partition("/")
    if slash and time == "op" and count in times:
        return times[count]
    if slash and count == "ops" and time in times:
        return 1 / times[time]
    return None if slash else _PREFIXES.get(unit.removesuffix("B"))


def parse_duration(text: str | float, where: str) -> float:
    """Seconds of a duration such as ``90``, ``1.5s``, ``200ms`` or ``4m``.

    ``where`` names the key or option in the message.

    Raises:
        StudyError: not a duration, not above 0, or longer than a year.
    """
    match = _DURATION.fullmatch(str(text))
    if not match:
        raise StudyError(
            f"{where}: {text!r} is not a duration", "a number with a unit: 200ms, 1.5s, 4m, 1h"
        )
    seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    if seconds <= 0:
        raise StudyError(f"{where}: a duration must be above 0", "for example 30s")
    if seconds > LONGEST_SECONDS:
        raise StudyError(f"{where}: {text!r} is longer than a year", "for example 12h")
    return seconds


def format_duration(seconds: float) -> str:
    """A duration for people: ``24.6 µs``, ``850 ms``, ``12 s``, ``3 min 20 s``, ``2 h 05 min``."""
    for below, in_a_second, unit in _PARTS:
        if 0 < seconds < below:
            return f"{seconds * in_a_second:.3g} {unit}"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def format_quantity(value: float, unit: str) -> str:
    """A figure with its unit to three digits: ``1.15 s``, ``24.6 µs``, ``12,300 1/s``."""
    if unit == "s":
        for below, in_a_second, part in _PARTS:
            if 0 < value < below:
                return f"{_three_digits(value * in_a_second)} {part}"
    return f"{_three_digits(value)} {unit}".rstrip()


def _three_digits(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def format_count(number: int, singular: str) -> str:
    """A count with its noun: ``1 trial``, ``12,000 trials``."""
    return f"{number:,} {singular if number == 1 else singular + 's'}"


def parse_share(text: str, where: str) -> float:
    """A share such as ``2%`` or ``0.02``.

    Raises:
        StudyError: not a share between 0 and 1.
    """
    number, percent, _ = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise StudyError(f"{where}: {text!r} is not a share below 1", "for example 2% or 0.02")
    return share


def format_share(share: float) -> str:
    """A share for people, to two digits: ``0.34 %``, ``2.1 %``, ``120 %``."""
    percent = 100 * share
    digits = 0 if percent >= 10 else 1 if percent >= 1 else 2
    return f"{percent:.{digits}f} %"
