"""The threads of a role that do its operations, and their time.

Threads that set things up, wait for the end, serve a JVM, or have no work are not active.
Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from concurve.wire.record import RoleRecord, ThreadRecord, Usage, Waits

#: A thread is active if its activity is at least this share of the busiest thread's.
ACTIVE_SHARE = 0.1
#: One of the same kind is also active if it waits for a CPU for at least this share of its life.
STARVING_SHARE = 0.5
#: A thread has nothing to do that has less than this share of the CPU time of the busiest one, and
#: of the switches of the one that is switched most.
IDLE_SHARE = 0.02
#: A thread that rests, and waits so long for the disk each time, waits for requests to it.
DISK_WAIT_NS_MAX = 25_000_000.0
#: A first thread with a smaller share of the CPU time of the busiest of the others, and fewer
#: switches beyond one for each of them, only started the others and waits in a join.
JOINING_SHARE = 0.5
JOINING_SWITCHES_MAX = 10
#: The same of one that uses so many times as much: it did something else before, such as loading a
#: program whose threads hardly run.
JOINING_TIMES = 2.0
#: The same where so many of the sampled stacks are in joins.
JOINING_STACKS = 0.9
#: The same of one that uses less of its life than this.
JOINING_CPU = 0.02
#: A thread that lives no longer than this many phases does its work in the phase.
INSIDE_SLACK = 1.5
#: All other threads are bystanders if the peers leave less than this share of one peer's CPU time
#: in the phase unexplained.
BYSTANDER_SHARE = 0.25
#: A thread that is no peer of the active ones hands out their work if it has at least this number
#: of switches and this share of theirs, or if it is at least this busy.
DISPATCHER_SWITCHES_MIN = 50
DISPATCHER_SHARE = 0.25
DISPATCHER_BUSY = 0.5
#: One that runs this share of the time is what the others wait for.
DISPATCHER_USED_UP = 0.85
#: A thread may wake the active ones if it is switched so often, and this share of how often they
#: are: who waits for a task with a timeout is switched more often than it gets one.
FEEDER_SWITCHES_MIN = 30
FEEDER_SHARE = 0.02
#: The thread in which a JVM runs ``main`` waits so often before the program begins.
JVM_START_SWITCHES = 50

_JVM_MARK = "VM Thread"
_JVM_NAME = "java"
_JVM_SERVICE = re.compile(
    r"VM Thread|VM Periodic|GC Thread|G1 |C[12] Compiler|Signal Dispatch|Finalizer|Reference Handl"
    r"|Common-Cleaner|Service Thread|Monitor Deflat|Notification T|Sweeper thread|Attach Listener"
    r"|ZDirector|ZDriver|ZStat|ZWorker|ZUncommitter|XDirector|XDriver|XWorker|DestroyJavaVM"
    r"|GC task|Shenandoah"
)
_JVM_COMPILER = re.compile(r"C[12] Compiler|JVMCI")


#: A thread that hardly ever gets a lock lives for this share of the time, waits at futexes for this
#: share of its life, and is woken so often.
OUTRUN_SHARE = 0.5
OUTRUN_SWITCHES_MIN = 10


#: A thread waits throughout if so much of its samples is at futexes, in no more than so many waits,
#: or than this share of those of the one that waits most often.
THROUGHOUT_SHARE = 0.95
THROUGHOUT_SWITCHES_MAX = 5
THROUGHOUT_SWITCHES = 0.25


class Dispatcher(NamedTuple):
    """A thread that hands out work to the active ones: the share of the time that it ran, and
    whether it mostly waits for them to take it (at a futex: their queue is full). ``used_up``: it
    may be what they wait for, as it runs nearly always, and seldom waits for a CPU meanwhile. One
    of several of its kind that work is a worker itself."""

    name: str
    ran: float
    waits_for_workers: bool
    used_up: bool = False


def allowed_cpus(role: RoleRecord) -> tuple[int, ...] | None:
    """The CPUs on which the threads of a role that work may run: those that the kernel granted it,
    or fewer, where it bound itself to some (``taskset`` in its command, an affinity of its own);
    ``None`` where that was not read."""
    busiest = max((thread.usage.cpu_ns or 0 for thread in role.threads.listed), default=0)
    working = [
        thread.cpus
        for thread in role.threads.listed
        if (thread.usage.cpu_ns or 0) >= max(1.0, ACTIVE_SHARE * busiest)
    ]
    if not working or None in working:
        return role.controls.cpus
    return tuple(sorted({cpu for cpus in working if cpus is not None for cpu in cpus}))


def present(
    role: RoleRecord, phases: Sequence[Usage], wall: float
) -> tuple[list[ThreadRecord], list[ThreadRecord]]:
    """Threads that may do the work, and bystanders, whose CPU time came before or after it.

    Where the threads of the busiest kind explain the CPU time of the measured phase, the others
    have set things up and wait for the end. Of threads that outlive it, a part of their CPU time
    counts. A JVM's own threads are neither.
    """
    listed = role.threads.listed
    serving = service_threads(listed)
    working = [thread for thread in listed if thread not in serving]
    kinds: dict[tuple[str, bool], int] = {}
    for thread in working:
        if thread.tid != thread.pid:
            kinds[kind_of(thread)] = kinds.get(kind_of(thread), 0) + (thread.usage.cpu_ns or 0)
    known = [usage.cpu_ns for usage in phases if usage.cpu_ns is not None]
    if not kinds or not known:
        return working, []
    busiest = max(kinds, key=lambda kind: kinds[kind])
    peers = [thread for thread in working if kind_of(thread) == busiest]
    shares = [_within(thread, wall) for thread in peers]
    unexplained = sum(known) - sum(shares) - sum(_within(thread, wall) for thread in serving)
    if unexplained > BYSTANDER_SHARE * max(shares):
        return working, []
    return peers, [thread for thread in working if thread not in peers]


def service_threads(listed: Sequence[ThreadRecord]) -> list[ThreadRecord]:
    """A JVM's own threads, which do no operations."""
    if not any(thread.name.startswith(_JVM_MARK) for thread in listed):
        return []
    return [thread for thread in listed if _JVM_SERVICE.match(thread.name)]


