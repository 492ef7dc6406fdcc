"""A server under load as stations: which of them is saturated. Pure.

If clients send the next request as soon as they are answered, one resource is always used up (the
CPUs, a thread through which every request passes, or the client), or all threads wait to be woken.
The thread time of an operation does not show it: threads that queue for a CPU cost no throughput
while another one runs in their place. The asymptotic bounds of queueing networks do (Denning and
Buzen 1978): throughput is bounded by the station that is busy all the time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from concurve.explain.impossible_waits import without_impossible_waits
from concurve.explain.threads import ACTIVE_SHARE, allowed_cpus, name_of_kind, waiting_threads
from concurve.findings.explanation import GOMAXPROCS, Cause
from concurve.readings.contamination import foreign_at_least_ns
from concurve.readings.measures import MEASURE_PHASE
from concurve.readings.under_load import under_load_ns
from concurve.stats.moments import mean
from concurve.wire.record import RoleRecord, ThreadRecord, TrialRecord
from concurve.wire.report_channel import ATTENDANT
from concurve.words import percent

#: A thread that runs this share of the time is used up; the time includes its start and end.
THREAD_USED_UP = 0.85
#: A thread that runs, or waits for a CPU, for this share of the time has no time left, if it runs
#: for the second share.
THREAD_READY = 0.93
THREAD_READY_RUNS = 0.5
#: The same for CPUs; the runner and the kernel use a little of their time.
CPUS_USED_UP = 0.9
#: Others that used less than this many CPUs fill nothing.
OTHERS_MIN = 0.1
#: Fewer samples of where a thread ran do not say that it spins.
SAMPLES_MIN = 10
#: Stations that used a smaller share of a CPU are not named.
NAMED_MIN = 0.02


class Station(NamedTuple):
    """Threads of a kind: the number of those that worked, the CPUs that they used together, and the
    share of the time that the least busy one ran: if that one is used up, all are. ``ready`` is
    that share with its waits for a CPU. Who spins in a loop that only waits has time left: that is
    in ``cpus`` alone. ``queued`` is how many of them waited for a CPU, on the average.
    ``are_processes``: each is of a process of its own."""

    name: str
    threads: int
    cpus: float
    least: float
    ready: float = 0.0
    queued: float = 0.0
    are_processes: bool = False


class Serving(NamedTuple):
    """A server and its clients in the measured phase, or in the whole run where nobody marks one:
    the CPUs that they used and were granted, and how many those are ``together``; ``loads`` are the
    threads of the clients that work. ``quota`` and ``client_quota`` are the CPUs' worth of time
    that control groups allow them, where these allow less. ``others`` are the CPUs that processes
    outside the trial used (not those of low priority) and the hypervisor took, where server and
    load have all CPUs of the machine; where they have some of them, what such processes surely used
    of these. ``at_once`` is the number of goroutines that may run at once
    in the process of a server in Go that works most, and ``in_go`` the CPUs that it used."""

    stations: tuple[Station, ...]
    server: float
    client: float
    granted: int
    client_granted: int
    together: int
    loads: tuple[Station, ...] = ()
    quota: float | None = None
    client_quota: float | None = None
    others: float = 0.0
    at_once: int | None = None
    in_go: float = 0.0


class Limit(NamedTuple):
    """The resource that is used up: what that is as a cause, its name (of a quota none), and its
    words in the sentence. Threads that have no time left wait for a share of the CPUs, ``waits``.
    ``is_thread``: it is a thread, or each one of a kind. ``remedy`` says what to do where it is the
    load, what more clients do where it shares the CPUs, and what more threads can gain there at
    most; else empty. ``own_first``: of CPUs that
    others had, the words that begin with the server, for where others turn out not to be the cause;
    else empty."""

    cause: Cause
    name: str
    words: str
    waits: float = 0.0
    is_thread: bool = False
    remedy: str = ""
    own_first: str = ""


def serving_of(record: TrialRecord, server: str, clients: Sequence[str]) -> Serving | None:
    """The CPU time of the stations in a trial; ``None`` if it was not read, or not all have a phase
    that some have marked."""
    role = record.role(server)
    sides = [side for name in clients if (side := record.role(name)) is not None]
    if role is None or not sides or record.machine.cpus is None:
        return None
    role, sides = without_impossible_waits(role), list(map(without_impossible_waits, sides))
    marked = any(
        _counts(phase.name, phase.open) for each in (role, *sides) for phase in each.phases
    )
    loaded = under_load_ns(record, role, clients)
    own, others = _time(role, marked, loaded), [_time(side, marked) for side in sides]
    if own is None or None in others or len(sides) < len(clients):
        return None
    loads = [time for time in others if time is not None]
    every = set(range(record.machine.cpus))
    granted = set(allowed_cpus(role) or every)
    client_granted = set().union(*(set(allowed_cpus(side) or every) for side in sides))
    return Serving(
        stations=_stations(role, own),
        server=own.used / own.wall,
        client=sum(time.used / time.wall for time in loads),
        granted=len(granted),
        client_granted=len(client_granted),
        together=len(granted | client_granted),
        loads=tuple(
            station
            for side, time in zip(sides, loads, strict=True)
            for station in _stations(side, time, working=True)
        ),
        quota=_quota([role], len(granted)),
        client_quota=_quota(sides, len(client_granted)),
        others=_taken_by_others(record, granted | client_granted, every),
        at_once=None if role.runtime is None else role.runtime.at_once,
        in_go=0.0 if role.runtime is None else _of_one_process(role) * own.used / own.wall,
    )


def _taken_by_others(record: TrialRecord, cpus: set[int], every: set[int]) -> float:
    """How many of these CPUs others had, on the average: work of low priority gives them back. Of
    some of the machine's CPUs, how many processes outside the trial surely had."""
    machine = record.machine
    taken = (machine.foreign_cpu_ns or 0) - (machine.foreign_low_priority_ns or 0)
    taken += machine.steal_ns or 0
    if cpus != every:
        taken = foreign_at_least_ns(record, cpus) or 0
    return taken / max(record.wall_ns, 1)


