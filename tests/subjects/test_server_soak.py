"""The reference server for a long time under mixed load: no error, no memory or descriptor lost.

``CONCURVE_SOAK_SECONDS`` sets how long ``make soak`` takes here (default: 600).
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from concurve.host import native
from tests.helpers.resp import DEADLINE_S, Client, ReplyError, Server, encode, missing, serving

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

SOAK_SECONDS = float(os.environ.get("CONCURVE_SOAK_SECONDS", "600"))

#: A thousand sessions: locks taken and released, keys of Redlock, many shared and generic locks.
LOADS: dict[str, tuple[int, tuple[str, ...]]] = {
    "exact": (500, ("LOCK T {key}.{session} E", "UNLOCK T {key}.{session} E")),
    "generic": (100, ("LOCK G {session}.@@@ S", "LOCK G {session}.123 S", "UNLOCKALL")),
    "crowd": (200, ("LOCK T crowd S SCOPE 3 BACKUP", "UNLOCK T crowd S SCOPE 3")),
    "keys": (200, ("SET {key}.{session} v NX PX 30000", "DEL {key}.{session}")),
}

#: Growth over the second half that counts as none: a heap may take some more pages at any time.
SLACK_BYTES = 2 << 20


class Sample(NamedTuple):
    seconds: float
    resident_bytes: int
    descriptors: int


def sample(server: Server) -> Sample:
    process = Path("/proc") / str(server.process.pid)
    pages = int((process / "statm").read_text().split()[1])
    descriptors = len(list((process / "fd").iterdir()))
    return Sample(time.monotonic(), pages * resource.getpagesize(), descriptors)


def load(server: Server, name: str, seconds: float) -> subprocess.Popen[str]:
    """Sessions of one kind; their rate is bounded so that none starves the others."""
    sessions, commands = LOADS[name]
    line = [str(native.binary("concurve-load")), f"127.0.0.1:{server.port}"]
    line += ["--sessions", str(sessions), "--duration", str(seconds), "--think", "5ms"]
    for command in commands:
        line += ["--command", command]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Visitors(threading.Thread):
    """Clients that come, take locks, and go without a word, some amid a request."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.port, self.stopped = server.port, threading.Event()
        self.visits, self.unexpected = 0, list[str]()

    def run(self) -> None:
        draw = random.Random(1)
        while not self.stopped.wait(0.002):
            client = Client(self.port)
            try:
                self.visit(client, draw)
            except (ReplyError, OSError) as error:
                self.unexpected.append(str(error))
            client.close()
            self.visits += 1

    def visit(self, client: Client, draw: random.Random) -> None:
        client("OWNER", f"visitor-{draw.randrange(1000)}")
        for _ in range(draw.randrange(4)):
            client("LOCK", "V", str(draw.randrange(10**6)), "S")
        client("LOCKS", "TABLE", "V", "COUNT", 10)
        if draw.random() < 0.5:
            client.socket.sendall(encode("LOCK", "V", "half", "S")[: draw.randrange(1, 20)])


def soak(seconds: float, *options: str) -> list[Sample]:
    """Samples of a server under load, one a second or twenty; it was sound before and after."""
    with serving("--clients-max", "1500", *options) as server:
        before = descriptors_without_clients(server)
        visitors = Visitors(server)
        visitors.start()
        loads = {name: load(server, name, seconds) for name in LOADS}
        try:
            samples = watch(server, list(loads.values()), min(1.0, seconds / 20))
        finally:
            visitors.stopped.set()
            visitors.join(DEADLINE_S)
            for running in loads.values():
                if running.poll() is None:
                    running.kill()
        for name, running in loads.items():
            stdout, stderr = running.communicate()
            assert running.returncode == 0, f"{name}: {stdout}{stderr}"
            assert "(0 refused, 0 errors)" in stdout, f"{name}: {stdout}"
        assert visitors.visits > 0 and visitors.unexpected == []
        with contextlib.closing(Client(server.port)) as client:
            wait_until_idle(client, server, before + 1)
            # A session that ended between its lock and its unlock left the update part.
            for owner in {row["owner"] for row in client.locks()}:
                assert client("UNLOCKALL", "UPDATE", "OWNER", owner) == 1
            left = client.table("LOCKSTAT")
            assert (left["locks"], left["arguments"], left["errors"]) == (0, 0, 0)
    assert server.process.returncode == 0
    return samples


def descriptors_without_clients(server: Server) -> int:
    """Once each of its two I/O threads has begun, and so has answered."""
    clients = [Client(server.port) for _ in range(2)]
    assert all(client("PING") == "PONG" for client in clients)
    descriptors = sample(server).descriptors - len(clients)
    for client in clients:
        client.close()
    return descriptors


def watch(server: Server, loads: Sequence[subprocess.Popen[str]], every: float) -> list[Sample]:
    samples = []
    while any(running.poll() is None for running in loads):
        samples.append(sample(server))
        time.sleep(every)
    return samples


def wait_until_idle(client: Client, server: Server, descriptors: int) -> None:
    """Connections that were lost are closed by and by."""
    deadline = time.monotonic() + DEADLINE_S
    while sample(server).descriptors > descriptors or any(row["dialog"] for row in client.locks()):
        assert time.monotonic() < deadline, f"{sample(server).descriptors} descriptors are left"
        time.sleep(0.05)


def assert_flat(samples: Sequence[Sample]) -> None:
    """Memory does not grow over the second half: Theil and Sen's slope, with its 95 % interval."""
    from scipy.stats import theilslopes

    half = samples[len(samples) // 2 :]
    times = [it.seconds - half[0].seconds for it in half]
    sizes = [float(it.resident_bytes) for it in half]
    slope, _, low, high = theilslopes(sizes, times)
    grown = low * times[-1]
    shown = f"{slope:.0f} [{low:.0f}, {high:.0f}] bytes/s over {times[-1]:.0f} s of {sizes[-1]:.0f}"
    print(f"resident memory: {shown}")
    assert grown <= SLACK_BYTES, f"memory grows: {shown}"


def test_a_leak_is_told_from_noise() -> None:
    draw = random.Random(2)
    flat = [Sample(n, 50_000_000 + draw.randrange(200_000), 9) for n in range(600)]
    assert_flat(flat)
    leaking = [
        it._replace(resident_bytes=it.resident_bytes + int(it.seconds * 10_000)) for it in flat
    ]
    with pytest.raises(AssertionError, match="memory grows"):
        assert_flat(leaking)


THREAD_MODELS = {
    "worker": ("--io-threads", "2"),
    "inline": ("--execution", "inline", "--io-threads", "2", "--latching", "record"),
}


@pytest.mark.parametrize("model", THREAD_MODELS)
def test_a_few_seconds_of_mixed_load(tmp_path: Path, model: str) -> None:
    soak(2.0, "--backup", str(tmp_path / "locks"), *THREAD_MODELS[model])


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS + 300)
@pytest.mark.parametrize("model", THREAD_MODELS)
def test_a_thousand_sessions_for_ten_minutes(tmp_path: Path, model: str) -> None:
    samples = soak(SOAK_SECONDS, "--backup", str(tmp_path / "locks"), *THREAD_MODELS[model])
    assert_flat(samples)
    descriptors = [it.descriptors for it in samples[len(samples) // 2 :]]
    assert max(descriptors) < 1500