def is_python(role: RoleRecord) -> bool:
    """Is it known that an interpreter of Python runs its threads, one of a process at a time?"""
    return role.sites is not None and any(s.runtime == "cpython" for s in role.sites.listed)


def stops_of(listed: Sequence[ThreadRecord]) -> float:
    """How often the thread of a JVM slept that stops all others, to collect garbage or to change
    code: no more often than it stopped them. 0 without one."""
    stopping = [it for it in service_threads(listed) if it.name.startswith("VM Thread")]
    return float(max((switches_of(thread) for thread in stopping), default=0))


def compiler_queue_of(listed: Sequence[ThreadRecord]) -> float:
    """How long the thread of a JVM waited for a CPU that compiles what is called often, in ns: the
    one that waited longest. Meanwhile the program runs slow code. 0 without one."""
    compiling = [it for it in service_threads(listed) if _JVM_COMPILER.match(it.name)]
    return float(max((thread.usage.run_queue_ns or 0 for thread in compiling), default=0))


def _within(thread: ThreadRecord, wall: float) -> float:
    """CPU time of a thread in the measured phase: all of it if the thread hardly lived longer, else
    the part in proportion to the phase's share of its life."""
    life = life_of(thread, wall)
    return (thread.usage.cpu_ns or 0) * (wall / life if life > INSIDE_SLACK * wall else 1.0)


