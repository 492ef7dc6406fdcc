"""Engines that are threads beside engines that are processes, in the lock service."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping

from measuring.estimates import median_of_ratios
from measuring.figures import Bound, Figure
from measuring.running import interleaved
from measuring.showing import alone
from server import LOCK_UNLOCK, Running, load, placed, serving

from concurve.host import native

#: The same work done by an engine of either kind must take the same time.
MODES_DIFFER_AT_MOST = 0.05

OPTIONS = {
    "processes": ("--engines", "processes"),
    "inline": ("--execution", "inline"),
    "threads": ("--execution", "worker", "--replies", "engine"),
    "returned": ("--execution", "worker", "--replies", "io-thread"),
}
"""One engine: a process or a thread that has the network to itself; and one that a thread for the
network feeds, which sends replies itself, as in document 001's threaded mode, or gives them back.
"""

TITLES = {
    "inline": "engine, thread / process",
    "threads": "… with a network thread",
    "returned": "… that also sends",
}

MANY_SESSIONS = 50


def figures(quick: bool) -> Iterator[Figure]:
    """One client and one engine on CPUs of their own; then where the kernel places all."""
    yield from apart(*((2, 0.1) if quick else (161, 0.2)))
    rounds, seconds = (2, 0.1) if quick else (21, 1.0)
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(serving(*ours(name))) for name in OPTIONS}
        for sessions in (1, MANY_SESSIONS):
            yield from beside(servers, sessions, rounds, seconds)


def ours(name: str) -> tuple[str, ...]:
    return (str(native.binary("concurve-server")), *OPTIONS[name])


def apart(rounds: int, seconds: float) -> Iterator[Figure]:
    """A server on the last CPU, its only client on the first.

    Where the kernel places the two, it changes its mind, and wake-ups within one CPU take another
    time. The rounds are short, since this machine's speed drifts.
    """
    cpus = sorted(os.sched_getaffinity(0))
    bound = Bound(low=1 - MODES_DIFFER_AT_MOST, high=1 + MODES_DIFFER_AT_MOST)
    with contextlib.ExitStack() as stack:
        with placed(cpus[-1]):
            servers = {name: stack.enter_context(serving(*ours(name))) for name in OPTIONS}
        with placed(cpus[0]):
            yield from beside(servers, 1, rounds, seconds, {"inline": bound, "threads": bound})


def beside(
    servers: Mapping[str, Running],
    sessions: int,
    rounds: int,
    seconds: float,
    bounds: Mapping[str, Bound] | None = None,
) -> Iterator[Figure]:
    """Throughput of the others as a multiple of that of the engine that is a process."""
    who = "one client" if sessions == 1 else f"{sessions} clients"
    who, where = (f"{who} apart", ", client on another CPU") if bounds else (who, "")
    how = f"lock+unlock, one engine{where}, {rounds} interleaved rounds of {seconds} s"
    found = interleaved(
        rounds, {name: side(server, sessions, seconds) for name, server in servers.items()}
    )
    for name, title in TITLES.items():
        ratio = median_of_ratios(found[f"{name} rate"], found["processes rate"])
        yield Figure(f"{title}, {who}", how, ratio, (bounds or {}).get(name))


def side(server: Running, sessions: int, seconds: float) -> Callable[[], Mapping[str, float]]:
    return lambda: {"rate": load(server, LOCK_UNLOCK, seconds, sessions).rate}


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
