"""What a client asks for is bounded by what the disk and the memory hold: it is refused, and the
server goes on."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.helpers.resp import Client, ReplyError, missing, serving

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

ENGINES = {
    "threads": ("--engines", "threads"),
    "processes": ("--engines", "processes", "--engine-count", "2"),
}

#: More records than any machine holds.
HUGE = 999_999_999_999


@pytest.mark.parametrize("engines", ENGINES)
def test_a_fill_of_more_than_the_machine_holds_is_refused(tmp_path: Path, engines: str) -> None:
    arguments = ("--service", "records", "--folder", str(tmp_path / "r"), *ENGINES[engines])
    with serving(*arguments) as server:
        client = Client(server.port)
        client("CREATE", "small", 24, "KEY", "0:12:text")
        client("CREATE", "large", 8_000, "KEY", "0:12:text")
        for name, rest, last in (
            ("small", "x" * 12, HUGE),
            ("large", "x" * 7_988, HUGE),
            ("large", "x" * 7_988, 200_000_000),
        ):
            with pytest.raises(ReplyError) as refused:
                client("FILL", name, 0, last, rest)
            assert refused.value.code in ("DISKFULL", "NOMEMORY")
        client("FILL", "small", 0, 99, "x" * 12)
        assert client("COUNT", "small") == 100


def test_a_fill_of_statements_is_refused_too(tmp_path: Path) -> None:
    with serving("--service", "statements", "--folder", str(tmp_path / "s")) as server:
        client = Client(server.port)
        client("CREATE", "accounts", "id", "balance", "BYTES", 100)
        with pytest.raises(ReplyError) as refused:
            client("FILL", "accounts", 0, HUGE, 1)
        assert refused.value.code in ("DISKFULL", "NOMEMORY")
        client("FILL", "accounts", 0, 9, 1)


@pytest.mark.parametrize("engines", ENGINES)
def test_a_transaction_that_the_memory_does_not_hold_is_refused_and_others_go_on(
    tmp_path: Path, engines: str
) -> None:
    small = ("--shared-memory", "64", "--cache-mib", "8", "--durability", "none")
    arguments = ("--service", "records", "--folder", str(tmp_path), *small, *ENGINES[engines])
    with serving(*arguments) as server:
        client, other = Client(server.port), Client(server.port)
        client("CREATE", "f", 4000, "KEY", "0:12:text")
        client("CREATE", "g", 24, "KEY", "0:12:text")
        client("BEGIN")
        rest = "x" * 3988
        with pytest.raises(ReplyError) as refused:
            for number in range(20_000):
                client("INSERT", "f", f"{number:012}{rest}")
        assert refused.value.code == "NOMEMORY"
        client("ABORT")
        client("INSERT", "f", f"{0:012}{rest}")
        assert client("COUNT", "f") == 1
        other("INSERT", "g", "0" * 24)
        assert client("COUNT", "g") == 1, "it was never restarted"


def test_the_files_of_records_are_for_their_owner(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with serving("--service", "records", "--folder", str(folder)) as server:
        Client(server.port)("CREATE", "f", 24, "KEY", "0:12:text")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
