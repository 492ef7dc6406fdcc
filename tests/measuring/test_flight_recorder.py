"""What a flight recording says of a program, without its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.errors import RunError
from concurve.measuring import flight_recorder
from concurve.secrets import KNOWN
from concurve.wire.record import RecordedOwner, RecordedSite, RecordedWaits
from concurve.wire.spec import RoleSpec


def test_a_secret_in_the_name_of_a_thread_is_hidden() -> None:
    KNOWN.add("PASSWORD", "correct-horse-battery")
    owner = RecordedOwner("pool of jdbc:me:correct-horse-battery@db", events=3)
    site = RecordedSite(
        kind="monitor",
        primitive="mutex",
        function="Table.add",
        events=3,
        blocked_ns=9,
        lock="Table",
        owners=(owner,),
    )
    (hidden,) = flight_recorder._hidden(RecordedWaits(listed=(site,))).listed
    assert "correct-horse" not in hidden.owners[0].name
    assert (hidden.function, hidden.lock, hidden.events) == ("Table.add", "Table", 3)


def test_a_recording_that_cannot_be_read_does_not_take_the_others_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_jfr: Path, file: Path) -> RecordedWaits:
        if file.name == "killed.jfr":
            raise RunError("it is cut", "")
        return RecordedWaits(lock_events=5)

    monkeypatch.setattr(flight_recorder, "find_jfr", lambda _argv: Path("jfr"))
    monkeypatch.setattr(flight_recorder, "_read_file", read)
    (tmp_path / "killed.jfr").write_bytes(b"longest")
    with pytest.raises(RunError, match="it is cut"):
        flight_recorder._read(tmp_path, ())
    (tmp_path / "whole.jfr").write_bytes(b"")
    found = flight_recorder._read(tmp_path, ())
    assert (found.lock_events, found.recordings, found.is_cut) == (5, 1, True)


def test_a_recorded_role_is_known_whatever_script_starts_it() -> None:
    def role(*argv: str) -> RoleSpec:
        return RoleSpec(name="target", argv=argv)

    older = ("sh", "-c", "an older script", "options", "/tmp/trial-1/flight-recordings")
    assert flight_recorder._is_recorded(role(*older, "java", "Main"))
    assert not flight_recorder._is_recorded(role("sh", "-c", "java Main"))