def active_threads(
    listed: Sequence[ThreadRecord],
    wall: float,
    first: int | None = None,
    joining: float = 0.0,
    taking: Collection[int] = (),
) -> list[ThreadRecord]:
    """Threads with at least a tenth of the busiest thread's activity, and others of their kind that
    wait for a CPU for most of their lives; all threads if none did anything. The ``first`` thread
    of the role is left out if it waits for the end of the others: if they get little CPU time, or
    it sets much up, it may have taken a tenth of theirs. ``joining`` is the share of the sampled
    stacks that wait for that: where it is great, the place says it, however much the thread did
    before. Those of that kind that are seen ``taking`` locks, again and again, wait for one that
    another thread takes back before they run. Helpers of a parent are left out whose workers are
    processes."""
    starting = starting_threads(listed, first)
    others = [thread for thread in listed if thread not in starting]
    listed = [
        thread
        for thread in listed
        if thread not in starting or not _joins(thread, others, joining, wall)
    ]
    activity = [_activity(thread, listed, wall) for thread in listed]
    least = ACTIVE_SHARE * max(activity, default=0.0)
    # A thread that only hands out work is ready for long, too, where others have the CPUs.
    kinds = {
        kind_of(thread) for thread, done in zip(listed, activity, strict=True) if done >= least
    }
    found = [
        thread
        for thread, done in zip(listed, activity, strict=True)
        if done >= least
        or (kind_of(thread) in kinds and _starves(thread, wall, least))
        or (kind_of(thread) in kinds and thread.tid in taking and _is_outrun(thread, wall))
    ]
    most = max(map(switches_of, found), default=0)
    working = [thread for thread in found if not _waits_throughout(thread, wall, most)] or found
    helping = [it for it in of_parent(working, listed) if _helps(it, working, wall)]
    return [thread for thread in working if thread not in helping]


def of_parent(active: Sequence[ThreadRecord], listed: Sequence[ThreadRecord]) -> list[ThreadRecord]:
    """The active threads of a process whose children are the workers, as of a pool of Python: it
    has several threads, two or more of the active ones are each the only one of a process, and one
    name is that of them all, as of processes that were forked."""
    of_process = Counter(thread.pid for thread in listed)
    alone = [thread for thread in active if of_process[thread.pid] == 1]
    names = {kind_of(thread)[0] for thread in alone}
    forking = {it.pid for it in listed if of_process[it.pid] > 1 and kind_of(it)[0] in names}
    if len(alone) < 2 or len(names) > 1:
        return []
    return [thread for thread in active if thread.pid in forking]


def _helps(thread: ThreadRecord, active: Sequence[ThreadRecord], wall: float) -> bool:
    """Does a thread beside workers do less than half as much as the busiest of them, and wait for
    most of its life? What it waits for are the tasks and results of the workers."""
    busiest = max(it.usage.cpu_ns or 0 for it in active)
    used = thread.usage.cpu_ns or 0
    ready = used + (thread.usage.run_queue_ns or 0)
    return used < JOINING_SHARE * busiest and 2 * ready < life_of(thread, wall)


def starting_threads(listed: Sequence[ThreadRecord], first: int | None) -> list[ThreadRecord]:
    """The threads that start others: the first of the role (of each process, if it is not known),
    and the one in which a JVM runs ``main``, which has its name."""
    found = [thread for thread in listed if thread.tid == (thread.pid if first is None else first)]
    names = {(thread.pid, thread.name) for thread in found if thread.name == _JVM_NAME}
    return [t for t in listed if t in found or (t.pid, t.name) in names]


def set_up_threads(
    listed: Sequence[ThreadRecord], first: int | None, wall: float
) -> list[ThreadRecord]:
    """Those of the threads that start others that may have run mostly before these began to
    live."""
    starting = starting_threads(listed, first)
    others = [thread for thread in listed if thread not in starting]
    longest = max((life_of(other, wall) for other in others), default=0.0)
    return [
        thread
        for thread in starting
        if others and 2 * (life_of(thread, wall) - longest) >= (thread.usage.cpu_ns or 0)
    ]


