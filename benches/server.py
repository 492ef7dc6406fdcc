"""The reference server: what a lock costs in memory and time, and its throughput beside Redis."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measuring.estimates import SEED, Samples, median, median_of_ratios
from measuring.figures import Bound, Figure, MissingToolError, unless_missing
from measuring.ports import free_port, wait_for
from measuring.running import ROOT, interleaved
from measuring.showing import alone
from measuring.tools import require

from concurve.estimate import Estimate
from concurve.host import native

GIB = 1 << 30
SESSIONS = 50

#: A transaction of the load generator: each session has arguments of its own.
LOCK_UNLOCK = ("LOCK ORDERS {key}.{session} S", "UNLOCK ORDERS {key}.{session} S")
SET_DEL = ("SET ORDERS.{key}.{session} v NX PX 30000", "DEL ORDERS.{key}.{session}")

#: Length of the held arguments, so that they share it with many of the requests: `12345.12`.
LENGTH = 8


class Running(NamedTuple):
    """A server on a free port of this machine."""

    pid: int
    port: int


class Load(NamedTuple):
    """What sessions without pauses got from a server."""

    rate: float
    """Transactions a second."""
    p99_us: float
    demand_us: Mapping[str, float]
    """CPU time of each thread of the server for a request."""


def figures(quick: bool) -> Iterator[Figure]:
    """Memory, then cost by what is held, then throughput, then Redis by places and sessions."""
    held, generic = (2_000, 50) if quick else (1_000_000, 10_000)
    yield memory(10_000 if quick else 5_000_000)
    yield from engine(3 if quick else 15, held, generic)
    yield from costs(2 if quick else 9, held, generic)
    yield from throughput(2 if quick else 21, 0.2 if quick else 2.0)
    yield from beside_redis(2 if quick else 27, 0.2 if quick else 0.5, (1, 50) if quick else COUNTS)


# -- without the network ----------------------------------------------------------------------


def example(*arguments: str) -> dict[str, Any]:
    """What subjects/server/examples/lock_costs.rs prints."""
    cargo = require("cargo", "rustup, or Debian's cargo")
    command = [cargo, "run", "--quiet", "--release", "-p", "concurve-server"]
    line = [*command, "--example", "lock_costs", "--", *arguments]
    found: dict[str, Any] = json.loads(subprocess.check_output(line, cwd=ROOT))
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
        return Estimate(value=resident / GIB, n=1, unit="GiB")

    return unless_missing(figure, measure)


def engine(rounds: int, locks: int, generic: int) -> Iterator[Figure]:
    """The same requests without sockets and threads: what the lock table itself costs."""
    how = f"CPU time of a request pair from bytes to bytes, {rounds} interleaved rounds"
    try:
        found = example("time", str(locks), str(generic), str(rounds))
    except MissingToolError as error:
        yield Figure("the lock table alone", how, missing=str(error))
        return
    small = found["small"]
    yield Figure(
        "lock+unlock, table alone, 1,000 held", how, median([it / 1000 for it in small], "µs")
    )
    names = {
        "large": f"… {locks:,} held / 1,000",
        "few_patterns": f"… {generic:,} generic, 3 patterns",
        "many_patterns": f"… {generic:,} generic, up to 298 patterns",
    }
    for name, title in names.items():
        yield Figure(title, how, median_of_ratios(found[name], small))


# -- over the network -------------------------------------------------------------------------


@contextlib.contextmanager
def serving(*command: str) -> Iterator[Running]:
    """A server on a free port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, stdout=subprocess.DEVNULL
        )
        try:
            wait_for(port)
            yield Running(process.pid, port)
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def placed(cpu: int) -> Iterator[None]:
    """Processes started inside of this context run on this CPU alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def ours(execution: str, io_threads: int = 1) -> tuple[str, ...]:
    program = str(native.binary("concurve-server"))
    latching = "global" if execution == "worker" else "record"
    options = ("--execution", execution, "--io-threads", str(io_threads), "--latching", latching)
    return (program, *options, "--capacity", "10000000")


def redis() -> tuple[str, ...]:
    program = require("redis-server", "redis-server")
    return (program, "--save", "", "--appendonly", "no", "--io-threads", "1")


def load(
    server: Running,
    commands: Sequence[str],
    seconds: float,
    sessions: int = SESSIONS,
    spin_us: int = 0,
) -> Load:
    """Put load on a server; ``spin_us``: the client polls for so long before it sleeps.

    Raises:
        SystemExit: a request failed.
    """
    line = [str(native.binary("concurve-load")), f"127.0.0.1:{server.port}"]
    line += ["--sessions", str(sessions), "--duration", str(seconds), "--keys", "uniform:100000"]
    line += ["--spin", f"{spin_us}us"]
    for command in commands:
        line += ["--command", command]
    before = cpu_us(server.pid)
    said = json.loads(subprocess.check_output([*line, "--json"]))
    after = cpu_us(server.pid)
    if said["errors"]:
        raise SystemExit(f"benches: the load generator met errors: {said['errors_by_kind']}")
    requests = said["operations"] * len(commands)
    if not requests:  # on a busy machine a short load may end before its first answer
        return load(server, commands, 2 * seconds, sessions, spin_us)
    demand = {task: (time - before.get(task, 0.0)) / requests for task, time in after.items()}
    return Load(said["rate_per_second"], said["latency_ns"]["p99"] / 1e3, demand)


def cpu_us(pid: int) -> dict[str, float]:
    """CPU time of each thread of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {it.name: int((it / "schedstat").read_text().split()[0]) / 1e3 for it in tasks}


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
        estimate = median_of_ratios(found[f"{name} s"], small)
        yield Figure(title, how, estimate, Bound(high=most))


