"""What a server did between two readings. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from concurve.errors import ConcurveError
from concurve.monitor.reading import STATES, LatchCounts, Reading, Times


class RestartedError(ConcurveError):
    """The counters of two readings are not those of one server."""


class EngineShares(msgspec.Struct, frozen=True, kw_only=True):
    """How one engine or I/O thread divided its time: ``own`` by its own clock, for each state, and
    ``cpu`` by the kernel's account, as shares of the interval; ``cpu`` may exceed 1 where an
    engine is a process of several threads. ``died``: it has ended, or another one has
    replaced it. Then its times are not known: ``own`` is empty, and ``cpu`` is ``None``."""

    name: str
    own: Mapping[str, float]
    cpu: float | None
    died: bool


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A count of operations, per second and per second of the whole server's CPU time; the latter
    is ``None`` if the server used no CPU time, or its CPU time is not known."""

    name: str
    count: int
    per_second: float
    per_cpu_second: float | None


class Latch(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the latches of a class; ``contention`` is the share of acquisitions that had
    to wait, ``spins_per_wait`` the mean number of polls of one that waited."""

    name: str
    acquisitions: int
    contention: float
    spins_per_wait: float | None
    sleeps: int


class Utilisation(msgspec.Struct, frozen=True, kw_only=True):
    """What is in use of a cache or of the lock table at the end of an interval, in pages or locks;
    ``share`` of its size, ``None`` if it has none."""

    name: str
    used: int
    size: int
    share: float | None


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A server over an interval. ``cpus`` is its CPU time over the interval's length; ``None`` if
    an engine process died, because its CPU time is lost.
    ``found_share``: share of lookups in the statement cache that found their text; ``None``
    without any. Latches are ordered by how often they were waited for. ``utilisation`` is no
    difference: it is as of the end."""

    server: Mapping[str, str]
    seconds: float
    cpus: float | None
    engines: tuple[EngineShares, ...]
    work: tuple[Work, ...]
    statements: tuple[Work, ...]
    found_share: float | None
    latches: tuple[Latch, ...]
    utilisation: tuple[Utilisation, ...]


def between(before: Reading, after: Reading, place: str) -> Interval:
    """The differences of two readings of the server at ``place``.

    Raises:
        RestartedError: a counter went back.
    """
    if after.at_us <= before.at_us or _goes_back(before, after):
        raise RestartedError(
            f"{place}: the server was restarted between two readings, and its counters began at 0",
            "another interval; its log says why it ended",
        )
    seconds = (after.at_us - before.at_us) / 1e6
    engines = tuple(
        _shares(name, before.engines.get(name), times) for name, times in after.engines.items()
    )
    known = not any(engine.died for engine in engines)
    cpu_seconds = max(after.cpu_us - before.cpu_us, 0) / 1e6 if known else None
    statements = _work(before.statements, after.statements, seconds, cpu_seconds)
    return Interval(
        server=after.facts,
        seconds=seconds,
        cpus=None if cpu_seconds is None else cpu_seconds / seconds,
        engines=engines,
        work=_work(before.work, after.work, seconds, cpu_seconds),
        statements=statements,
        found_share=_found_share({item.name: item.count for item in statements}),
        latches=_latches(before.latches, after.latches),
        utilisation=tuple(
            Utilisation(
                name=name,
                used=use.used,
                size=use.size,
                share=use.used / use.size if use.size else None,
            )
            for name, use in after.uses.items()
        ),
    )


def _goes_back(before: Reading, after: Reading) -> bool:
    pairs = ((before.work, after.work), (before.statements, after.statements))
    return any(new.get(name, 0) < count for old, new in pairs for name, count in old.items())


def _shares(name: str, before: Times | None, after: Times) -> EngineShares:
    """Of the time between the engine's own two readings, which are taken one after the other."""
    if before is None or before.clock == 0:
        # An engine that had not started at the first reading had used no time then.
        before = Times(spent_us=dict.fromkeys(STATES, 0), cpu_us=0, clock=after.clock)
    if after.clock == 0:
        return EngineShares(name=name, own=dict.fromkeys(STATES, 0.0), cpu=0.0, died=False)
    if before.clock != after.clock or before.cpu_us is None or after.cpu_us is None:
        return EngineShares(name=name, own={}, cpu=None, died=True)
    # A single state may go back: an engine preempted at a change of state was read in the old one.
    spent = {state: max(after.spent_us[state] - before.spent_us[state], 0) for state in STATES}
    whole = sum(spent.values()) or 1
    own = {state: us / whole for state, us in spent.items()}
    cpu = (after.cpu_us - before.cpu_us) / whole
    return EngineShares(name=name, own=own, cpu=cpu, died=False)


def _work(before: Mapping[str, int], after: Mapping[str, int], seconds: float,
          cpu_seconds: float | None) -> tuple[Work, ...]:  # fmt: skip
    counts = {name: count - before.get(name, 0) for name, count in after.items()}
    return tuple(
        Work(
            name=name,
            count=count,
            per_second=count / seconds,
            per_cpu_second=count / cpu_seconds if cpu_seconds else None,
        )
        for name, count in counts.items()
    )


def _found_share(statements: Mapping[str, int]) -> float | None:
    found, compiled = statements.get("found", 0), statements.get("compiled", 0)
    return found / (found + compiled) if found + compiled else None


def _latches(
    before: Mapping[str, LatchCounts], after: Mapping[str, LatchCounts]
) -> tuple[Latch, ...]:
    found = []
    for name, now in after.items():
        then = before.get(name, LatchCounts(0, 0, 0, 0))
        acquisitions, waits = now.acquisitions - then.acquisitions, now.waits - then.waits
        if acquisitions <= 0:
            continue
        latch = Latch(
            name=name,
            acquisitions=acquisitions,
            contention=waits / acquisitions,
            spins_per_wait=(now.spins - then.spins) / waits if waits else None,
            sleeps=now.sleeps - then.sleeps,
        )
        found.append((-waits, -acquisitions, name, latch))
    return tuple(latch for *_, latch in sorted(found, key=lambda item: item[:3]))
