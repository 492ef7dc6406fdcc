"""Outputs of tools with any contents: each figure is read, or missed with its reason; and flight
recordings as text, read or refused."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import msgspec
import pytest

from concurve.definition.extracting import parse_extract, tools
from concurve.readings.extraction import MissedExtractError, extracted
from concurve.readings.flight_recording import recorded_waits
from concurve.wire.record import Output, RoleRecord
from tests.helpers.fuzzing import fuzz

pytestmark = pytest.mark.fuzz

OUTPUTS = Path(__file__).parent / "outputs"
RECORDINGS = Path(__file__).parent / "recordings"


def test_outputs_of_known_tools() -> None:
    corpus = [path.read_bytes() for path in sorted(OUTPUTS.glob("*.txt"))]
    found = [item.extract for tool in tools() for item in parse_extract(tool)]

    def parse(data: bytes) -> None:
        role = RoleRecord(name="target", stdout=Output(head=data.decode(errors="replace")))
        for extract in found:
            with contextlib.suppress(MissedExtractError):
                assert math.isfinite(extracted(extract, role))

    words = [
        b"ms",
        b"us",
        b"\xc2\xb5s",
        b"MiB/s",
        b"k",
        b"%",
        b"1,234,567",
        b" ",
        b"\n",
        b".",
        b"e",
        b"-",
    ]
    fuzz(parse, corpus, words)


def test_flight_recordings() -> None:
    corpus = [path.read_bytes() for path in sorted(RECORDINGS.glob("*.json"))]

    def parse(data: bytes) -> None:
        text = data.decode(errors="replace")
        found = recorded_waits([text[:1000], text[1000:5000], text[5000:]], 0)
        assert found.elsewhere_events <= found.lock_events
        msgspec.json.encode(found)  # as it is stored

    words = [
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b",",
        b"null",
        b"[" * 200,
        b"\\ud800",
        b'"PT9999999999S"',
        b'"frames": [',
        b'"hidden": true',
        b"jdk.ThreadPark",
        b"java\\/",
    ]
    fuzz(parse, corpus, words)
