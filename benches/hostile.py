"""A server with a password under hostile clients that never log in: what a logged-in client keeps.

The hostile clients come from this machine and take CPU time of it, so they are many but not busy:
most wait for what the server does with them. They end by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from measuring.estimates import median, ratio_of_medians
from measuring.figures import Bound, Figure
from measuring.running import cpu_seconds, interleaved
from measuring.showing import alone
from server import LOCK_UNLOCK, Running, ours, serving

from concurve.estimate import Estimate
from concurve.host import native

SESSIONS = 16

PASSWORD = "a password that nobody guesses"
VARIABLE = "CONCURVE_BENCH_PASSWORD"

#: Addresses of the hostile clients, each with its share of every kind.
SOURCES = [f"127.0.1.{number}" for number in range(1, 9)]

#: After it was closed, a hostile client comes again.
PAUSE_S = 5.0
#: The time between two bytes of a slow writer, and between two visits of one that goes at once.
STEP_S = 1.0

#: The hostile clients connect all at once, which takes CPU time of theirs. Then they go on.
SETTLE_S = 2.0

#: Waiting for hostile clients to come or to go.
PATIENCE_S = 60.0

MIB = 1 << 20


def figures(quick: bool) -> Iterator[Figure]:
    """Throughput and tail of the clients that are logged in, then memory."""
    rounds, seconds, clients = (2, 0.5, 100) if quick else (61, 2.0, 1000)
    how = (
        f"{SESSIONS} sessions, 1 I/O thread; {clients:,} hostile clients: idle, slow writers, "
        f"non-readers, guessers, connect and close; {rounds} interleaved rounds of {seconds} s"
    )
    with tempfile.TemporaryDirectory() as folder:
        password = Path(folder) / "password"
        password.write_text(PASSWORD)
        with serving(*ours("worker"), "--password-file", str(password)) as server:
            load(server, seconds)
            before = peak_bytes(server)
            found = interleaved(
                rounds,
                {
                    "alone": lambda: load(server, seconds),
                    "attacked": lambda: attacked(server, seconds, clients),
                },
            )
            grown = peak_bytes(server) - before
    yield Figure(
        "throughput, attacked / alone",
        how,
        ratio_of_medians(found["attacked rate"], found["alone rate"]),
        Bound(low=0.9),
    )
    yield Figure(
        "… p99",
        how,
        ratio_of_medians(found["attacked p99"], found["alone p99"]),
        Bound(high=2.0),
    )
    yield Figure(
        "… memory of the server",
        "the most that it has had after all rounds, less before the first attack",
        Estimate(value=grown / MIB, n=1, unit="MiB"),
        Bound(high=64.0),
    )
    yield Figure(
        "… hostile clients",
        "connected at the same time when the load begins",
        median(found["attacked hostile"]),
    )
    yield Figure(
        "… CPU time of the hostile clients",
        "of one CPU while the load runs; from elsewhere they would leave it to the server",
        median([100 * share for share in found["attacked cpu"]], "%"),
    )


def load(server: Running, seconds: float) -> Mapping[str, float]:
    """What logged-in sessions without pauses get.

    Raises:
        SystemExit: a request failed.
    """
    line = [str(native.binary("concurve-load")), f"127.0.0.1:{server.port}"]
    line += ["--password-from", VARIABLE, "--sessions", str(SESSIONS)]
    line += ["--duration", str(seconds), "--keys", "uniform:100000", "--json"]
    for command in LOCK_UNLOCK:
        line += ["--command", command]
    said = json.loads(subprocess.check_output(line, env=os.environ | {VARIABLE: PASSWORD}))
    if said["errors"]:
        raise SystemExit(f"benches: the load generator met errors: {said['errors_by_kind']}")
    return {"rate": said["rate_per_second"], "p99": said["latency_ns"]["p99"]}


def attacked(server: Running, seconds: float, clients: int) -> Mapping[str, float]:
    """The same while hostile clients are connected."""
    attack = multiprocessing.get_context("fork").Process(
        target=be_hostile, args=(server.port, clients), daemon=True
    )
    attack.start()
    try:
        wait_for(server, lambda count: count >= clients * STAYING)
        time.sleep(SETTLE_S)
        hostile = newcomers(server)
        used, begun = cpu_seconds(attack.pid or 0), time.monotonic()
        found = load(server, seconds)
        cpu = (cpu_seconds(attack.pid or 0) - used) / (time.monotonic() - begun)
    finally:
        attack.terminate()
        attack.join()
    wait_for(server, lambda count: count == 0)
    return {**found, "hostile": hostile, "cpu": cpu}


def wait_for(server: Running, is_right: Callable[[int], bool]) -> int:
    """Wait for a number of clients that have not logged in; that number.

    Raises:
        SystemExit: it did not come.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not is_right(count := newcomers(server)):
        if time.monotonic() > deadline:
            raise SystemExit(f"benches: {count} hostile clients are connected, and stay so")
        time.sleep(0.05)
    return count