def pair_time(server: Running, seconds: float) -> Callable[[], Mapping[str, float]]:
    return lambda: {"s": 1 / load(server, LOCK_UNLOCK, seconds).rate}


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


def hold(server: Running, arguments: Iterator[str]) -> None:
    """Take shared locks for an owner that keeps them when its connection ends."""
    address = ("127.0.0.1", server.port)
    with socket.create_connection(address) as connection, connection.makefile("rb") as replies:
        connection.sendall(b"OWNER holder UPDATE\r\n")
        assert replies.readline() == b"+OK\r\n"
        while batch := [argument for _, argument in zip(range(500), arguments, strict=False)]:
            lines = (f"LOCK ORDERS {argument} S\r\n" for argument in batch)
            connection.sendall("".join(lines).encode())
            for _ in batch:
                assert replies.readline() == b":1\r\n"


# -- beside Redis, apart and sharing ----------------------------------------------------------

#: Sessions of the load, on one client thread.
COUNTS = (1, 50, 500, 5_000)

#: How long both sides poll before they sleep, where they do.
SPIN_US = 100

#: At least so many times Redis's requests a second, by execution and sessions, where server and
#: client have a CPU each.
APART = {
    ("inline", 50): 1.15, ("inline", 500): 1.4, ("worker", 50): 1.1, ("worker", 500): 1.35,
    ("spinning", 1): 1.5,
}  # fmt: skip

#: At most so many times Redis's 99th percentile, where server and client share the CPUs.
SHARING_P99 = 1.0


class Place(NamedTuple):
    """Where server and client run: on one CPU each, or (``None``) wherever the kernel puts them."""

    name: str
    server: int | None
    client: int | None
    how: str


def beside_redis(rounds: int, seconds: float, counts: Sequence[int]) -> Iterator[Figure]:
    """The same load on the lock server and on Redis, with a CPU for each side and without.

    Where they share the CPUs, the client is measured as much as the server: it uses more than half
    of a request's CPU time. Apart, the server's CPU limits the rate as long as the client keeps up.
    """
    try:
        redis()
    except MissingToolError as error:
        yield Figure("lock+unlock beside Redis", f"{counts} sessions", missing=str(error))
        return
    cpus = sorted(os.sched_getaffinity(0))
    places = [Place("sharing", None, None, "server and client share the CPUs")]
    if len(cpus) < 2:
        yield Figure("lock+unlock beside Redis, apart", "a CPU each", missing="a second CPU")
    else:
        server, client = cpus[0], cpus[-1]
        how = f"server on CPU {server}, client on CPU {client}"
        places.insert(0, Place("apart", server, client, how))
    for place in places:
        for sessions in counts:
            yield from at_sessions(place, sessions, rounds, seconds)


def at_sessions(place: Place, sessions: int, rounds: int, seconds: float) -> Iterator[Figure]:
    """So many sessions at one place. One session also where client and server poll: Redis cannot,
    so only its client does."""
    how = f"{place.how}; {sessions:,} sessions, {rounds} interleaved rounds of {seconds} s"
    commands = {"inline": ours("inline"), "worker": ours("worker"), "redis": redis()}
    spins = sessions == 1 and place.server is not None
    if spins:
        commands["spinning"] = (*ours("inline"), "--idle", f"spin:{SPIN_US}")
    with contextlib.ExitStack() as stack:
        sides = {}
        for name, command in commands.items():
            with on(place.server):
                server = stack.enter_context(serving(*command))
            requests = SET_DEL if name == "redis" else LOCK_UNLOCK
            spin_us = SPIN_US if name == "spinning" else 0
            sides[name] = side(server, requests, seconds, sessions, place.client, spin_us)
            if spins and name == "redis":
                sides["redis, polled"] = side(
                    server, requests, seconds, sessions, place.client, SPIN_US
                )
        found = interleaved(rounds, sides)
    where = f"{place.name}, {sessions:,}"
    yield Figure(f"Redis, {where}: requests a second", how, median(doubled(found["redis rate"])))
    yield Figure(f"… {where}: server CPU a request", how, median(found["redis cpu"], "µs"))
    yield Figure(f"… {where}: p99", how, median(found["redis p99"], "µs"))
    pairs = [("inline", "redis"), ("worker", "redis")]
    pairs += [("spinning", "redis, polled")] if spins else []
    for name, other in pairs:
        is_apart = place.server is not None
        wanted = APART.get((name, sessions)) if is_apart else None
        title = f"{where}: {name} / {other}"
        for what, words, bound in (
            ("rate", title, None if wanted is None else Bound(low=wanted)),
            ("cpu", f"… {title}, server CPU a request", None),
            ("p99", f"… {title}, p99", None if is_apart else Bound(high=SHARING_P99)),
        ):
            estimate = median_of_ratios(found[f"{name} {what}"], found[f"{other} {what}"])
            yield Figure(words, how, estimate, bound)


