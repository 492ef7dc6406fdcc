"""Engines that are threads beside engines that are processes, in the lock service."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping

from measuring import Bound, Figure, alone, interleaved, ratio_of_medians
from server import LOCK_UNLOCK, Running, load, serving

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
    """With one client and with many, in interleaved rounds."""
    rounds, seconds = (2, 0.2) if quick else (21, 1.0)
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(serving(*ours(name))) for name in DIALS}
        for sessions in (1, MANY_SESSIONS):
            yield from beside(servers, sessions, rounds, seconds)


def ours(name: str) -> tuple[str, ...]:
    return (str(native.binary("concurve-server")), *DIALS[name])


def beside(
    servers: Mapping[str, Running], sessions: int, rounds: int, seconds: float
) -> Iterator[Figure]:
    """Throughput of the others as a multiple of that of the engine that is a process."""
    who = "one client" if sessions == 1 else f"{sessions} clients"
    how = f"lock+unlock, one engine, {rounds} interleaved rounds of {seconds} s"
    sides = {name: side(server, sessions, seconds) for name, server in servers.items()}
    found = interleaved(rounds, sides)
    bound = Bound(low=1 - MODES_DIFFER_AT_MOST, high=1 + MODES_DIFFER_AT_MOST)
    yield Figure(
        f"engine, thread / process, {who}",
        how,
        ratio_of_medians(found["threads rate"], found["processes rate"]),
        bound if sessions == 1 else None,
    )
    yield Figure(
        f"… with a thread for the network, {who}",
        how,
        ratio_of_medians(found["queue rate"], found["processes rate"]),
    )


def side(server: Running, sessions: int, seconds: float) -> Callable[[], Mapping[str, float]]:
    return lambda: {"rate": load(server, LOCK_UNLOCK, seconds, sessions).rate}


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
