"""Record → where the thread time of one trial went. Pure.

The time of the *active* threads, those that do the operations, is divided into CPU time, the
run queue, and the rest, which is blocked; samples say on what (``docs/method/explain.md``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from concurve.definition.study import Extract, Study
from concurve.explain.stations import Serving, serving_of
from concurve.explain.threads import Dealer, active_threads, dealer_of, life_of, present
from concurve.readings.measures import MEASURE_PHASE, NO_CLIENTS, MissedExtractError, extracted
from concurve.wire import RoleRecord, ThreadRecord, TrialRecord, Usage, Waits

#: What a blocked thread may wait for, as the samples tell.
KINDS = ("futex", "disk", "network", "poll", "pipe", "sleep", "child", "other")

#: Threads whose lives are longer than the measured phase by more are counted inside it only.
PHASE_SLACK = 1.1
#: Fewer readings than this say little.
READINGS_MIN = 30
#: What a program may report of each of its workers: the seconds from when it began in a measured
#: phase to the end of its work.
WORKER_SECONDS = "worker_compute_seconds"

_CLIENTS = ("load", "client")


class Parts(NamedTuple):
    """Whose time is explained, and who else is in a trial: names of roles.

    ``subject``: the role whose threads do the operations. ``clients`` give it work; ``serving``:
    it ends when they have ended.
    """

    subject: str
    clients: tuple[str, ...]
    serving: bool
    extracts: tuple[Extract, ...] = ()


class Word(NamedTuple):
    """Futex words: readings of the words at which several threads waited, the greatest number of
    threads at one of them, and how many words there were in all."""

    readings: int = 0
    threads: int = 0
    words: int = 0


class Other(NamedTuple):
    """Another role of the trial: the CPUs that it used on the average, its busiest thread's share
    of one, and the share of its threads' readings in which they slept."""

    name: str
    cpus: float
    nice: int | None
    busiest: float
    asleep: float = 0.0


class Account(NamedTuple):
    """Where the thread time of a trial went.

    ``thread_ns`` is the time of the active threads: ``cpu_ns``, ``run_queue_ns`` (``None`` where
    it was not read; then ``blocked_ns`` holds it) and ``blocked_ns``. ``readings`` are those of
    the active threads by kind, ``running`` included; empty without samples. ``dealer`` is a thread
    that hands out work to them, if there seems to be one.
    """

    operations: float
    counted: bool
    wall_ns: float
    thread_ns: float
    cpu_ns: float
    run_queue_ns: float | None
    blocked_ns: float
    threads: int
    idle: int
    cpus: int | None
    switches: float
    readings: dict[str, int]
    word: Word
    dealer: Dealer | None
    others: tuple[Other, ...]
    steal_ns: float
    foreign_ns: float
    machine_ns: float
    machine_busy_ns: float
    nice: int | None
    missing: dict[str, str]
    serving: Serving | None = None


def parts_of(study: Study) -> Parts:
    """Which role is explained: the measured one, or the server that it loads (a study may measure
    its client, named ``load`` or ``client``)."""
    target = next(role for role in study.roles if role.name == study.target)
    if target.end == "serve":
        clients = tuple(
            role.name
            for role in study.roles
            if role.end == "exit" and not role.name.startswith(NO_CLIENTS)
        )
        return Parts(target.name, clients, True, study.extracts)
    servers = [
        role.name
        for role in study.roles
        if role.end == "serve" and not role.name.startswith(NO_CLIENTS)
    ]
    if servers and target.name.startswith(_CLIENTS):
        return Parts(servers[0], (target.name,), True, study.extracts)
    return Parts(target.name, (), False, study.extracts)


def is_role(name: str, role: str) -> bool:
    """Is it that role, or one of its copies?"""
    return name == role or bool(re.fullmatch(re.escape(role) + r"-\d+", name))


