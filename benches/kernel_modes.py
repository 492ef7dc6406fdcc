"""Engines that are threads beside engines that are processes, in the lock service."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping

from measuring import Bound, Figure, alone, interleaved, median_of_ratios
from server import LOCK_UNLOCK, Running, load, placed, serving

from concurve.host import native

#: The same work done by an engine of either kind must take the same time.
MODES_DIFFER_AT_MOST = 0.05

DIALS = {
    "threads": ("--execution", "inline"),
    "processes": ("--engines", "processes"),
    "queue": ("--engines", "threads", "--execution", "worker"),
}
"""One engine: a thread or a process that has the network itself, and one with a thread for that."""

MANY_SESSIONS = 50


def figures(quick: bool) -> Iterator[Figure]:
    """One client and one engine on CPUs of their own; then where the kernel places all."""
    yield from apart(*((2, 0.2) if quick else (161, 0.2)))
    rounds, seconds = (2, 0.2) if quick else (21, 1.0)
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(serving(*ours(name))) for name in DIALS}
        for sessions in (1, MANY_SESSIONS):
            yield from beside(servers, sessions, rounds, seconds)


def ours(name: str) -> tuple[str, ...]:
    return (str(native.binary("concurve-server")), *DIALS[name])


def apart(rounds: int, seconds: float) -> Iterator[Figure]:
    """An engine on the last CPU, its only client on the first.

    Where the kernel places the two, it changes its mind, and wake-ups within one CPU take another
    time. The rounds are short, since this machine's speed drifts.
    """
    cpus = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        with placed(cpus[-1]):
            servers = {
                name: stack.enter_context(serving(*ours(name))) for name in ("threads", "processes")
            }
        with placed(cpus[0]):
            found = interleaved(rounds, {it: side(servers[it], 1, seconds) for it in servers})
    yield Figure(
        "engine, thread / process, client on another CPU",
        f"lock+unlock, one client, {rounds} interleaved rounds of {seconds} s",
        median_of_ratios(found["threads rate"], found["processes rate"]),
        Bound(low=1 - MODES_DIFFER_AT_MOST, high=1 + MODES_DIFFER_AT_MOST),
    )


def beside(
    servers: Mapping[str, Running], sessions: int, rounds: int, seconds: float
) -> Iterator[Figure]:
    """Throughput of the others as a multiple of that of the engine that is a process."""
    who = "one client" if sessions == 1 else f"{sessions} clients"
    how = f"lock+unlock, one engine, {rounds} interleaved rounds of {seconds} s"
    found = interleaved(
        rounds, {name: side(server, sessions, seconds) for name, server in servers.items()}
    )
    names = {
        "threads": f"engine, thread / process, {who}",
        "queue": f"… with a thread for the network, {who}",
    }
    for name, figure in names.items():
        ratio = median_of_ratios(found[f"{name} rate"], found["processes rate"])
        yield Figure(figure, how, ratio)


def side(server: Running, sessions: int, seconds: float) -> Callable[[], Mapping[str, float]]:
    return lambda: {"rate": load(server, LOCK_UNLOCK, seconds, sessions).rate}


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