def newcomers(server: Running) -> int:
    """How many clients are connected that have not logged in."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"*2\r\n$4\r\nAUTH\r\n${len(PASSWORD)}\r\n{PASSWORD}\r\n".encode())
        connection.sendall(b"INFO clients\r\nQUIT\r\n")
        with connection.makefile("r") as lines:
            found = dict(line.strip().split(":") for line in lines if ":" in line)
    return int(found["clients_before_login"])


def peak_bytes(server: Running) -> int:
    """The most memory that the server has had resident."""
    status = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


# -- hostile clients ---------------------------------------------------------------------------


class Peer(NamedTuple):
    """The connection of a hostile client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def idle(peer: Peer) -> None:
    """Say nothing."""
    await peer.reader.read()


async def write_slowly(peer: Peer) -> None:
    """Send a login, a byte at a time."""
    peer.writer.write(b"*2\r\n$4\r\nAUTH\r\n$1000\r\n")
    while not peer.reader.at_eof():
        peer.writer.write(b"x")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(peer.reader.read(), STEP_S)


async def never_read(peer: Peer) -> None:
    """Ask more and more, and read no answer."""
    peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
    while not peer.writer.is_closing():
        peer.writer.write(b"PING\r\n" * 1000)
        await peer.writer.drain()
        await asyncio.sleep(STEP_S)


async def guess(peer: Peer) -> None:
    """Try passwords as fast as they are answered."""
    while not peer.reader.at_eof():
        peer.writer.write(b"AUTH guess\r\n")
        await peer.reader.readline()


async def go(peer: Peer) -> None:
    """Leave at once."""


#: The kinds of hostile clients, and the share of each.
KINDS: tuple[tuple[Callable[[Peer], Awaitable[None]], float], ...] = (
    (idle, 0.3),
    (write_slowly, 0.2),
    (never_read, 0.2),
    (guess, 0.2),
    (go, 0.1),
)

#: The share that is connected most of the time: the others are closed soon, or go.
STAYING = 0.5


def be_hostile(port: int, clients: int) -> None:
    """Attack a server until the process is ended, or for two minutes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(max(soft, 2 * clients), hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    kinds = [kind for kind, share in KINDS for _ in range(round(share * clients))]
    with contextlib.suppress(TimeoutError):
        asyncio.run(asyncio.wait_for(all_together(port, kinds), 2 * PATIENCE_S))


async def all_together(port: int, kinds: list[Callable[[Peer], Awaitable[None]]]) -> None:
    sources = (SOURCES[number % len(SOURCES)] for number in range(len(kinds)))
    pairs = zip(kinds, sources, strict=True)
    await asyncio.gather(*(again_and_again(port, *pair) for pair in pairs))


async def again_and_again(
    port: int, behave: Callable[[Peer], Awaitable[None]], source: str
) -> None:
    """Connect and behave so, whenever the server has closed the connection."""
    while True:
        with contextlib.suppress(OSError):
            peer = Peer(*await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0)))
            try:
                with contextlib.suppress(OSError):
                    await behave(peer)
            finally:
                peer.writer.transport.abort()
        await asyncio.sleep(STEP_S if behave is go else PAUSE_S)


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
