"""The reference server: what a lock costs in memory and time, and its throughput beside Redis."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from measuring import (
    ROOT,
    SEED,
    Bound,
    Figure,
    alone,
    interleaved,
    ratio_of_medians,
    require,
    unless_missing,
)

from concurve import native
from concurve.estimate import Estimate

GIB = 1 << 30
SESSIONS = 50

#: A transaction of the load generator: each session has arguments of its own.
LOCK_UNLOCK = ("LOCK ORDERS {key}.{session} S", "UNLOCK ORDERS {key}.{session} S")
SET_DEL = ("SET ORDERS.{key}.{session} v NX PX 30000", "DEL ORDERS.{key}.{session}")

#: Length of the held arguments, so that they share it with many of the requests: `12345.12`.
LENGTH = 8

Server = tuple[str, int]


def figures(quick: bool) -> Iterator[Figure]:
    """Memory, then cost by what is held, then throughput."""
    yield memory(10_000 if quick else 5_000_000)
    yield from costs(2 if quick else 9, 2_000 if quick else 1_000_000, 50 if quick else 10_000)
    yield from throughput(2 if quick else 9, 0.1 if quick else 2.0)


# -- without the network ----------------------------------------------------------------------


def example(*arguments: str) -> dict[str, list[float]]:
    """What crates/concurve-server/examples/lock_costs.rs prints."""
    cargo = require("cargo", "rustup, or Debian's cargo")
    command = [cargo, "run", "--quiet", "--release", "-p", "concurve-server"]
    line = [*command, "--example", "lock_costs", "--", *arguments]
    found: dict[str, list[float]] = json.loads(subprocess.check_output(line, cwd=ROOT))
    return found


def memory(locks: int) -> Figure:
    """Resident memory of locks that are held."""
    figure = Figure(
        f"{locks:,} locks held",
        "resident memory more than with none; 12 bytes of argument, 50 owners, one table",
        bound=Bound(high=1.0),
    )

    def measure() -> Estimate:
        resident = example("memory", str(locks))["bytes"]
        assert isinstance(resident, int)
        return Estimate(value=resident / GIB, n=1, unit="GiB")

    return unless_missing(figure, measure)


# -- over the network -------------------------------------------------------------------------


@contextlib.contextmanager
def serving(*command: str) -> Iterator[Server]:
    """A server on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, stdout=subprocess.DEVNULL
        )
        try:
            wait_for(port)
            yield ("127.0.0.1", port)
        finally:
            process.terminate()
            process.wait()


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def ours(execution: str) -> tuple[str, ...]:
    program = str(native.binary("concurve-server"))
    return (program, "--execution", execution, "--io-threads", "1", "--capacity", "10000000")


def redis() -> tuple[str, ...]:
    program = require("redis-server", "redis-server")
    return (program, "--save", "", "--appendonly", "no", "--io-threads", "1")


def rate(server: Server, commands: Sequence[str], seconds: float) -> float:
    """Transactions a second that sessions without pauses get."""
    host, port = server
    line = [str(native.binary("concurve-load")), f"{host}:{port}", "--sessions", str(SESSIONS)]
    line += ["--duration", str(seconds), "--keys", "uniform:100000", "--json"]
    for command in commands:
        line += ["--command", command]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    figures = json.loads(said)
    if figures["errors"]:
        raise SystemExit(f"benches: the load generator met errors: {figures['errors_by_kind']}")
    return float(figures["rate_per_second"])


def costs(rounds: int, locks: int, generic: int) -> Iterator[Figure]:
    """A lock request and its unlock, by what the table holds."""
    how = f"time per request pair of {SESSIONS} sessions, {rounds} interleaved rounds of 1 s"
    with contextlib.ExitStack() as stack:
        servers = {
            name: stack.enter_context(serving(*ours("worker")))
            for name in ("small", "large", "few", "many")
        }
        hold(servers["small"], exact(1000))
        hold(servers["large"], exact(locks))
        for name in ("few", "many"):
            hold(servers[name], exact(locks - generic))
            hold(servers[name], patterns(name, generic))
        found = interleaved(rounds, {name: pair_time(it, 1.0) for name, it in servers.items()})
    small = found["small s"]
    names = {
        "large": (f"lock with {locks:,} held / 1,000", 1.3),
        "few": (f"… {generic:,} generic, 3 patterns", 3.0),
        "many": (f"… {generic:,} generic, 56 patterns", 3.0),
    }
    for name, (title, most) in names.items():
        estimate = ratio_of_medians(found[f"{name} s"], small)
        yield Figure(title, how, estimate, Bound(high=most))


def pair_time(server: Server, seconds: float) -> Callable[[], Mapping[str, float]]:
    return lambda: {"s": 1 / rate(server, LOCK_UNLOCK, seconds)}


def exact(locks: int) -> Iterator[str]:
    return (f"{number:0{LENGTH}}" for number in range(locks))


def patterns(kind: str, locks: int) -> Iterator[str]:
    """Generic arguments, all different: wild at the end, or at three positions of eight."""
    draw, seen = random.Random(SEED), set[str]()
    while len(seen) < locks:
        text = list(f"{draw.randrange(10**5):05}.{draw.randrange(50):02}")
        if kind == "few":
            tail = draw.randrange(1, 4)
            wild = list(range(LENGTH - tail, LENGTH))
        else:
            wild = draw.sample(range(LENGTH), 3)
        for position in wild:
            text[position] = "@"
        argument = "".join(text)
        if argument not in seen:
            seen.add(argument)
            yield argument


def hold(server: Server, arguments: Iterator[str]) -> None:
    """Take shared locks for an owner that keeps them when its connection ends."""
    with socket.create_connection(server) as connection, connection.makefile("rb") as replies:
        connection.sendall(b"OWNER holder UPDATE\r\n")
        assert replies.readline() == b"+OK\r\n"
        while batch := [argument for _, argument in zip(range(500), arguments, strict=False)]:
            lines = (f"LOCK ORDERS {argument} S\r\n" for argument in batch)
            connection.sendall("".join(lines).encode())
            for _ in batch:
                assert replies.readline() == b":1\r\n"


def throughput(rounds: int, seconds: float) -> Iterator[Figure]:
    """Lock and unlock beside Redis with the same driver, and inline beside the worker."""
    how = f"{SESSIONS} sessions, 1 I/O thread each, {rounds} interleaved rounds of {seconds} s"
    beside_redis = Figure(
        "lock+unlock, worker / Redis SET NX+DEL", how, bound=Bound(low=1.0, parity=True)
    )
    inline = Figure("lock+unlock, inline / worker", f"{how}; the client shares the CPUs")
    with contextlib.ExitStack() as stack:
        sides = {}
        for name in ("worker", "inline"):
            server = stack.enter_context(serving(*ours(name)))
            sides[name] = side(server, LOCK_UNLOCK, seconds)
        missing = unless_missing(beside_redis, lambda: Estimate(value=len(redis())))
        if not missing.missing:
            sides["redis"] = side(stack.enter_context(serving(*redis())), SET_DEL, seconds)
        found = interleaved(rounds, sides)
    if missing.missing:
        yield missing
    else:
        estimate = ratio_of_medians(found["worker rate"], found["redis rate"])
        yield beside_redis._replace(estimate=estimate)
    yield inline._replace(estimate=ratio_of_medians(found["inline rate"], found["worker rate"]))


def side(
    server: Server, commands: Sequence[str], seconds: float
) -> Callable[[], Mapping[str, float]]:
    return lambda: {"rate": rate(server, commands, seconds)}


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