def _of_one_process(role: RoleRecord) -> float:
    """The share of the CPU time of a role that its process with most of it has."""
    used: Counter[int] = Counter()
    for thread in role.threads.listed:
        used[thread.pid] += thread.usage.cpu_ns or 0
    return max(used.values(), default=0) / max(used.total(), 1)


def limit_of(trials: Sequence[Serving]) -> Limit | None:
    """The resource that is used up in a cell, by the means over its trials; ``None`` if none is."""
    server, client = mean([t.server for t in trials]), mean([t.client for t in trials])
    # What they may use is that of all trials.
    used = trials[0]._replace(
        stations=tuple(_means([trial.stations for trial in trials])),
        loads=tuple(_means([trial.loads for trial in trials])),
        server=server,
        client=client,
        others=mean([trial.others for trial in trials]),
        at_once=max((trial.at_once for trial in trials if trial.at_once), default=None),
        in_go=mean([trial.in_go for trial in trials]),
    )
    return _of_server(used) or _of_load(used) or _without_time(used) or _beside_others(used)


def _of_server(used: Serving) -> Limit | None:
    """The CPUs, a thread, what Go's runtime allows, or the quota of the server itself."""
    server, who = used.server, _who(used.stations)
    if server >= CPUS_USED_UP * used.granted:
        return Limit("cpu", "CPUs", f"the server's {_cpus(used.granted)} used up ({who})")
    if used.at_once is not None and used.in_go >= CPUS_USED_UP * used.at_once:
        many = "1 goroutine" if used.at_once == 1 else f"{used.at_once} goroutines"
        said = f"GOMAXPROCS lets {many} run at a time, and {used.in_go:.2f} CPUs of that are used"
        said = f"{said} (CPUs used: {who}, load {used.client:.2f})"
        return Limit("cpu", GOMAXPROCS, said, is_thread=True, remedy=_gain_of_more(used))
    for station in used.stations:
        if station.least >= THREAD_USED_UP:
            said = f"{_busy(station)} (CPUs used: {who}, load {used.client:.2f})"
            more = _gain_of_more(used)
            return Limit("cpu", station.name, said, is_thread=True, remedy=more)
    if used.quota is not None and server >= CPUS_USED_UP * used.quota:
        said = f"the quota of the server's control group, {used.quota:.3g} CPU seconds a second"
        return Limit("quota", "", f"{said}, is used up ({who}, load {used.client:.2f})")
    return None


#: More threads that could gain more than this may gain what they like, before the CPUs keep them.
_GAIN_TOLD_MAX = 2.0


def most_gain(server: float, client: float, cpus: int) -> float:
    """By how much the rate can grow at most where a server and its load share ``cpus`` CPUs and
    nobody else has them: each request takes the CPU time of both, as much as now. ``server`` and
    ``client`` are the CPUs that they use; infinite where they use none."""
    used = server + client
    return max(1.0, cpus / used) if used > 0 else math.inf