def account(record: TrialRecord, parts: Parts) -> Account | None:
    """Where the time went; ``None`` if the record has no such role, or it took no time."""
    role = record.role(parts.subject)
    if role is None:
        return None
    phases = [phase for phase in role.phases if phase.name == MEASURE_PHASE and not phase.open]
    wall = float(sum(phase.wall_ns for phase in phases)) if phases else float(role.wall_ns)
    if wall <= 0:
        return None
    listed, bystanders = present(role, [phase.usage for phase in phases], wall)
    active = active_threads(listed, wall)
    missing: dict[str, str] = {}
    usages = [phase.usage for phase in phases] or [role.usage]
    time = _workers_time(role, usages) if phases else None
    crew = active if time is None else listed  # those that wait for their turn all the time, too
    time = (
        time
        or _own_time(role, active, wall, bool(phases))
        or _tree_time(role, usages, len(active), wall)
    )
    if time.cpu_ns is None:
        missing["cpu"] = _reason(role.usage, "cpu_ns")
    if time.run_queue_ns is None:
        missing["run_queue"] = _reason(role.usage, "run_queue_ns")
    for name in ("steal_ns", "foreign_cpu_ns"):
        if getattr(record.machine, name) is None:
            missing[name.removesuffix("_ns")] = _reason(record.machine, name)
    waits = _waits(role, phases[0].waits if len(phases) == 1 else role.waits, crew, missing)
    readings = _readings(crew, waits)
    if time.run_queue_ns is None and sum(readings.values()) >= READINGS_MIN:
        missing["run_queue"] += "; it is estimated from samples"
        time = time._replace(run_queue_ns=_sampled_queue(time, readings))
    spent = (time.cpu_ns or 0.0) + (time.run_queue_ns or 0.0)
    operations, counted = _operations(record, parts)
    machine = record.machine
    return Account(
        operations=operations,
        counted=counted,
        wall_ns=wall,
        thread_ns=max(time.thread_ns, spent),
        cpu_ns=time.cpu_ns or 0.0,
        run_queue_ns=time.run_queue_ns,
        blocked_ns=max(0.0, time.thread_ns - spent),
        threads=time.threads,
        idle=len(role.threads.listed) - len(crew),
        cpus=len(role.controls.cpus) if role.controls.cpus else machine.cpus,
        switches=float(sum(thread.usage.voluntary_switches or 0 for thread in crew)),
        readings=readings,
        word=_word(waits),
        # Workers that say how long they had work wait for no dealer in that time.
        dealer=dealer_of(listed, bystanders, active, wall) if crew is active else None,
        others=tuple(_other(other) for other in record.roles if other.name != role.name),
        steal_ns=float(machine.steal_ns or 0),
        foreign_ns=float(machine.foreign_cpu_ns or 0),
        machine_ns=float(record.wall_ns * (machine.cpus or 1)),
        machine_busy_ns=float(machine.busy_ns or 0),
        nice=role.controls.nice,
        missing=missing,
        serving=serving_of(record, role.name, _clients(record, parts)) if parts.serving else None,
    )


# -- its time ---------------------------------------------------------------------------------


class _Time(NamedTuple):
    thread_ns: float
    cpu_ns: float | None
    run_queue_ns: float | None
    threads: int


def _workers_time(role: RoleRecord, usages: Sequence[Usage]) -> _Time | None:
    """From what each worker reports of its time, and the accounts of the whole tree: workers that
    wait at a gate, or for the end when they are done, have nothing to do. ``None`` where nothing is
    reported, or where workers are no kernel threads."""
    lines = [line for line in role.indicators if line.indicator == WORKER_SECONDS and line.worker]
    workers = len({line.worker for line in lines})
    if not lines or workers > (role.threads.peak or 0):
        return None
    cpu, queue = _summed(usages)
    return _Time(1e9 * sum(line.value for line in lines), cpu, queue, workers)


def _own_time(
    role: RoleRecord, active: Sequence[ThreadRecord], wall: float, phased: bool
) -> _Time | None:
    """From the threads' own accounts, which are exact; ``None`` where they are not complete, or
    where the threads live on beyond the measured phase."""
    if not active or any(t.usage.cpu_ns is None or t.source != "exit" for t in active):
        return None
    total = role.threads.total
    if total is not None and total > len(role.threads.listed) and len(active) == len(
        role.threads.listed
    ):  # fmt: skip
        return None  # some that are not listed are as active
    lived = [life_of(thread, wall) for thread in active]
    if phased and sum(lived) > PHASE_SLACK * wall * len(active):
        return None
    if not phased:
        lived = [min(life, wall) for life in lived]
    queued = [thread.usage.run_queue_ns for thread in active]
    return _Time(
        sum(lived),
        float(sum(thread.usage.cpu_ns or 0 for thread in active)),
        None if None in queued else float(sum(wait or 0 for wait in queued)),
        _at_once(len(active), role),
    )


