"""Units of figures; durations and shares as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from concurve.definition.indicator_names import split_name
from concurve.errors import StudyError
from concurve.words import count as format_count
from concurve.words import duration as format_duration
from concurve.words import quantity as format_quantity
from concurve.words import share as format_share

__all__ = [
    "base_unit",
    "converted_unit",
    "format_count",
    "format_duration",
    "format_quantity",
    "format_share",
    "in_base_unit",
    "is_rate",
    "is_time",
    "is_time_unit",
    "only_time",
    "parse_duration",
    "parse_share",
]

#: The micro sign, and the Greek letter in its place, which some programs print.
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0,
            "h": 3600.0}  # fmt: skip
#: A year: a longer duration is a typing error, and very long ones overflow a count of nanoseconds.
LONGEST_SECONDS = 366 * 24 * 3600.0

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|\u03bcs|ms|s|m|h)?\s*")


#: Units of a time in which programs report.
_TIMES = {*_SECONDS, "sec", "secs", "second", "seconds", "msec", "usec", "nsec", "millis",
          "milliseconds", "microseconds", "nanoseconds", "min", "minutes", "hours"}  # fmt: skip

#: Prefixes of 1000 and of 1024.
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
             "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip

_RATE_NAME = re.compile(
    r"per_(second|worker|sec|minute|s)\b|_rate\b|\brate\b|throughput|^([trq]ps|iops)$"
)
_RATE_UNIT = re.compile(
    r"/\s*(s|secs?|seconds?|[muµ\u03bcn]s|[mun]sec|mins?|minutes?|h|hours?)$"
    r"|\bper (second|sec|minute|hour)$"
    r"|^(Hz|[kKMGT]?([bB]ps|[trqfp]ps|[TRQFP]PS|iops|IOPS)|[kKMGT](ops|OPS))$"
)
_RATE_WORDS = {"rps", "qps", "tps", "iops", "ips", "bps", "hz"}

#: Words of names: units of a time, what else is a time, what is none although a time is in its
#: name, and countable work, behind which a unit may stand for "in a second".
_UNIT_WORDS = (_TIMES - {"m", "h", "min"}) | {
    "micros", "nanos", "millisecond", "microsecond", "nanosecond", "minute", "hour", "mins",
}  # fmt: skip
#: What one of these is in seconds.
_SECONDS_OF = {
    word: seconds
    for seconds, words in (
        (1e-9, "ns nsec nanos nanosecond nanoseconds"),
        (1e-6, "us µs \u03bcs usec micros microsecond microseconds"),
        (1e-3, "ms msec millis millisecond milliseconds"),
        (1.0, "s sec secs second seconds"),
        (60.0, "mins minute minutes"),
        (3600.0, "hour hours"),
    )
    for word in words.split()
}
#: The same of units beside a number, where ``min`` is a minute.
_SECONDS_OF_UNITS = {**_SECONDS_OF, **_SECONDS, "ps": 1e-12, "min": 60.0}

_TIME_WORDS = {"time", "latency", "duration", "elapsed", "runtime", "walltime", "makespan"}
_NO_TIME_WORDS = {"rate", "throughput", "speedup", "efficiency", *_RATE_WORDS}
_WORK_WORDS = {
    "ops", "operations", "req", "reqs", "requests", "tx", "txs", "txn", "txns", "tasks", "jobs",
    "transactions", "msg", "msgs", "messages", "queries", "calls", "events", "items", "records",
    "rows", "hits", "pages", "packets", "b", "kb", "mb", "gb", "kib", "mib", "gib", "bytes", "bits",
    "mbit", "gbit", "iterations", "steps", "frames", "files", "lines", "reads", "writes",
}  # fmt: skip
#: What is counted that may have a prefix of 1000 or of 1024 before it, or the prefix alone.
_COUNTED = re.compile(
    r"([kKMGT]|[KMGT]i)?"
    r"([bB]|[bB]its?|[bB]ytes?|[bB]ps|[trqfpi]ps|[TRQFPI]PS|i?ops|I?OPS|"
    + "|".join(sorted(word for word in _WORK_WORDS if not re.match("[kmg]i?b", word)))
    + ")?"
)
#: What is tried to see whether a unit can stand in a place: each spelling that is converted.
_TRIED_TIMES = tuple(_SECONDS_OF_UNITS)
_TRIED_WORK = ("", "B", "b", "bit", "bits", "Bit", "Bits", "byte", "bytes", "Byte", "Bytes", "bps",
               "Bps", "ops", "OPS", "iops", "IOPS", "rps", "RPS", "qps", "QPS", "tps", "TPS",
               *sorted(_WORK_WORDS))  # fmt: skip
#: Other work of a rate. What begins as with a prefix is left out: "Mxyz" may be a million of them.
_OTHER_COUNTED = re.compile(r"1|(?![kKmMgGtT\d_])\w+")
#: What may follow the unit of a name: which statistic of the times it is.
_STATISTIC_WORDS = {
    "min", "max", "minimum", "maximum", "mean", "avg", "average", "median", "p", "q", "th", "pct",
    "percentile", "quantile", "std", "stdev", "stddev", "sd", "total", "sum", "lower", "upper",
    "low", "high", "lo", "hi", "ci",
}  # fmt: skip

#: A word of a name, with the digits that stand before it and behind it.
_WORD = re.compile(r"((?<![a-zµ\u03bc\d])\d+)?([a-zµ\u03bc]+)(\d*)")


def is_time(name: str, unit: str) -> bool:
    """Is an indicator with this name and unit a time?"""
    return unit in _TIMES or (not unit and time_by_name(split_name(name).own) is True)


def time_by_name(name: str) -> bool | None:
    """Does a name say that it is of times? ``None`` where it has a unit of time behind a noun of
    work: ``ops_sec`` is a rate as a rule."""
    words = _words(name)
    if _NO_TIME_WORDS & set(words):
        return False
    what, by = words, []
    if "per" in words:
        at = words.index("per")
        what, by = words[:at], words[at + 1 :]
    if by and by[0] in _UNIT_WORDS:
        return False
    if _TIME_WORDS & set(what):
        return True
    units = [at for at, word in enumerate(what) if _is_unit(word, at)]
    if not units:
        return False
    return None if all(at and what[at - 1] in _WORK_WORDS for at in units) else True


def seconds_by_name(name: str) -> float | None:
    """How many seconds one of the unit is that a name of a time has in it: of ``latency_ms``,
    ``ms_per_op`` and ``latency_milliseconds_p50`` 0.001; ``None`` where it has none, or several of
    which none is surely that of the numbers. ``min`` is a minimum.

    Of several it is the last one, where no more than a statistic, or ``per`` something, follows:
    ``us_east_latency_ms`` is in milliseconds."""
    words = _words(name)
    places = _places_of_units(words)
    if not places:
        return None
    if len({_SECONDS_OF[words[at]] for at in places}) > 1:
        behind = words[places[-1] + 1 :]
        if "per" in behind:
            behind = behind[: behind.index("per")]
        if not set(behind) <= _STATISTIC_WORDS | _TIME_WORDS:
            return None
    return _SECONDS_OF[words[places[-1]]]


def units_by_name(name: str) -> list[str]:
    """The units of a time that the words of a name may be, in order: of ``ms_of_second_try`` ms and
    second."""
    words = _words(name)
    return [words[at] for at in _places_of_units(words)]


def _places_of_units(words: Sequence[str]) -> list[int]:
    """The places of units of a time. What the numbers are divided by is none of theirs."""
    return [
        at
        for at, word in enumerate(words)
        if _is_unit(word, at) and (at == 0 or words[at - 1] != "per")
    ]


def _words(name: str) -> list[str]:
    """The words of a name in lower case: of ``latencyMs/op`` latency, ms, per, op. No unit, and a
    word as it stands, are a number of a unit, as in ``load_10s``, and an ``s`` with a number, as in
    ``s3``."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name.replace("/", " per ")).lower()
    return [_word(*found) for found in _WORD.findall(apart)]