def _gain_of_more(used: Serving) -> str:
    """What more threads of a server can gain at most that shares all its CPUs with its load; empty
    where they do not share them, where a quota is less, and where that is no bound to speak of."""
    are_shared = used.granted == used.client_granted == used.together
    gain = most_gain(used.server, used.client, used.together)
    if not are_shared or used.client < NAMED_MIN or gain >= _GAIN_TOLD_MAX:
        return ""
    if used.quota is not None or used.client_quota is not None:
        return ""
    return (
        f"at this CPU time per request more of them can gain {gain:.2f}× at most: the load takes "
        f"{percent(used.client / (used.server + used.client))} of it"
    )


def _of_load(used: Serving) -> Limit | None:
    """The CPUs that server and load share, what the load has for itself, or a thread of it."""
    server, client, who = used.server, used.client, _who(used.stations)
    apart = used.together == used.granted + used.client_granted
    if not apart and server + client >= CPUS_USED_UP * used.together:
        # A thread of that name is not told after "the server" again.
        who = who.removeprefix("server ")
        load = _program_of(used.loads)
        said = f"server and {load or 'load'} together use {_all_cpus(used.together)} ({who}, "
        said = f"{said}{load or 'load'} {client:.2f})"
        return Limit("cpu", "CPUs", said, remedy=_QUEUE)
    meanwhile = f"used up, while the server used {server:.2f} CPUs ({who})"
    if used.client_quota is not None and client >= CPUS_USED_UP * used.client_quota:
        said = f"the {used.client_quota:.3g} CPU seconds a second that a quota allows the load"
        return Limit("client", "load", f"{said} are {meanwhile}", remedy=f"{_MORE} a greater quota")
    if client >= CPUS_USED_UP * used.client_granted:
        return Limit(
            "client",
            "load",
            f"the load's {_cpus(used.client_granted)} {meanwhile}",
            remedy=_MORE_CPUS,
        )
    for station in used.loads:
        if station.least >= THREAD_USED_UP:
            busy = _busy(station, "the load's")
            words = f"{busy}, while the server used {server:.2f} CPUs ({who})"
            return Limit("client", "load", words, remedy=more_of_it(station))
    return None


#: The option for the threads of loads that have one, by the names of these threads.
_THREADS = {
    "redis-benchmark": "redis-benchmark --threads {}, with -n for 5 s or more",
    "valkey-benchmar": "valkey-benchmark --threads {}",
    "memtier_benchma": "memtier_benchmark --threads={}",
    "wrk": "wrk -t{}",
    "pgbench": "pgbench -j {}",
    "h2load": "h2load -t{}",
}
_QUEUE = "more clients only queue"
_MORE = "the load cannot ask for more: give it"
_MORE_CPUS = f"{_MORE} more CPUs, or a machine of its own"


def more_of_it(load: Station) -> str:
    """What to do where the threads of a load are used up: twice as many, where their program has an
    option for it."""
    options = {name_of_kind(name): option for name, option in _THREADS.items()}
    option = options.get(name_of_kind(load.name), "").format(2 * load.threads)
    how = f" ({option})" if option else ", or run several loads"
    return f"{_MORE} more threads{how}"


def _program_of(loads: Sequence[Station]) -> str:
    """The program of a load whose threads are all named after it, as those of ``pgbench`` are;
    empty where it is not known."""
    names = {name_of_kind(name): option.split()[0] for name, option in _THREADS.items()}
    kinds = {names.get(name_of_kind(load.name), "") for load in loads}
    return kinds.pop() if len(kinds) == 1 else ""


#: Threads that wait for a CPU for a smaller share of the time would do little more with more CPUs.
_QUEUED_MIN = 0.1


def _without_time(used: Serving) -> Limit | None:
    """Threads that have no time left, since they wait for one of the CPUs when they do not run.
    Where they wait for more of the CPUs than was idle, these are what limits."""
    for station in used.stations:
        if station.ready >= THREAD_READY and station.least >= THREAD_READY_RUNS:
            waits = station.ready - station.least
            said = f"{_busy(station)} and waits for a CPU {100 * waits:.0f} % of it"
            said = f"{said} (CPUs used: {_who(used.stations)}, load {used.client:.2f})"
            part = station.threads * waits / used.together
            if waits >= _QUEUED_MIN and station.threads * waits > _idle(used):
                return Limit("cpu", "CPUs", said, part, remedy=_QUEUE)
            more = _gain_of_more(used)
            return Limit("cpu", station.name, said, part, is_thread=True, remedy=more)
    return None