def _joins(
    thread: ThreadRecord, others: Sequence[ThreadRecord], joining: float, wall: float
) -> bool:
    """Does it wait for the end of the others?"""
    waits, usage = thread.waits, thread.usage
    if not others or waits is None:
        return False
    is_before = _ran_before(thread, others, wall)
    # What it ran before there were others says nothing of what it does beside them, nor does what
    # it waited for then: a script that starts the program reads what its own children print.
    seen = waits.readings
    if is_before:
        life = life_of(thread, wall)
        lead = max(0.0, life - max(life_of(other, wall) for other in others)) / max(life, 1.0)
        seen -= waits.running + min(waits.pipe + waits.poll, int(lead * waits.readings))
    if 2 * (waits.futex + waits.child) < max(1, seen):
        return False
    if joining >= JOINING_STACKS:
        return True
    switches = switches_of(thread)
    seldom = switches < JOINING_SWITCHES_MAX + len(others)
    # The main thread of a JVM loads classes before.
    is_known = 2 * waits.child >= waits.readings or thread.name == _JVM_NAME
    used, life = usage.cpu_ns or 0, thread.lived_ns or 0
    busiest = max(other.usage.cpu_ns or 0 for other in others)
    # Where all threads hardly run, that is no share of the work.
    hardly = used < max(JOINING_SHARE * busiest, JOINING_CPU * life)
    if is_before and switches < FEEDER_SWITCHES_MIN + len(others):
        return True  # it also waited before they began
    if is_before and any(life_of(other, wall) >= OUTRUN_SHARE * wall for other in others):
        return True  # it takes what they have done, or hands out what they do
    is_apart = hardly or is_before or used > JOINING_TIMES * busiest
    return (seldom or is_known) and is_apart


def idle_threads(
    listed: Sequence[ThreadRecord],
    active: Sequence[ThreadRecord],
    first: int | None = None,
    serving: bool = False,
) -> frozenset[int]:
    """The threads that had nothing to do: they hardly ran, and were hardly ever woken. So do the
    background threads of a server, which look for work once a second; others of it have a little
    to do besides, and are none of those that answer. Those of another kind than the active ones,
    such as the handlers of a pool, may be woken often, and the ``first`` of the role only waits
    for the others to end."""
    kinds = {kind_of(thread) for thread in active}
    starting = starting_threads(listed, first)
    busy = {thread.tid for thread in active}
    return frozenset(
        thread.tid
        for thread in listed
        if thread.tid not in busy
        if serving
        or thread in starting
        or (
            _hardly_runs(thread, listed) if kind_of(thread) not in kinds else _rests(thread, listed)
        )
    )


def resting_threads(listed: Sequence[ThreadRecord]) -> list[ThreadRecord]:
    """Those that hardly ran, and were hardly ever woken."""
    most_ns = max((it.usage.cpu_ns or 0 for it in listed), default=0)
    most_woken = max(map(switches_of, listed), default=0)
    return [
        thread
        for thread in listed
        if (thread.usage.cpu_ns or 0) < IDLE_SHARE * most_ns
        and switches_of(thread) < IDLE_SHARE * most_woken
    ]


#: Who answers requests is woken more often than so many times a second.
_SELDOM_PER_SECOND = 10


def waiting_threads(listed: Sequence[ThreadRecord], wall: float) -> list[ThreadRecord]:
    """Those that rest, and those that hardly ran and were woken a few times in all: beside threads
    that are busy throughout, and so are hardly ever woken themselves, that is more than a small
    share of their switches."""
    resting = resting_threads(listed)
    return [
        thread
        for thread in listed
        if thread in resting
        or (
            _hardly_runs(thread, listed)
            and switches_of(thread) <= _SELDOM_PER_SECOND * life_of(thread, wall) / 1e9
        )
    ]


def _rests(thread: ThreadRecord, listed: Sequence[ThreadRecord]) -> bool:
    """Did it hardly run, and was it hardly ever woken?"""
    return thread in resting_threads(listed)


def _hardly_runs(thread: ThreadRecord, listed: Sequence[ThreadRecord]) -> bool:
    """Beside the busiest one."""
    most_ns = max((it.usage.cpu_ns or 0 for it in listed), default=0)
    return (thread.usage.cpu_ns or 0) < IDLE_SHARE * most_ns


