"""A server under load as stations: which of them is saturated. Pure.

If clients send the next request as soon as they are answered, one resource is always used up (the
CPUs, a thread through which every request passes, or the client), or all threads wait to be woken.
The thread time of an operation does not show it: threads that queue for a CPU cost no throughput
while another one runs in their place. The asymptotic bounds of queueing networks do (Denning and
Buzen 1978): throughput is bounded by the station that is busy all the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from concurve.readings.measures import MEASURE_PHASE
from concurve.stats.moments import mean
from concurve.wire.record import RoleRecord, ThreadRecord, TrialRecord
from concurve.wire.report_channel import ATTENDANT

#: A thread that runs this share of the time is used up; the time includes its start and end.
THREAD_USED_UP = 0.85
#: A thread that runs, or waits for a CPU, for this share of the time has no time left, if it runs
#: for the second share.
THREAD_READY = 0.93
THREAD_READY_RUNS = 0.5
#: The same for CPUs; the runner and the kernel use a little of their time.
CPUS_USED_UP = 0.9
#: Fewer samples of where a thread ran do not say that it spins.
SAMPLES_MIN = 10
#: Stations that used a smaller share of a CPU are not named.
NAMED_MIN = 0.02


class Station(NamedTuple):
    """Threads of a kind: their number, the CPUs that they used together, and the share of the time
    that the least busy one ran: if that one is used up, all are. ``ready`` is that share with its
    waits for a CPU. Who spins in a loop that only waits has time left: that is in
    ``cpus`` alone."""

    name: str
    threads: int
    cpus: float
    least: float
    ready: float = 0.0


class Serving(NamedTuple):
    """A server and its clients in the measured phase: the CPUs that they used and were granted, and
    how many those are ``together``."""

    stations: tuple[Station, ...]
    server: float
    client: float
    granted: int
    client_granted: int
    together: int


class Limit(NamedTuple):
    """The resource that is used up: ``is_client``, its name, and its words in the sentence. Threads
    that have no time left wait for a share of the CPUs, ``waits``."""

    is_client: bool
    name: str
    words: str
    waits: float = 0.0


def serving_of(record: TrialRecord, server: str, clients: Sequence[str]) -> Serving | None:
    """The CPU time of the stations in a trial; ``None`` if it was not read or no phase was
    marked."""
    role = record.role(server)
    sides = [record.role(name) for name in clients]
    if role is None or not sides or record.machine.cpus is None:
        return None
    own, others = _used(role), [_used(side) if side else None for side in sides]
    wall = _wall(role)
    if own is None or wall <= 0 or None in others:
        return None
    every = set(range(record.machine.cpus))
    granted = set(role.controls.cpus or every)
    client_granted = set().union(*(set(side.controls.cpus or every) for side in sides if side))
    return Serving(
        stations=_stations(role, own, wall),
        server=own / wall,
        client=sum(used or 0.0 for used in others) / wall,
        granted=len(granted),
        client_granted=len(client_granted),
        together=len(granted | client_granted),
    )


def limit_of(trials: Sequence[Serving]) -> Limit | None:
    """The resource that is used up in a cell, by the means over its trials; ``None`` if none is."""
    stations = _means(trials)
    first = trials[0]
    server, client = mean([t.server for t in trials]), mean([t.client for t in trials])
    who = _who(stations)
    if server >= CPUS_USED_UP * first.granted:
        return Limit(False, "CPUs", f"the server's {_cpus(first.granted)} used up ({who})")
    for station in stations:
        if station.least >= THREAD_USED_UP:
            more = f"each of the {station.threads} threads" if station.threads > 1 else "the thread"
            words = f"{more} {station.name} runs {100 * station.least:.0f} % of the time"
            return Limit(False, station.name, f"{words} (CPUs used: {who}, load {client:.2f})")
    apart = first.together == first.granted + first.client_granted
    if not apart and server + client >= CPUS_USED_UP * first.together:
        said = f"the {_cpus(first.together)} used up, by the server ({who}) and its load"
        return Limit(False, "CPUs", f"{said} ({client:.2f})")
    if client >= CPUS_USED_UP * first.client_granted:
        said = f"the load's {_cpus(first.client_granted)} used up"
        return Limit(True, "load", f"{said}, while the server used {server:.2f} ({who})")
    return _without_time(stations, who, client, first.together)


def _without_time(stations: Sequence[Station], who: str, client: float, cpus: int) -> Limit | None:
    """Threads that have no time left, since they wait for one of the CPUs when they do not run."""
    for station in stations:
        if station.ready >= THREAD_READY and station.least >= THREAD_READY_RUNS:
            waits = 100 * (station.ready - station.least)
            many = station.threads > 1
            each = f"each of the {station.threads} threads" if many else "the thread"
            ran = f"{each} {station.name} runs {100 * station.least:.0f} % of the time"
            said = f"{ran} and waits for a CPU {waits:.0f} % of it"
            said = f"{said} (CPUs used: {who}, load {client:.2f})"
            return Limit(False, station.name, said, station.threads * waits / 100 / cpus)
    return None


def used_words(trials: Sequence[Serving]) -> str:
    """How much CPU time the server and its load used, if no resource is used up."""
    first = trials[0]
    server, client = mean([t.server for t in trials]), mean([t.client for t in trials])
    who = _who(_means(trials))
    return (
        f"no resource is used up: the server used {server:.2f} CPUs ({who}) and its load "
        f"{client:.2f}, of {first.together}"
    )


def _used(role: RoleRecord) -> float | None:
    used = [phase.usage.cpu_ns for phase in role.phases if _counts(phase.name, phase.open)]
    return None if None in used or not used else float(sum(ns or 0 for ns in used))


def _wall(role: RoleRecord) -> float:
    phases = role.phases
    return float(sum(phase.wall_ns for phase in phases if _counts(phase.name, phase.open)))


def _counts(name: str, is_open: bool) -> bool:
    return name == MEASURE_PHASE and not is_open


def _stations(role: RoleRecord, used: float, wall: float) -> tuple[Station, ...]:
    """The server's CPU time in the phase, divided in proportion to the CPU time of its threads over
    their lives: outside the phase they do the same work, or none. So is the wait for CPUs. Without
    the attendant, whose CPU time is mostly that of its own start."""
    kinds: dict[str, list[ThreadRecord]] = {}
    for thread in role.threads.listed:
        if thread.name != ATTENDANT:
            kinds.setdefault(_kind(thread), []).append(thread)
    threads = [thread for each in kinds.values() for thread in each]
    whole = sum(thread.usage.cpu_ns or 0 for thread in threads)
    if whole <= 0:
        return ()
    scale = used / whole / wall
    lives = sum(thread.usage.run_queue_ns or 0 for thread in threads)
    waited = _queued(role) / max(1, lives) / wall
    sampled = () if role.hot is None else role.hot.threads
    spins = {it.tid: it.waiting / it.samples for it in sampled if it.samples >= SAMPLES_MIN}
    found = []
    for name, each in kinds.items():
        cpus = sum(scale * (thread.usage.cpu_ns or 0) for thread in each)
        ran = [scale * _worked(thread, spins.get(thread.tid, 0.0)) for thread in each]
        ready = [
            share + waited * (thread.usage.run_queue_ns or 0)
            for share, thread in zip(ran, each, strict=True)
        ]
        found.append(Station(name, len(each), cpus, min(ran), min(ready)))
    return tuple(sorted(found, key=lambda station: -station.cpus))


def _worked(thread: ThreadRecord, spins: float) -> float:
    """The CPU time of a thread without that for which it spun: this part of that in user mode."""
    used = thread.usage.cpu_ns or 0
    user = used if thread.usage.user_ns is None else min(used, thread.usage.user_ns)
    return used - spins * user


def _queued(role: RoleRecord) -> float:
    """The waits for CPUs in the phase; 0 where they were not read."""
    phases = [phase for phase in role.phases if _counts(phase.name, phase.open)]
    return float(sum(phase.usage.run_queue_ns or 0 for phase in phases))


def _kind(thread: ThreadRecord) -> str:
    """``io-3`` and ``io_thd_3`` are of the kinds ``io`` and ``io_thd``."""
    return re.sub(r"[-_ ]?\d+", "", thread.name) or thread.name


def _means(trials: Sequence[Serving]) -> list[Station]:
    names = dict.fromkeys(station.name for trial in trials for station in trial.stations)
    found = []
    for name in names:
        each = [s for trial in trials for s in trial.stations if s.name == name]
        cpus = sum(station.cpus for station in each) / len(trials)
        least, ready = mean([s.least for s in each]), mean([s.ready for s in each])
        found.append(Station(name, each[0].threads, cpus, least, ready))
    return sorted(found, key=lambda station: -station.cpus)


def _who(stations: Sequence[Station]) -> str:
    named = [station for station in stations if station.cpus >= NAMED_MIN]
    return ", ".join(f"{_name(station)} {station.cpus:.2f}" for station in named)


def _name(station: Station) -> str:
    return f"{station.threads} × {station.name}" if station.threads > 1 else station.name


def _cpus(count: int) -> str:
    return "CPU is" if count == 1 else f"{count} CPUs are"