def _word(before: str, letters: str, behind: str) -> str:
    """A word without its digits, unless they make it no unit."""
    if letters in _UNIT_WORDS and (before or (letters == "s" and behind)):
        return f"{before}{letters}{behind}"
    return letters


def _is_unit(word: str, at: int) -> bool:
    """A bare ``s`` is a unit only behind another word, as in ``wall_s``."""
    return word in _UNIT_WORDS and (word != "s" or at > 0)


def is_rate(name: str, unit: str) -> bool:
    """Is an indicator with this name and unit a rate: so much in a time?"""
    if unit:
        return bool(_RATE_UNIT.search(unit))
    return bool(_RATE_NAME.search(split_name(name).own))


def in_base_unit(unit: str) -> float | None:
    """How many seconds, bytes, or operations (also a second) one of this unit is: ``ms`` 0.001,
    ``milliseconds`` too, ``KiB`` 1024, ``M`` and ``MB/s`` 1,000,000, ``ops/ms`` 1000, ``ns/op``
    1e-9; ``None`` for another unit. ``m`` is a minute."""
    known = _converted(unit)
    return known[0] if known else None


def base_unit(unit: str) -> str:
    """The unit of a figure that :func:`in_base_unit` converted from this one: of ``ms`` ``s``, of
    ``MB/s`` ``B/s``, of ``ops/ms`` ``ops/s``. A base unit, and another one, is its own."""
    known = _converted(unit)
    return known[1] if known else unit