def doubled(rates: Sequence[float]) -> list[float]:
    """Requests from pairs of them."""
    return [2 * rate for rate in rates]


@contextlib.contextmanager
def on(cpu: int | None) -> Iterator[None]:
    """As :func:`placed`; ``None``: anywhere."""
    with contextlib.nullcontext() if cpu is None else placed(cpu):
        yield


#: The document's mean time per lock, by its own reckoning: elapsed time over locks.
PUBLISHED_US = 255.0

#: CPUs that the bound on the server's throughput is for.
CPUS = 2


def throughput(rounds: int, seconds: float) -> Iterator[Figure]:
    """Lock and unlock beside Redis with the same driver, and inline beside the worker."""
    how = f"{SESSIONS} sessions, 1 I/O thread each, {rounds} interleaved rounds of {seconds} s"
    with contextlib.ExitStack() as stack:
        sides = {}
        for name, io_threads in (("worker", 1), ("inline", 1), ("inline2", 2)):
            server = stack.enter_context(serving(*ours(name.rstrip("2"), io_threads)))
            sides[name] = side(server, LOCK_UNLOCK, seconds)
        beside_redis = Figure("lock+unlock, worker / Redis SET NX+DEL", how)
        missing = unless_missing(beside_redis, lambda: Estimate(value=len(redis())))
        if not missing.missing:
            sides["redis"] = side(stack.enter_context(serving(*redis())), SET_DEL, seconds)
        found = interleaved(rounds, sides)
    if missing.missing:
        yield missing
    else:
        yield from against_redis(found, how)
    yield Figure(
        f"mean time per lock / {PUBLISHED_US / 1000} ms",
        f"{how}: elapsed time over locks, as the document reckons; each lock is given back",
        median_of_ratios([1e6 / it for it in found["worker rate"]], [PUBLISHED_US] * rounds),
        Bound(high=0.1),
    )
    yield from inline_beside_worker(found, how)


def against_redis(found: Samples, how: str) -> Iterator[Figure]:
    """Throughput, the tail, and what a request costs the server."""
    for name, what, bound in (
        ("lock+unlock, worker / Redis SET NX+DEL", "rate", Bound(low=1.0, parity=True)),
        ("… p99", "p99", Bound(high=1.0)),
        ("… server CPU per request", "cpu", None),
    ):
        estimate = median_of_ratios(found[f"worker {what}"], found[f"redis {what}"])
        yield Figure(name, how, estimate, bound)


def inline_beside_worker(found: Samples, how: str) -> Iterator[Figure]:
    """What is measured, and what the server could do if the client ran elsewhere.

    Here the client takes half of two CPUs, so the rates measure both. A bound that leaves it out:
    a server cannot answer more requests a second than 1 ÷ the CPU time that a request needs of
    its busiest thread, nor than CPUs ÷ the CPU time of all its threads (the utilization law;
    Denning and Buzen 1978, *Computing Surveys* 10(3)). The worker mode is SAP's shape with one
    I/O thread; inline has a thread for each of the two CPUs, which share nothing but the table.
    CPU time holds the cost of waking and switching threads, and caches that the client soils;
    waiting for each other's latches shows in it only as far as threads spin or switch.
    """
    for name, side in (("inline / worker", "inline"), ("inline with 2 / worker with 1", "inline2")):
        yield Figure(
            f"lock+unlock, {name}",
            f"{how}, or 2; the client shares the CPUs",
            median_of_ratios(found[f"{side} rate"], found["worker rate"]),
        )
    yield Figure(
        "… on two CPUs, the client elsewhere",
        "bound by the CPU time of a request: of the busiest thread, and of all on two CPUs",
        median_of_ratios(found["inline2 bound"], found["worker bound"]),
        Bound(low=1.5),
    )


def side(
    server: Running,
    commands: Sequence[str],
    seconds: float,
    sessions: int = SESSIONS,
    client_cpu: int | None = None,
    spin_us: int = 0,
) -> Callable[[], Mapping[str, float]]:
    def measure() -> Mapping[str, float]:
        with on(client_cpu):
            found = load(server, commands, seconds, sessions, spin_us)
        cpu = sum(found.demand_us.values())
        bound = 1e6 / max(*found.demand_us.values(), cpu / CPUS)
        return {"rate": found.rate, "p99": found.p99_us, "cpu": cpu, "bound": bound}

    return measure


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