def _idle(used: Serving) -> float:
    """How many of the CPUs that a server may use nobody used, on the average."""
    are_apart = used.together == used.granted + used.client_granted
    theirs = used.server if are_apart else used.server + used.client
    return max(0.0, (used.granted if are_apart else used.together) - theirs - used.others)


#: Others that have a smaller share of the CPUs do not limit who uses up the rest.
_OTHERS_LIMIT_MIN = 0.15


def _beside_others(used: Serving) -> Limit | None:
    """The CPUs, where server, load and others use them up together. What others use does not
    matter where server and load do so by themselves. Where others had enough of the CPUs, they are
    the cause, and go first."""
    server, client, others = used.server, used.client, used.others
    # Theirs is counted over the whole trial, and may be more than server and load left them.
    others = min(others, max(0.0, used.together - server - client))
    if others < OTHERS_MIN or server + client + others < CPUS_USED_UP * used.together:
        return None
    mine = f"{server:.2f} by the server ({_who(used.stations)})"
    load = _program_of(used.loads)
    its = f"{client:.2f} by its load{f' ({load})' if load else ''}"
    theirs = f"{others:.2f} by others"
    are = f"the {_cpus(used.together)} used up"
    by_cpus = Limit("cpu", "CPUs", f"{are}: {mine}, {its} and {theirs}")
    # With what fewer others had, server and load would do little more.
    if others < _OTHERS_LIMIT_MIN * used.together:
        return by_cpus
    own_first, words = by_cpus.words, f"{are}: {theirs}, {mine} and {its}"
    return Limit("contamination", "", words, own_first=own_first)


def used_words(trials: Sequence[Serving]) -> str:
    """How much CPU time the server and its load used, if no resource is used up."""
    first = trials[0]
    server, client = mean([t.server for t in trials]), mean([t.client for t in trials])
    others = mean([t.others for t in trials])
    who = _who(_means([trial.stations for trial in trials]))
    beside = f", and others {others:.2f}" if others >= _OTHERS_TOLD_MIN * first.together else ""
    return (
        f"no resource is used up: the server used {server:.2f} CPUs ({who}) and its load "
        f"{client:.2f}{beside}, of {first.together}"
    )


#: Others, or the hypervisor, that had this share of the CPUs are told beside server and load.
_OTHERS_TOLD_MIN = 0.05


class _Time(NamedTuple):
    """CPU time of a role, its waits for CPUs without those for a quota (0 where they were not
    read), and its wall time, in ns."""

    used: float
    queued: float
    wall: float


def _time(role: RoleRecord, marked: bool, loaded: int | None = None) -> _Time | None:
    """Those of its measured phases; where nobody has ``marked`` any those of its whole life, which
    were used while it was ``loaded`` if that time is known. ``None`` where they were not read."""
    phases = [phase for phase in role.phases if _counts(phase.name, phase.open)]
    usages = [phase.usage for phase in phases] if marked else [role.usage]
    whole = role.wall_ns if loaded is None else loaded
    wall = sum(phase.wall_ns for phase in phases) if marked else whole
    used = [usage.cpu_ns for usage in usages]
    if not used or None in used or wall <= 0:
        return None
    queued = sum(usage.run_queue_ns or 0 for usage in usages) - throttled_ns(role, wall)
    return _Time(float(sum(ns or 0 for ns in used)), max(0.0, queued), float(wall))


def _busy(station: Station, of: str = "the") -> str:
    """That its threads run nearly all the time, in words; ``of`` says whose they are."""
    which = f"each of {of} {station.threads} threads" if station.threads > 1 else f"{of} thread"
    return f"{which} {station.name} runs {100 * station.least:.0f} % of the time"


def _counts(name: str, is_open: bool) -> bool:
    return name == MEASURE_PHASE and not is_open