def _converted(unit: str) -> tuple[float, str] | None:
    """What :func:`in_base_unit` and :func:`base_unit` say of a unit."""
    times = _SECONDS_OF_UNITS
    what, slash, by = unit.partition("/")
    if is_time_unit(unit):
        return times[what], f"{_base_time(what)}{slash}{by}"
    counted = None if what in times else _counted(what, is_rate=by in times)
    if counted is None or (slash and not by.isalnum()):
        return None
    factor, name = counted
    if by in times:
        return factor / times[by], f"{name or '1'}/{_base_time(by)}"
    return factor, f"{name}{slash}{by}"


def _base_time(time: str) -> str:
    return time if _SECONDS_OF_UNITS[time] == 1 else "s"


def _counted(what: str, *, is_rate: bool) -> tuple[float, str] | None:
    """How many are counted by a unit, and of what, where that is known."""
    if found := _COUNTED.fullmatch(what):
        prefix, name = found[1] or "", found[2] or ""
        return _PREFIXES[prefix], name or ("1" if prefix else "")
    return (1.0, what) if is_rate and _OTHER_COUNTED.fullmatch(what) else None


def converted_unit(unit: str, can_be: Callable[[str], bool]) -> str:
    """The unit of a figure for which this one is said, and that is converted from the unit beside
    it; ``can_be`` tells whether a text can stand there. A prefix, and another time than a second,
    are converted only if one can stand there: with ``k`` or ``M`` beside it the figure stays one of
    ``rows/min``."""
    times = _SECONDS_OF_UNITS
    what, slash, by = unit.partition("/")
    if is_time_unit(unit):
        tried = [f"{time}{end}" for time in (what, *_TRIED_TIMES) for end in ("", f"{slash}{by}")]
        return base_unit(unit) if any(map(can_be, tried)) else unit
    counted = _counted(what, is_rate=by in times)
    if counted is None:
        return unit
    name = counted[1]
    ends = ("", f"{slash}{by}", *(f"/{time}" for time in _TRIED_TIMES))
    is_scaled = any(
        can_be(f"{prefix}{work}{end}")
        for prefix in filter(None, _PREFIXES)
        for work in (name, *_TRIED_WORK)
        for end in ends
    )
    is_timed = by in times and any(
        can_be(f"{work}/{time}")
        for work in (name, what, *filter(None, _TRIED_WORK))
        for time in (by, *_TRIED_TIMES)
    )
    return f"{name if is_scaled else what}{slash}{_base_time(by) if is_timed else by}"


def only_time(can_be: Callable[[str], bool]) -> bool:
    """Can a time other than a second stand in a place, and no prefix?"""
    times = (time for time in _TRIED_TIMES if _SECONDS_OF_UNITS[time] != 1)
    return any(map(can_be, times)) and not any(map(can_be, _PREFIXES))


def is_time_unit(unit: str) -> bool:
    """Does :func:`in_base_unit` give seconds for this unit, such as ``ms`` and ``ns/op``?"""
    times = _SECONDS_OF_UNITS
    time, slash, work = unit.partition("/")
    if not slash or work == "op":
        return time in times
    # Of "m/s" and "m/pixel" the m may be metres.
    return time in times and time not in ("m", "h") and work.isalnum() and work not in times


#: A duration as people write it: ``5 min``, ``90 seconds``.
_OTHER_DURATION = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|msecs?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)"
)


def parse_duration(text: str | float, where: str) -> float:
    """Seconds of a duration such as ``90``, ``1.5s``, ``200ms`` or ``4m``.

    ``where`` names the key or option in the message.

    Raises:
        StudyError: not a duration, not above 0, or longer than a year.
    """
    match = _DURATION.fullmatch(str(text))
    if not match:
        written = _OTHER_DURATION.fullmatch(str(text).strip().lower())
        remedy = "a number with a unit: 200ms, 1.5s, 4m, 1h"
        if written:
            unit = "ms" if written[2].startswith(("ms", "mil")) else written[2][0]
            remedy = f"{written[1]}{unit}"
        raise StudyError(f"{where}: {text!r} is not a duration", remedy)
    seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    if seconds <= 0:
        raise StudyError(f"{where}: a duration must be above 0", "for example 30s")
    if seconds > LONGEST_SECONDS:
        raise StudyError(f"{where}: {text!r} is longer than a year", "for example 12h")
    return seconds


def parse_share(text: str, where: str) -> float:
    """A share such as ``2%`` or ``0.02``.

    Raises:
        StudyError: not a share between 0 and 1.
    """
    number, percent, behind = text.strip().partition("%")
    try:
        share = math.nan if behind else float(number) / (100 if percent else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        in_percent = not percent and 1 <= share < 100
        remedy = f"{number.strip()}%" if in_percent else "for example 2% or 0.02"
        raise StudyError(f"{where}: {text!r} is not a share below 1", remedy)
    return share
