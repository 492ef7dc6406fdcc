"""The datum: spec and record of one trial, as they cross the seam to the runner.

The Rust twin is ``instrument/wire``; ``schema/`` holds the JSON Schemas and golden files
that the tests of both languages read.

History of the format (``FORMAT``):

- 1 (2026-11): first version. Records written before ``waits``, ``lived_ns`` and ``busy_ns_by_cpu``
  were added lack them without a reason, and so do those before ``cpu_timeline``, ``sites`` and
  ``hot``; those before ``marked_by`` have no phases of servers.
"""

from __future__ import annotations

import msgspec

from concurve.errors import StudyError
from concurve.formats import Versions
from concurve.wire.record import TrialRecord
from concurve.wire.spec import FORMAT, TrialSpec

_spec_encoder = msgspec.json.Encoder()

VERSIONS = Versions(TrialRecord, "trial record")
assert VERSIONS.newest == FORMAT


def encode_spec(spec: TrialSpec) -> bytes:
    """The JSON that the runner reads on its standard input."""
    return _spec_encoder.encode(spec)


def decode_spec(raw: bytes) -> TrialSpec:
    """Read a spec.

    Raises:
        StudyError: it is none.
    """
    try:
        return msgspec.json.decode(raw, type=TrialSpec)
    except msgspec.MsgspecError as error:
        raise StudyError(f"no trial spec: {error}", "schema/trial-spec.schema.json") from error


def decode_record(raw: bytes | str, name: str = "") -> TrialRecord:
    """Read a record, also one of an older format; ``name`` says whose, for messages.

    Raises:
        StoreError: the text is no record, or one of a newer format than this code knows.
    """
    return VERSIONS.decode(raw, name)