def _stations(role: RoleRecord, time: _Time, working: bool = False) -> tuple[Station, ...]:
    """The CPU time of a role in the phase, divided in proportion to that of its threads over their
    lives: outside the phase they do the same work, or none. So is the wait for CPUs. Without
    the attendant, whose CPU time is mostly that of its own start; and only of those ``working``, if
    asked for: a load may have a thread that waits for the others. Threads that hardly ran, and were
    hardly ever woken, as those that only start others, are none of their kind: they take nothing
    off it."""
    kinds: dict[str, list[ThreadRecord]] = {}
    busiest = max((thread.usage.cpu_ns or 0 for thread in role.threads.listed), default=0)
    least = ACTIVE_SHARE * busiest if working else 0
    resting = {(it.pid, it.tid) for it in waiting_threads(role.threads.listed, role.wall_ns)}
    for thread in role.threads.listed:
        is_station = thread.name != ATTENDANT and (thread.pid, thread.tid) not in resting
        if is_station and (thread.usage.cpu_ns or 0) >= least:
            kinds.setdefault(name_of_kind(thread.name), []).append(thread)
    threads = [thread for each in kinds.values() for thread in each]
    whole = sum(thread.usage.cpu_ns or 0 for thread in threads)
    if whole <= 0:
        return ()
    scale = time.used / whole / time.wall
    lives = sum(thread.usage.run_queue_ns or 0 for thread in threads)
    waited = time.queued / max(1, lives) / time.wall
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
        queued = waited * sum(thread.usage.run_queue_ns or 0 for thread in each)
        counted = _counted(each)
        apart = len({thread.pid for thread in counted}) == len(counted) > 1
        found.append(Station(name, len(counted), cpus, min(ran), min(ready), queued, apart))
    return tuple(sorted(found, key=lambda station: -station.cpus))


def _counted(threads: Sequence[ThreadRecord]) -> list[ThreadRecord]:
    """The threads of a kind that count as so many: each used a tenth of an equal share of their CPU
    time. The process that started the workers used less, however it was woken."""
    least = ACTIVE_SHARE * sum(thread.usage.cpu_ns or 0 for thread in threads) / len(threads)
    return [thread for thread in threads if (thread.usage.cpu_ns or 0) >= least]


def _worked(thread: ThreadRecord, spins: float) -> float:
    """The CPU time of a thread without that for which it spun: this part of that in user mode."""
    used = thread.usage.cpu_ns or 0
    user = used if thread.usage.user_ns is None else min(used, thread.usage.user_ns)
    return used - spins * user


def throttled_ns(role: RoleRecord, wall: float) -> float:
    """For how long the quota of a control group held a role back in so much of its time, summed
    over CPUs."""
    if role.quota is None:
        return 0.0
    return role.quota.throttled_ns * min(1.0, wall / max(role.wall_ns, 1))


def _quota(roles: Sequence[RoleRecord], cpus: int) -> float | None:
    """The CPUs' worth of time that quotas allow the roles together; ``None`` where they allow no
    less than the CPUs. Equal ones are taken for one that the roles share: a record does not name
    their control groups."""
    quotas = [role.quota.cpus if role.quota is not None else float(cpus) for role in roles]
    allowed = quotas[0] if len(set(quotas)) == 1 else sum(quotas)
    return allowed if allowed < cpus else None


def _means(trials: Sequence[Sequence[Station]]) -> list[Station]:
    names = dict.fromkeys(station.name for trial in trials for station in trial)
    found = []
    for name in names:
        each = [s for trial in trials for s in trial if s.name == name]
        cpus = sum(station.cpus for station in each) / len(trials)
        least, ready = mean([s.least for s in each]), mean([s.ready for s in each])
        queued = sum(station.queued for station in each) / len(trials)
        threads = _usual([station.threads for station in each])
        apart = all(it.are_processes for it in each if it.threads == threads)
        found.append(Station(name, threads, cpus, least, ready, queued, apart))
    return sorted(found, key=lambda station: -station.cpus)


def _usual(counts: Sequence[int]) -> int:
    """The count of most trials; of two that are as frequent, the greater one."""
    return max(counts, key=lambda count: (counts.count(count), count))


def _who(stations: Sequence[Station]) -> str:
    named = [station for station in stations if station.cpus >= NAMED_MIN]
    return ", ".join(map(_used, named))


def _used(station: Station) -> str:
    used = f"{station.name} {station.cpus:.2f}"
    what = "processes" if station.are_processes else "threads"
    return f"{used} in {station.threads} {what}" if station.threads > 1 else used


def _all_cpus(count: int) -> str:
    return "the only CPU" if count == 1 else f"all {count} CPUs"


def _cpus(count: int) -> str:
    return "CPU is" if count == 1 else f"{count} CPUs are"
