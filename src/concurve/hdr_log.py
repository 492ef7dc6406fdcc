"""The histograms that programs reported, as an HdrHistogram interval log.

Format: that of ``HistogramLogWriter`` 1.3 with histograms in the compressed V2 encoding, as
HistogramLogProcessor, HistogramLogAnalyzer and hdrh read it (https://hdrhistogram.github.io).
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from concurve.errors import ConcurveError
from concurve.wire.record import RoleRecord, TrialRecord

_COMPRESSED = 0x1C849314
_PLAIN = 0x1C849313
_HEADER = struct.Struct(">IIIIQQd")
_MAX_UNIT_NS = 1e6
#: HdrHistogram has at most so many significant digits, and values of 63 bits: 47 buckets of 2^17
#: values each, of which none takes more than nine bytes.
_DIGITS_MAX = 5
_PLAIN_BYTES_MAX = 64 << 20
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
        plain = _plain(base64.b64decode(interval.encoded, validate=True))
        greatest = _greatest(plain) / _MAX_UNIT_NS
    except (binascii.Error, struct.error, zlib.error, IndexError, ValueError) as error:
        raise ConcurveError(
            f"trial {interval.trial}: the histogram {interval.tag} is not an HdrHistogram in V2 "
            f"encoding ({error})",
            "look at what the program reports",
        ) from error
    packed = zlib.compress(plain)
    encoded = base64.b64encode(struct.pack(">II", _COMPRESSED, len(packed)) + packed).decode()
    offset = interval.begin - start
    return f"Tag={interval.tag},{offset:.3f},{interval.seconds:.3f},{greatest:.3f},{encoded}"


def _plain(encoded: bytes) -> bytes:
    """The encoding before compression."""
    cookie, length = struct.unpack_from(">II", encoded)
    plain = _decompressed(encoded[8 : 8 + length]) if cookie == _COMPRESSED else encoded
    if struct.unpack_from(">I", plain)[0] != _PLAIN:
        raise ValueError(f"it begins with {cookie:#x}")
    return plain


def _decompressed(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    plain = unpacking.decompress(packed, _PLAIN_BYTES_MAX)
    if unpacking.unconsumed_tail:
        raise ValueError(f"it is larger than {_PLAIN_BYTES_MAX} bytes")
    if not unpacking.eof:
        raise ValueError("its compressed bytes are cut off")
    return plain


def _greatest(plain: bytes) -> int:
    """The greatest value that is equivalent to the greatest one counted; 0 if there is none."""
    length, digits, lowest = (int(_HEADER.unpack_from(plain)[place]) for place in (1, 3, 4))
    if not (digits <= _DIGITS_MAX and 0 < lowest < 1 << 63):
        raise ValueError(f"it has {digits} significant digits from the value {lowest} on")
    # Values a bucket: as many as this number of digits needs; half of them belong to it alone.
    half = 1 << (2 * int(10**digits) - 1).bit_length() - 1
    counts = plain[_HEADER.size : _HEADER.size + length]
    position, index, last = 0, 0, -1
    while position < len(counts):
        number, position = _zigzag(counts, position)
        if number < 0:
            index -= number
            continue
        last = index if number else last
        index += 1
        if last > 64 * half:
            raise ValueError("it counts values of more than 63 bits")
    if last < 0:
        return 0
    shift = max(last // half - 1, 0)
    within = last if last < half else last % half + half
    unit = shift + lowest.bit_length() - 1
    return ((within + 1) << unit) - 1


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    """A ZigZag LEB128-64b9B number and where the next one begins."""
    raw = 0
    for count in range(9):
        byte = data[position]
        position += 1
        if count == 8:
            raw |= byte << 56
            break
        raw |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            break
    return (raw >> 1) ^ -(raw & 1), position


def labels(cells: Iterable[tuple[int, Mapping[str, object]]]) -> dict[int, str]:
    """Short names of cells, by their levels: ``threads=4_cpus=2``, or ``cell`` without factors."""
    return {
        index: "_".join(f"{name}={value}" for name, value in levels.items()) or "cell"
        for index, levels in cells
    }
