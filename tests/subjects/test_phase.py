"""The measured phase, which a client marks and the server reports when it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.helpers.engine_kills import PROCESSES
from tests.helpers.real import wait_until
from tests.helpers.resp import Client, Reply, Server, missing, serving
from tests.monitor.test_monitor import MODES, work

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

STATES = ("busy", "spinning", "disk", "asleep")


@pytest.fixture(params=MODES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with serving("--idle", "spin:100", *MODES[request.param]) as running:
        yield running


def test_a_marked_phase_is_reported_when_the_server_ends(server: Server) -> None:
    client = Client(server.port)
    work(server, 50)
    assert client.refused("PHASE", "END") == "ERR"
    assert client.refused("PHASE", "MIDDLE") == "ERR"
    client("PHASE", "BEGIN")
    work(server, 100)
    client("PHASE", "END")
    work(server, 50)
    client.close()
    assert server.end() == ""
    found = server.indicators()
    # The connections' own requests and the mark itself may be counted, the work around it not.
    assert 100 <= found["phase_requests", None] < 110
    for engine in ("engine-1", "engine-2", None):
        shares = [found[f"engine_{state}_share", engine] for state in STATES]
        assert sum(shares) == pytest.approx(1)
    assert found["busy_threads_mean", None] > 0
    assert found["latch_acquisitions", None] > 0
    assert all(name.replace("_", "").isalnum() for name, _ in found)


def test_without_marks_nothing_of_a_phase_is_reported(server: Server) -> None:
    client = Client(server.port)
    client("PHASE", "BEGIN")
    client.close()
    server.end()
    assert not [name for name, _ in server.indicators() if name.startswith(("phase_", "engine_"))]


# ── engines that die in it ───────────────────────────────────────────────────


class Counting(Client):
    """A client whose requests are counted once they are answered."""

    answered = 0

    def __call__(self, *words: str | int) -> Reply:
        reply = super().__call__(*words)
        self.answered += 1
        return reply

    def lock(self, count: int) -> None:
        """Take some locks without contention."""
        name = self.socket.getsockname()[1]
        for number in range(count):
            self("LOCK", "T", f"{name}-{self.answered}-{number}", "E")

    def clocks(self) -> set[str]:
        """Those of the engines that are there."""
        lines = str(self("INFO", "engines")).splitlines()
        return {line.rpartition("clock=")[2] for line in lines if "cpu_us=" in line}


def lives(client: Client) -> bool:
    """Whether its engine does."""
    try:
        return bool(client("PING") == "PONG")
    except OSError:
        return False


@pytest.mark.parametrize("victim", [0, 1])
def test_of_an_engine_that_died_in_it_nothing_wrong_is_reported(victim: int) -> None:
    """One of the two is the engine of the client that marks the beginning."""
    with serving("--idle", "spin:100", *PROCESSES) as server:
        two = [Counting(server.port) for _ in range(2)]
        for client in two:
            client.lock(10)
        wait_until(lambda: len(two[0].clocks()) == 2, "both engines")
        before = two[0].clocks()
        begin, outside = time.monotonic(), sum(client.answered for client in two)
        two[0]("PHASE", "BEGIN")
        for client in two:
            client.lock(50)
        os.kill(server.engines()[victim], signal.SIGKILL)
        (survivor,) = (client for client in two if lives(client))
        wait_until(lambda: len(survivor.clocks() - before) == 1, "a new engine")
        with contextlib.closing(Counting(server.port)) as newcomer:
            newcomer.lock(20)
            survivor.lock(20)
            # The mark of the beginning is in the phase.
            done = sum(client.answered for client in (*two, newcomer)) - outside
            survivor("PHASE", "END")
        wall_seconds = time.monotonic() - begin
        for client in two:
            client.close()
    found = server.indicators()
    assert found["phase_requests", None] == done
    assert 0 < found["phase_seconds", None] <= wall_seconds
    assert found["latch_acquisitions", None] > found["latch_waits", None]
    known = {engine for name, engine in found if name == "engine_busy_share"}
    assert len(known) == 1 and known < {"engine-1", "engine-2"}
    (engine,) = known
    assert sum(found[f"engine_{state}_share", engine] for state in STATES) == pytest.approx(1)
    assert found["engine_cpu_share", engine] > 0
    sums = {"phase_cpu_seconds", "requests_per_cpu_second", "busy_threads_mean"}
    assert not sums & {name for name, _ in found}, "what the dead one spent is not known"


def test_a_phase_does_not_outlive_its_generation() -> None:
    with serving(*PROCESSES) as server:
        with contextlib.closing(Client(server.port)) as client:
            client("PHASE", "BEGIN")
            os.kill(server.processes()[1], signal.SIGKILL)
            wait_until(lambda: not lives(client), "the end of its engine")
        wait_until(lambda: ends_nothing(server), "new engines", of=server)
        stderr = server.end()
    assert "generation 2" in stderr
    assert not [name for name, _ in server.indicators() if name.startswith(("phase_", "engine_"))]


def ends_nothing(server: Server) -> bool:
    """Whether engines answer for which no phase was begun; those before may live on a moment."""
    try:
        with contextlib.closing(Client(server.port)) as client:
            return client.refused("PHASE", "END") == "ERR"
    except (OSError, AssertionError):
        return False