def _activity(thread: ThreadRecord, listed: Sequence[ThreadRecord], wall: float) -> float:
    """Time that a thread ran, or waited for the disk. Waits for a network or a pipe do not count,
    because idle threads wait there, too; nor does a wait for requests to a disk that hardly ever
    come, as of a thread of a database that takes what has been read or written."""
    waits = thread.waits
    disk = waits.disk / waits.readings if waits and waits.readings else 0.0
    waited = disk * life_of(thread, wall)
    if waited >= DISK_WAIT_NS_MAX * max(1, switches_of(thread)) and _rests(thread, listed):
        waited = 0.0
    return (thread.usage.cpu_ns or 0) + waited


def _waits_throughout(thread: ThreadRecord, wall: float, most: int) -> bool:
    """Does it wait at futexes from its start to its end, in far fewer waits than the ``most`` of
    the others, and hardly run? Where all threads hardly run, as those that sleep do, it may still
    have a tenth of what they use."""
    waits, life = thread.waits or Waits(), life_of(thread, wall)
    ran = (thread.usage.cpu_ns or 0) + (thread.usage.run_queue_ns or 0)
    is_long = life >= OUTRUN_SHARE * wall and ran < JOINING_CPU * life
    is_still = switches_of(thread) <= max(THROUGHOUT_SWITCHES_MAX, THROUGHOUT_SWITCHES * most)
    return is_long and is_still and waits.futex >= THROUGHOUT_SHARE * waits.readings > 0


def _starves(thread: ThreadRecord, wall: float, least: float) -> bool:
    """Does it wait for a CPU for most of its life? One that is short does no part of the work."""
    queued = thread.usage.run_queue_ns or 0
    return queued >= STARVING_SHARE * life_of(thread, wall) > 0 and queued >= least


def _is_outrun(thread: ThreadRecord, wall: float) -> bool:
    """Does it wait at futexes again and again, for most of a long life?"""
    waits = thread.waits or Waits()
    is_long = life_of(thread, wall) >= OUTRUN_SHARE * wall
    often = switches_of(thread) >= OUTRUN_SWITCHES_MIN
    return is_long and often and waits.futex >= OUTRUN_SHARE * waits.readings > 0


def life_of(thread: ThreadRecord, wall: float) -> float:
    return wall if thread.lived_ns is None else float(thread.lived_ns)


def dispatcher_of(
    listed: Sequence[ThreadRecord],
    bystanders: Sequence[ThreadRecord],
    active: Sequence[ThreadRecord],
    wall: float,
) -> Dispatcher | None:
    """The thread that hands out work to the others: of another kind than most active ones (by its
    name without digits, or as the first of its process), and switched about as often as they, or
    busy."""
    peers = _peers(active)
    if len(peers) < 2:
        return None
    usual = kind_of(peers[0])
    least = max(DISPATCHER_SWITCHES_MIN, DISPATCHER_SHARE * sum(map(switches_of, peers)))
    # A bystander did not run in the measured phase.
    ran = [(thread, _ran(thread, wall)) for thread in listed]
    ran += [(thread, 0.0) for thread in bystanders]
    found = [
        (share, thread)
        for thread, share in ran
        if kind_of(thread) != usual
        and (
            switches_of(thread) >= least
            or (share >= DISPATCHER_BUSY and not _ran_before(thread, peers, wall))
        )
    ]
    if not found:
        return None
    share, chosen = max(found, key=lambda pair: pair[0])
    waits = chosen.waits or Waits()
    blocked = waits.readings - waits.running
    is_full = blocked > 0 and waits.futex >= 0.5 * blocked
    alike = [thread for thread in active if kind_of(thread) == kind_of(chosen)]
    used_up = share >= DISPATCHER_USED_UP and _runs(chosen) and alike in ([], [chosen])
    return Dispatcher(chosen.name, share, is_full, used_up)


def _runs(thread: ThreadRecord) -> bool:
    """Does it run for longer than it waits for a CPU?"""
    return (thread.usage.cpu_ns or 0) >= (thread.usage.run_queue_ns or 0)


