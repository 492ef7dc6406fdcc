"""Counters in Prometheus' text format, and what changed between two readings. Pure.

Format: "Exposition formats", Prometheus documentation, text format 0.0.4 (OpenMetrics' is alike in
what is read here). A plain ``name value`` line is valid in it, so a shell script can write it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_LINE = re.compile(
    r"""([a-zA-Z_:][a-zA-Z0-9_:]*)            # name
        (?:\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?  # labels
        \s+(\S+)(?:\s+\S+)?(?:\s+\#.*)?""",
    re.VERBOSE,
)
# Each name is begun once, and nothing is tried again: in time linear in the labels.
_LABEL = re.compile(r'(?<![a-zA-Z0-9_])([a-zA-Z_][a-zA-Z0-9_]*+)\s*+=\s*+"((?:[^"\\]|\\.)*+)"')
_TYPE = re.compile(r"#\s*TYPE\s+(\S+)\s+(\S+)")

#: A longer line is no figure.
LINE_CHARS_MAX = 1 << 16

#: Most figures of a text; each takes memory.
FIGURES_MAX = 100_000

#: So many hexadecimal digits tell series apart whose names would be the same.
_DIGITS = 6

#: Labels of a histogram's buckets and of a summary's quantiles: no figures of their own.
_PARTS = ("le", "quantile")

#: Endings of names that count where no type is given.
_COUNTING = ("_total", "_count", "_sum")


class Series(NamedTuple):
    """What a figure is of: its name, and its labels with their values, sorted."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()


class Sample(NamedTuple):
    """A figure, and whether it counts upwards from the server's start."""

    value: float
    counts: bool


def parse(text: str) -> dict[Series, Sample]:
    """The figures of a text.

    Lines that are not understood, and figures that are no finite numbers, are left out.

    Raises:
        ValueError: it has more figures than anybody looks at.
    """
    types: dict[str, str] = {}
    samples: dict[Series, Sample] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("#"):
            if match := _TYPE.match(line):
                types[match[1]] = match[2]
            continue
        match = _LINE.fullmatch(line) if len(line) <= LINE_CHARS_MAX else None
        if match is None:
            continue
        name, labels = match[1], dict(_LABEL.findall(match[2] or ""))
        value = _number(match[3])
        if value is None or any(label in _PARTS for label in labels):
            continue
        series = Series(name, tuple(sorted(labels.items())))
        samples[series] = Sample(value, _counts(name, types))
        if len(samples) > FIGURES_MAX:
            raise ValueError(f"more than {FIGURES_MAX} figures")
    return samples


def indicators(found: Iterable[Series]) -> dict[Series, str]:
    """The names of the indicators of some series: name and labels, in snake case. Those of several
    that would be the same (``path="/a"`` and ``path="/a/"``) end with a few digits of a hash of
    their labels, which are the same in every reading."""
    names = {series: _indicator(series) for series in found}
    counts = Counter(names.values())
    return {
        series: name if counts[name] == 1 else f"{name}_{_digest(series)}"
        for series, name in names.items()
    }


def _digest(series: Series) -> str:
    return hashlib.sha256(repr(series).encode()).hexdigest()[:_DIGITS]


def changes(
    before: Mapping[Series, Sample], after: Mapping[Series, Sample]
) -> Iterator[tuple[str, float]]:
    """What happened between two readings, by the names of indicators: the growth of counters, the
    last value of other figures.

    A counter that went down was set back (the server was started again): it is left out. One that
    was not there before began at 0.
    """
    names = indicators(after)
    for series, sample in after.items():
        name = names[series]
        if not sample.counts:
            yield name, sample.value
            continue
        first = before[series].value if series in before else 0.0
        if sample.value >= first and math.isfinite(grown := sample.value - first):
            yield name, grown


def _counts(name: str, types: Mapping[str, str]) -> bool:
    # OpenMetrics names the type without the ending, histograms and summaries have two endings.
    base = next((name.removesuffix(end) for end in _COUNTING if name.endswith(end)), name)
    kind = types.get(name, types.get(base, ""))
    if kind in ("counter", "histogram", "summary"):
        return True
    return kind in ("", "untyped", "unknown") and name.endswith(_COUNTING)


def _indicator(series: Series) -> str:
    parts = [series.name, *(f"{label}_{value}" for label, value in series.labels)]
    return re.sub(r"[^A-Za-z0-9_]+", "_", "_".join(parts)).strip("_")


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
