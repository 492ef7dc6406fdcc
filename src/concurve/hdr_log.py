"""The histograms that programs reported, as an HdrHistogram interval log.

Format: that of ``HistogramLogWriter`` 1.3 with histograms in the compressed V2 encoding, as
HistogramLogProcessor, HistogramLogAnalyzer and hdrh read it (https://hdrhistogram.github.io).
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from concurve.errors import ConcurveError
from concurve.histogram import COMPRESSED, plain_of, read_plain
from concurve.wire.record import RoleRecord, TrialRecord

_MAX_UNIT_NS = 1e6
_LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


class Interval(NamedTuple):
    """One line of the log: tag, begin in seconds since the epoch, length in seconds, the encoded
    histogram, and its trial."""

    tag: str
    begin: float
    seconds: float
    encoded: str
    trial: str


def log(records: Iterable[tuple[str, TrialRecord]]) -> str:
    """The log of trials, each with the label of its cell: a line a histogram, in order of time.

    A line's tag is ``CELL/ROLE/HISTOGRAM``, followed by the worker if there is one.
    Latencies are in ns as they were reported; the greatest one stands in ms, as is usual.

    Raises:
        ConcurveError: there is no histogram, or one that cannot be read.
    """
    found = [interval for label, record in records for interval in _intervals(label, record)]
    if not found:
        raise ConcurveError(
            "no program of this run reported a histogram",
            "a run with concurve-load, or with a program that writes them to its report channel",
        )
    found.sort(key=lambda interval: interval.begin)
    start = found[0].begin
    lines = [
        "#[Exported by concurve; a tag says cell, role and histogram]",
        "#[Histogram log format version 1.3]",
        f"#[StartTime: {start:.3f} (seconds since epoch)]",
        _LEGEND,
        *(_line(interval, start) for interval in found),
    ]
    return "\n".join(lines) + "\n"


def _intervals(label: str, record: TrialRecord) -> Iterator[Interval]:
    for role in record.roles:
        begin, seconds = _when(record, role)
        for line in role.histograms:
            parts = [label, role.name, line.histogram, *([line.worker] if line.worker else [])]
            tag = "/".join(re.sub(r"[\s,]+", "_", part) for part in parts)
            yield Interval(tag, begin, seconds, line.encoded, record.trial)


def _when(record: TrialRecord, role: RoleRecord) -> tuple[float, float]:
    """Begin and length of the measured phase, or of the role's life, in seconds."""
    measured = next((phase for phase in role.phases if phase.name == "measure"), None)
    begin = role.released_ns if measured is None else measured.begin_ns
    wall = role.wall_ns if measured is None else measured.wall_ns
    return (record.started_unix_ns + begin) / 1e9, wall / 1e9


def _line(interval: Interval, start: float) -> str:
    try:
        plain = plain_of(interval.encoded)
        greatest = read_plain(plain).greatest() / _MAX_UNIT_NS
    except ValueError as error:
        raise ConcurveError(
            f"trial {interval.trial}: the histogram {interval.tag} is not an HdrHistogram in V2 "
            f"encoding ({error})",
            "look at what the program reports",
        ) from error
    packed = zlib.compress(plain)
    encoded = base64.b64encode(struct.pack(">II", COMPRESSED, len(packed)) + packed).decode()
    offset = interval.begin - start
    return f"Tag={interval.tag},{offset:.3f},{interval.seconds:.3f},{greatest:.3f},{encoded}"


def labels(cells: Iterable[tuple[int, Mapping[str, object]]]) -> dict[int, str]:
    """Short names of cells, by their levels: ``threads=4_cpus=2``, or ``cell`` without factors."""
    return {
        index: "_".join(f"{name}={value}" for name, value in levels.items()) or "cell"
        for index, levels in cells
    }