def is_fed(
    listed: Sequence[ThreadRecord],
    active: Sequence[ThreadRecord],
    wall: float,
    joiners: Collection[int] = (),
) -> bool:
    """Is there a thread beside the active ones, or of another kind than most of them, that is
    switched again and again, or busy? It may be what they wait for, even if there is one of them
    alone. A thread that waits, and that no other one wakes, waits for a time. The ``joiners`` only
    wait for the end of others, however often they were switched before."""
    peers = _peers(active)
    least = max(FEEDER_SWITCHES_MIN, FEEDER_SHARE * sum(map(switches_of, peers)))
    return any(
        _woken(thread) >= least
        or (_ran(thread, wall) >= DISPATCHER_BUSY and not _ran_before(thread, peers, wall))
        for thread in listed
        if thread not in peers and thread.tid not in joiners
    )


def _ran_before(thread: ThreadRecord, others: Sequence[ThreadRecord], wall: float) -> bool:
    """May it have run only before the others began to live, as the first thread of a short trial
    that loads a program? Then it gives them no work."""
    life = life_of(thread, wall)
    before = life - max((life_of(other, wall) for other in others), default=life)
    used = (thread.usage.cpu_ns or 0) + (thread.usage.run_queue_ns or 0)
    return used <= before + JOINING_CPU * life


def ready_beside_idle(role: RoleRecord, cpus: int | None) -> float | None:
    """The share of the time for which threads of a role waited for a CPU while some of its CPUs had
    none of them to run, by what they did in each interval; ``None`` where that is not known of all
    of them, or where none waited."""
    followed = role.thread_timelines
    if followed is None or not cpus or followed.threads > len(followed.listed):
        return None
    ready = beside = 0.0
    for at, (begin, end) in enumerate(pairwise((0, *followed.ends_ns))):
        seen = [it for it in followed.listed if 0 <= at - it.first < len(it.runnable)]
        running = sum(it.running[at - it.first] for it in seen) / 100
        runnable = sum(it.runnable[at - it.first] for it in seen) / 100
        ready += (end - begin) * runnable
        beside += (end - begin) * min(runnable, max(0.0, cpus - running))
    return beside / ready if ready else None


def asleep_beside(active: Sequence[ThreadRecord], wall: float) -> float:
    """The mean number of active threads of another kind than most that sleep at a time, and that
    never wait for others: who gives out work by a clock holds nothing."""
    peers = _peers(active)
    known = [(thread, thread.waits or Waits()) for thread in active if thread not in peers]
    return sum(
        life_of(thread, wall) * waits.sleep / waits.readings / wall
        for thread, waits in known
        if waits.sleep and not waits.futex
    )


def _peers(active: Sequence[ThreadRecord]) -> list[ThreadRecord]:
    """The threads of the kind that most of them are of; of two alike, that is switched more."""
    by_kind: dict[tuple[str, bool], list[ThreadRecord]] = {}
    for thread in active:
        by_kind.setdefault(kind_of(thread), []).append(thread)
    return max(
        by_kind.values(), key=lambda same: (len(same), sum(map(switches_of, same))), default=[]
    )


def _woken(thread: ThreadRecord) -> int:
    is_main = thread.name == _JVM_NAME and thread.tid != thread.pid
    return switches_of(thread) - (JVM_START_SWITCHES if is_main else 0)


def kind_of(thread: ThreadRecord) -> tuple[str, bool]:
    return re.sub(r"\d+", "", thread.name), thread.tid == thread.pid


def name_of_kind(name: str) -> str:
    """The kind of a thread by its name, for a reader: ``io-3`` and ``io_thd_3`` are of the kinds
    ``io`` and ``io_thd``."""
    return re.sub(r"[-_ ]?\d+", "", name) or name


def names_of_kinds(names: Mapping[int, str]) -> dict[int, str]:
    """The kind of each thread by its name, for a reader. A name that all of a kind have stays
    whole: the digits of a program's own name tell no threads apart."""
    kinds = {name: name_of_kind(name) for name in names.values()}
    of_kind = Counter(kinds.values())
    return {tid: name if of_kind[kinds[name]] == 1 else kinds[name] for tid, name in names.items()}