def _tree_time(role: RoleRecord, usages: Sequence[Usage], active: int, wall: float) -> _Time:
    """From the accounts of the whole tree, over the measured phase or the whole life."""
    unlisted = (role.threads.total or 0) - len(role.threads.listed)
    many = active == len(role.threads.listed) and unlisted > 0
    count = _at_once(active + unlisted if many else active, role)
    return _Time(count * wall, *_summed(usages), count)


def _summed(usages: Sequence[Usage]) -> tuple[float | None, float | None]:
    """CPU time and run queue; ``None`` where one was not read."""
    cpu = [usage.cpu_ns for usage in usages]
    queue = [usage.run_queue_ns for usage in usages]
    return (
        None if None in cpu else float(sum(ns or 0 for ns in cpu)),
        None if None in queue else float(sum(ns or 0 for ns in queue)),
    )


def _sampled_queue(time: _Time, readings: dict[str, int]) -> float:
    """Samples see a thread running or runnable; what of that is no CPU time is the run queue."""
    share = readings["running"] / sum(readings.values())
    return max(0.0, share * time.thread_ns - (time.cpu_ns or 0.0))


def _at_once(active: int, role: RoleRecord) -> int:
    """No more of them at once than the role had threads at its peak."""
    return max(1, min(active, role.threads.peak or active))


# -- what it waited for -----------------------------------------------------------------------


def _waits(
    role: RoleRecord, waits: Waits | None, active: Sequence[ThreadRecord], missing: dict[str, str]
) -> Waits | None:
    if waits is None and not any(thread.waits for thread in active):
        missing["waits"] = role.absent.get(
            "waits", "the record is older than samples of what threads wait for"
        )
    return waits if waits is not None else role.waits


def _readings(active: Sequence[ThreadRecord], waits: Waits | None) -> dict[str, int]:
    """Readings of the active threads by kind; of the whole role where threads have none."""
    sources = [thread.waits for thread in active if thread.waits]
    if not sources and waits is not None:
        sources = [waits]
    found = dict.fromkeys(("running", *KINDS), 0)
    for source in sources:
        for kind in found:
            found[kind] += getattr(source, kind)
    return found if any(found.values()) else {}


def _word(waits: Waits | None) -> Word:
    if waits is None:
        return Word()
    shared = [word for word in waits.futexes if word.threads > 1]
    top = max(shared, key=lambda word: word.readings, default=None)
    return Word(top.readings if top else 0, top.threads if top else 0, waits.futex_words)


# -- the rest of the trial --------------------------------------------------------------------


def _other(role: RoleRecord) -> Other:
    wall = max(role.wall_ns, 1)
    busiest = max((thread.usage.cpu_ns or 0 for thread in role.threads.listed), default=0)
    asleep = role.waits.sleep / role.waits.readings if role.waits and role.waits.readings else 0.0
    cpus = (role.usage.cpu_ns or 0) / wall
    return Other(role.name, cpus, role.controls.nice, busiest / wall, asleep)


def _clients(record: TrialRecord, parts: Parts) -> list[str]:
    """The roles that load it, copies told apart."""
    names = (role.name for role in record.roles)
    return [name for name in names if any(is_role(name, client) for client in parts.clients)]


def _operations(record: TrialRecord, parts: Parts) -> tuple[float, bool]:
    """Operations that the subject reported, else its clients; else the run is one."""
    subject = [role for role in record.roles if role.name == parts.subject]
    loading = _clients(record, parts)
    clients = [role for role in record.roles if role.name in loading]
    for roles in (subject, clients):
        found = [done for role in roles for done in _reported(role, parts.extracts)]
        if found:
            return sum(found), True
    return 1.0, False


def _reported(role: RoleRecord, extracts: Sequence[Extract]) -> list[float]:
    lines = [
        line.value
        for line in role.indicators
        if line.indicator == "operations" and line.worker is None
    ]
    if lines:
        return lines[-1:]
    for extract in extracts:
        if extract.name == "operations":
            try:
                return [extracted(extract, role)]
            except MissedExtractError:
                continue
    return []


def _reason(usage: Usage | msgspec.Struct, name: str) -> str:
    absent: dict[str, str] = getattr(usage, "absent", {})
    return absent.get(name, "the runner gave no reason")
