"""Stored records, heads, packed figures and histograms with any contents: read or refused."""

from __future__ import annotations

import base64
import contextlib
import struct
import zlib
from pathlib import Path

import msgspec
import pytest

from concurve import hdr_log
from concurve.errors import ConcurveError
from concurve.figures import decode_figures
from concurve.store import campaign_head, run_head
from concurve.wire import decode_record
from concurve.wire.record import Outcome, RoleRecord, TrialRecord
from concurve.wire.report import HistogramLine
from tests.helpers.fuzzing import fuzz

GOLDEN = Path(__file__).parents[2] / "schema" / "golden"

JSON = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"null",
    b"true",
    b"1e400",
    b'"format":9,',
    b'"format":0,',
    b"\\ud800",
    b"[" * 200,
    b"\xff",
]


def golden(pattern: str) -> list[bytes]:
    found = [path.read_bytes() for path in sorted(GOLDEN.glob(pattern))]
    assert found
    return found


@pytest.mark.fuzz
def test_records() -> None:
    fuzz(decode_record, golden("trial-record-*.json"), JSON)


@pytest.mark.fuzz
def test_heads_of_runs() -> None:
    fuzz(run_head.VERSIONS.decode, golden("run-head-*.json"), JSON)


@pytest.mark.fuzz
def test_heads_of_campaigns() -> None:
    fuzz(campaign_head.VERSIONS.decode, golden("campaign-head-*.json"), JSON)


@pytest.mark.fuzz
def test_packed_figures() -> None:
    corpus = golden("figures-1-*.bin")

    def parse(data: bytes) -> None:
        with contextlib.suppress(msgspec.DecodeError, ValueError):
            decode_figures([data, corpus[0]])

    fuzz(parse, corpus, [b"\0", *JSON])


def plain(digits: int = 3, lowest: int = 1, counts: bytes = b"\x02\x05\x04") -> bytes:
    """A histogram in V2 encoding: one value, some that are not counted, and two more."""
    return (
        struct.pack(">IIIIQQd", 0x1C849313, len(counts), 0, digits, lowest, 1 << 40, 1.0) + counts
    )


def compressed(data: bytes) -> bytes:
    packed = zlib.compress(data)
    return struct.pack(">II", 0x1C849314, len(packed)) + packed


def logged(encoded: bytes) -> str:
    line = HistogramLine(histogram="h", unit="ns", encoded=base64.b64encode(encoded).decode())
    role = RoleRecord(name="load", histograms=(line,))
    record = TrialRecord(format=1, trial="t", outcome=Outcome(kind="ok"), roles=(role,))
    return hdr_log.log([("cell", record)])


NUMBERS = [struct.pack(">I", number) for number in (0, 1, 5, 6, 0x7FFFFFFF, 0xFFFFFFFF)]
WORDS = [*NUMBERS, b"\xff" * 9, b"\x80", b"\x01"]


@pytest.mark.fuzz
def test_histograms() -> None:
    fuzz(logged, [plain(), plain(digits=5), compressed(plain())], WORDS)


@pytest.mark.fuzz
def test_compressed_histograms() -> None:
    """What is inside the compression, which changed bytes do not reach."""
    fuzz(lambda data: logged(compressed(data)), [plain(), plain(lowest=1000)], WORDS)


@pytest.mark.parametrize(
    "encoded",
    [
        plain(digits=4_000_000_000),
        plain(lowest=0),
        plain(counts=b"\xff" * 9 + b"\x02"),
        compressed(plain() + bytes(100 << 20)),
        compressed(plain())[:-4],
    ],
    ids=["digits", "lowest value", "zeros", "a bomb", "cut off"],
)
def test_a_histogram_that_would_take_the_machine_is_refused(encoded: bytes) -> None:
    with pytest.raises(ConcurveError, match="not an HdrHistogram"):
        logged(encoded)


def test_a_histogram_of_the_corpus_is_read() -> None:
    tag, offset, seconds, greatest, _ = logged(plain()).splitlines()[-1].split(",")
    assert (tag, offset, seconds) == ("Tag=cell/load/h", "0.000", "0.000")
    # A count of 1 at the value 0, three values without one, and counts at 4.
    assert logged(compressed(plain())).splitlines()[-1].split(",")[3] == greatest == "0.000"