def switches_of(thread: ThreadRecord) -> int:
    return thread.usage.voluntary_switches or 0


def _ran(thread: ThreadRecord, wall: float) -> float:
    """Share of the measured time, or of its life if longer, that a thread was running or
    runnable."""
    ran = (thread.usage.cpu_ns or 0) + (thread.usage.run_queue_ns or 0)
    return ran / max(wall, life_of(thread, wall))


#: Of threads that live longer than the measured phase by more than this, only the phase counts.
PHASE_SLACK = 1.1
#: An indicator that a program may report for each worker: the seconds from the worker's begin in
#: the measured phase to the end of its work.
WORKER_SECONDS = "worker_compute_seconds"


class ThreadTime(NamedTuple):
    """The time of some threads; a part that was not read is ``None``."""

    thread_ns: float
    cpu_ns: float | None
    run_queue_ns: float | None
    threads: int


def workers_time(role: RoleRecord, usages: Sequence[Usage]) -> ThreadTime | None:
    """The time that each worker reports, with the accounts of the whole tree: workers that wait at
    the start barrier, or are done and wait for the others, have no work. ``None`` if no worker
    reports a time, or if workers are not kernel threads."""
    lines = [line for line in role.indicators if line.indicator == WORKER_SECONDS and line.worker]
    workers = len({line.worker for line in lines})
    if not lines or workers > (role.threads.peak or 0):
        return None
    cpu, queue = _summed(usages)
    return ThreadTime(1e9 * sum(line.value for line in lines), cpu, queue, workers)


def own_time(
    role: RoleRecord, active: Sequence[ThreadRecord], wall: float, phased: bool
) -> ThreadTime | None:
    """The time by the threads' own accounts, which are exact; ``None`` if they are incomplete, or
    if the threads outlive the measured phase."""
    if not active or any(t.usage.cpu_ns is None or t.source != "exit" for t in active):
        return None
    total = role.threads.total
    if total is not None and total > len(role.threads.listed) and len(active) == len(
        role.threads.listed
    ):  # fmt: skip
        return None  # some active threads are not listed
    lived = [life_of(thread, wall) for thread in active]
    if phased and sum(lived) > PHASE_SLACK * wall * len(active):
        return None
    if not phased:
        lived = [min(life, wall) for life in lived]
    queued = [thread.usage.run_queue_ns for thread in active]
    return ThreadTime(
        sum(lived),
        float(sum(thread.usage.cpu_ns or 0 for thread in active)),
        None if None in queued else float(sum(wait or 0 for wait in queued)),
        _at_once(len(active), role),
    )


def tree_time(role: RoleRecord, usages: Sequence[Usage], active: int, wall: float) -> ThreadTime:
    """The time by the accounts of the whole tree, over the measured phase or the whole life."""
    unlisted = (role.threads.total or 0) - len(role.threads.listed)
    many = active == len(role.threads.listed) and unlisted > 0
    count = _at_once(active + unlisted if many else active, role)
    return ThreadTime(count * wall, *_summed(usages), count)


def _summed(usages: Sequence[Usage]) -> tuple[float | None, float | None]:
    """CPU time and run-queue time; ``None`` for one that was not read."""
    cpu = [usage.cpu_ns for usage in usages]
    queue = [usage.run_queue_ns for usage in usages]
    return (
        None if None in cpu else float(sum(ns or 0 for ns in cpu)),
        None if None in queue else float(sum(ns or 0 for ns in queue)),
    )


def sampled_queue(time: ThreadTime, readings: dict[str, int]) -> float:
    """The run-queue time by samples: the time running or runnable minus the CPU time."""
    share = readings["running"] / sum(readings.values())
    return max(0.0, share * time.thread_ns - (time.cpu_ns or 0.0))


def _at_once(active: int, role: RoleRecord) -> int:
    """The number of active threads at once, at most the role's peak number of threads."""
    return max(1, min(active, role.threads.peak or active))
