"""The record service when it is killed under load, and when its disk is full."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.errors import HostError
from concurve.host import native
from tests.helpers.needs import small_file_system
from tests.helpers.resp import DEADLINE_S, Client, ReplyError, Server, missing, serving


def unavailable() -> str | None:
    """Why no load test is possible here, or ``None``."""
    try:
        native.binary("concurve-load")
    except HostError as error:
        return str(error)
    return missing()


pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

#: One after the other, so that each recovers what another setting left.
VARIANTS = (
    ("--execution", "worker", "--latching", "global"),
    ("--engines", "processes", "--engine-count", "2", "--latching", "record"),
    ("--execution", "inline", "--io-threads", "2", "--latching", "record"),
    ("--engine-count", "2", "--io-threads", "2", "--latching", "file", "--checkpoint-mib", "1"),
    ("--engine-count", "2", "--io-threads", "2", "--latching", "record", "--replies", "engine"),
)
WORKLOAD = ("--workload", "tpcb-strict", "--scale", "1")


def load(server: Server, *options: str) -> subprocess.Popen[str]:
    line = [str(native.binary("concurve-load")), f"records://127.0.0.1:{server.port}", *WORKLOAD]
    return subprocess.Popen(
        [*line, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(running: subprocess.Popen[str]) -> tuple[int, str]:
    stdout, stderr = running.communicate(timeout=DEADLINE_S)
    return running.returncode, stdout + stderr


def commits(server: Server) -> int:
    """The number of transactions that this server has committed."""
    with contextlib.closing(Client(server.port)) as client:
        lines = client("INFO").splitlines()
    return next(int(line.split(":")[1]) for line in lines if line.startswith("commits:"))


def kill_under_load(folder: Path, rounds: range, durability: str) -> None:
    """No acknowledged transaction is lost, no unrequested one exists, and all sums hold."""
    options = ("--service", "records", "--folder", str(folder), "--durability", durability)
    ledger = folder / "ledger"
    with serving(*options) as server:
        assert finished(load(server, "--init-only"))[0] == 0
    draw = random.Random(durability)
    for kill in rounds:
        with serving(*options, *VARIANTS[kill % len(VARIANTS)]) as server:
            running = load(server, "--sessions", "8", "--duration", "600s", "--ledger", str(ledger))
            try:
                wait_for_commits(server, running, draw.randrange(1, 400))
                server.end(signal.SIGKILL)
                code, text = finished(running)
            finally:
                running.kill()
            assert code == 1 and "no session is left" in text, text
        with serving(*options, *VARIANTS[(kill + 1) % len(VARIANTS)]) as server:
            code, text = finished(load(server, "--verify-only", "--ledger", str(ledger)))
            assert code == 0, f"kill {kill}: {text}"


def wait_for_commits(server: Server, running: subprocess.Popen[str], many: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while commits(server) < many:
        assert running.poll() is None, finished(running)
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("durability, first", [("none", 1), ("group", 3), ("each", 4)])
def test_kills_under_load_lose_nothing_that_was_acknowledged(
    tmp_path: Path, durability: str, first: int
) -> None:
    kill_under_load(tmp_path, range(first, first + 2), durability)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("durability", ["group", "each"])
def test_fifty_kills_under_load(tmp_path: Path, durability: str) -> None:
    kill_under_load(tmp_path, range(50), durability)


def test_a_verification_finds_what_is_wrong(tmp_path: Path) -> None:
    """A change that is not by the workload, and a history with an unrequested transaction."""
    ledger = tmp_path / "ledger"
    with serving("--service", "records", "--folder", str(tmp_path / "data")) as server:
        assert finished(load(server, "--init-only"))[0] == 0
        short = ("--transactions", "50", "--ledger", str(ledger), "--sessions", "4")
        assert finished(load(server, *short))[0] == 0
        check = ("--verify-only", "--ledger", str(ledger))
        assert finished(load(server, *check))[0] == 0
        with contextlib.closing(Client(server.port)) as client:
            for by, right in ((1, False), (-1, True)):
                teller = client("GET", "FIRST", "concurve_tellers_1", 0)
                moved = f"{int(teller[24:36]) + by:012}"
                client("UPDATE", "concurve_tellers_1", teller[:24] + moved + teller[36:])
                code, text = finished(load(server, *check))
                assert (code == 0) is right, text
                assert right or "concurve_tellers_1" in text
            # A record of no client, which changes no sum.
            client("INSERT", "concurve_history_1", "0" * 60)
            code, text = finished(load(server, *check))
            assert code == 1 and "51 are found" in text, text


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB in memory."""
    with small_file_system(tmp_path / "small", 24 << 20) as folder:
        yield folder


@pytest.mark.parametrize("variant", VARIANTS[:3], ids=["worker", "processes", "inline"])
def test_a_full_disk_ends_the_server_without_damage(
    small_disk: Path, variant: tuple[str, ...]
) -> None:
    options = ("--service", "records", "--folder", str(small_disk / "data"), *variant)
    options += ("--checkpoint-mib", "1")
    rest = "x" * 88
    done = 0
    with serving(*options) as server:
        with contextlib.closing(Client(server.port)) as client:
            client("CREATE", "f", 100, "KEY", "0:12:text")
            with pytest.raises((ReplyError, OSError)):
                while True:
                    client("FILL", "f", done + 1, done + 1000, rest)
                    done += 1000
            assert done > 10_000, "the log is not all that was on it"
            # The FILL may have been refused beforehand: single records take what is left.
            with pytest.raises((ReplyError, OSError)):
                while True:
                    client("INSERT", "f", f"{done + 1:012}{rest}")
                    done += 1
        # It ends by itself: nobody asks anything any more.
        server.process.wait(DEADLINE_S)
        stderr = server.end(signal.SIGKILL)
    assert server.process.returncode == 1
    assert "the record engine stopped" in stderr and "No space left" in stderr
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    with serving(*options) as server, contextlib.closing(Client(server.port)) as client:
        # The refused transaction may be in the log, complete.
        assert client("COUNT", "f") in (done, done + 1, done + 1000)
        last = client("GET", "LAST", "f", 0)
        assert int(last[:12]) == client("COUNT", "f")
        client("FILL", "f", 1_000_001, 1_001_000, rest)
