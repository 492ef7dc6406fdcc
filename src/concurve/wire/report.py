"""The lines that a measured program may write to its report channel, one JSON object each. Their
Rust twin is ``instrument/reporter``; figures and histograms come back in the record as they were
reported."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from concurve.fields import Count, about


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of a line. Its schema allows no other keys, and the runner refuses them; they are
    tolerated here, in the records of a newer runner."""


class ReadyLine(Line, frozen=True):
    """The program is up; roles that wait for it may start."""

    ready: bool


class PhaseLine(Line, frozen=True):
    """A phase begins or ends."""

    phase: Annotated[str, about("Name of the phase.")]
    edge: Literal["begin", "end"]
    at_ns: Annotated[
        Count | None, about("CLOCK_MONOTONIC at the edge; absent: the time of receipt counts.")
    ] = None


class IndicatorLine(Line, frozen=True):
    """A figure that the program measured itself."""

    indicator: Annotated[str, about("Name in snake case, unit last.")]
    value: float
    unit: str | None = None
    worker: Annotated[
        str | None, about("Worker the figure belongs to; absent: the whole program.")
    ] = None


class FactLine(Line, frozen=True):
    """Something worth knowing about the program."""

    fact: str
    value: Any


class HistogramLine(Line, frozen=True):
    """A distribution as an HdrHistogram."""

    histogram: str
    unit: str
    encoded: Annotated[
        str, about("Base64 of the HdrHistogram V2 serialisation, compressed or not.")
    ]
    worker: str | None = None


#: Every kind of line.
LINES = (ReadyLine, PhaseLine, IndicatorLine, FactLine, HistogramLine)
