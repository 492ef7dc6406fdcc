"""What a client asks for is bounded by what the disk and the memory hold: it is refused, and the
server goes on."""

from __future__ import annotations

import contextlib
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.resp import DEADLINE_S, Client, ReplyError, Server, missing, serving

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


# -- every command -------------------------------------------------------------------------------

Request = Callable[[int], tuple[str | int, ...]]

#: Requests by which a client would have the server keep as much as possible, by command: the words
#: of the n-th one. Each has a new name or text.
GREEDY: dict[str, dict[str, Request]] = {
    "locks": {
        "lock": lambda n: ("LOCK", "T", f"{n:0250}", "S"),
        "owner": lambda n: ("OWNER", f"{n:0250}", "UPDATE"),
        "set": lambda n: ("SET", f"{n:0100}", "x" * 50_000),
        "client": lambda n: ("CLIENT", "SETNAME", f"{n:050000}"),
    },
    "records": {
        "begin": lambda n: ("INSERT", "f", f"{n:012}{'x' * 3988}") if n else ("BEGIN",),
        "fill": lambda n: ("FILL", "f", n * 1_000_000, n * 1_000_000 + 999_999, "x" * 3988),
        "client": lambda n: ("CLIENT", "SETNAME", f"{n:050000}"),
    },
    "statements": {
        "prepare": lambda n: ("PREPARE", f"{n:0100}", f"GET f v KEY ? /* {n:050000} */"),
        "run": lambda n: ("RUN", f"GET f v KEY 1 /* {n:050000} */"),
        "begin": lambda n: ("RUN", f"INSERT f {n} 1") if n else ("BEGIN",),
        "fill": lambda n: ("FILL", "f", n * 1_000_000, n * 1_000_000 + 999_999, 1),
        "compare": lambda n: ("COMPARE", "f", "v", "BY", "id", "WITH", "f", "v", "BY", "id"),
        "client": lambda n: ("CLIENT", "SETNAME", f"{n:050000}"),
    },
}

#: Commands that keep nothing that grows, and those whose requests stand above under another name.
BOUNDED = {
    "locks": "unlock unlockall locks lockstat overflows get del delex exists pexpire pttl eval "
    "evalsha script",
    # A file of records: at most so many in a folder.
    "records": "get update insert end abort delete unlock position open stat create drop files "
    "count sum compare checkpoint",
    "statements": "execute end abort deallocate set create drop files list fields checkpoint",
}
COMMON = "ping echo auth hello quit select info phase command config"


@pytest.mark.parametrize("engines", ENGINES)
@pytest.mark.parametrize("service", GREEDY)
def test_no_command_lets_a_client_use_up_the_memory(
    tmp_path: Path, service: str, engines: str
) -> None:
    options = ("--service", service, "--shared-memory", "32", *ENGINES[engines])
    if service != "locks":
        options += ("--folder", str(tmp_path / "data"), "--cache-mib", "4", "--durability", "none")
    if service == "statements":
        options += ("--procedure-cache", "2048")
    with serving(*options) as server:
        with contextlib.closing(Client(server.port)) as client:
            known = {row[0] for row in client("COMMAND")}
            make_files(client, service)
        bounded = {*BOUNDED[service].split(), *COMMON.split()}
        assert known == bounded | set(GREEDY[service]), "a new command: how much may it keep?"
        for name, request in GREEDY[service].items():
            refused = ask_for_all(server.port, request)
            assert refused <= {"NOMEMORY", "FULL", "DISKFULL", "EXHAUSTED", "FAILED", "ERR"}, name
            with contextlib.closing(Client(server.port)) as client:
                figures = client("INFO", "server")
            assert "generation:1\r\n" in figures and "engine_deaths:0\r\n" in figures, name
        stderr = server.end()
    assert server.process.returncode == 0, stderr


def make_files(client: Client, service: str) -> None:
    if service == "records":
        client("CREATE", "f", 4000, "KEY", "0:12:text")
    elif service == "statements":
        client("CREATE", "f", "id", "v")
        for first in range(-60_000, 0, 5_000):
            client("FILL", "f", first, first + 4_999, 1)


def ask_for_all(port: int, request: Request) -> set[str]:
    """Ask until something is refused, some 40 MB at most; the codes of the refusals."""
    asked, number = 0, 0
    with contextlib.closing(Client(port)) as client:
        while asked < 40_000_000 and number < 20_000:
            sent = 0
            for _ in range(20):
                words = request(number)
                client.send(*words)
                sent, number = sent + 1, number + 1
                asked += sum(len(str(word)) for word in words)
            refused = set()
            for _ in range(sent):
                try:
                    client.reply()
                except ReplyError as error:
                    refused.add(error.code)
            if refused:
                return refused
    return set()


def test_a_full_memory_keeps_nothing_more_until_something_is_removed() -> None:
    with (
        serving("--shared-memory", "16") as server,
        contextlib.closing(Client(server.port)) as client,
    ):
        for _ in range(3):
            with pytest.raises(ReplyError, match="NOMEMORY the server has no memory"):
                for number in range(1_000_000):
                    client("LOCK", "T", f"{number:0250}", "S")
            assert client("UNLOCKALL") > 1000
        client("LOCK", "T", "again", "S")


def test_a_capacity_that_the_memory_cannot_hold_is_refused_at_the_start() -> None:
    for option in (("--capacity", "100000000"), ("--shared-memory", "64", "--capacity", "1000000")):
        server = Server(*option)
        try:
            server.process.wait(DEADLINE_S)
        finally:
            stderr = server.end(signal.SIGKILL)
        assert server.process.returncode == 2
        assert "lower --capacity to" in stderr and "panicked" not in stderr
