"""The threads of a role that do its operations, and their time.

The active ones are not those that set up, wait for the end, serve a JVM, or have nothing to do.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from concurve.wire.record import RoleRecord, ThreadRecord, Usage, Waits

#: A thread is active from this share of the busiest one's activity on.
ACTIVE_SHARE = 0.1
#: … or from this share of its life on that it waits for a CPU.
STARVING_SHARE = 0.5
#: A first thread with less than this share of the busiest one's CPU time, and that few switches,
#: has started the others and waits in a join.
JOINING_SHARE = 0.5
JOINING_SWITCHES_MAX = 10
#: A thread that lives no longer than this many phases does its work in there.
INSIDE_SLACK = 1.5
#: Share of a peer's CPU time in a phase that the peers may leave unexplained, for all other threads
#: to be bystanders.
BYSTANDER_SHARE = 0.25
#: A thread that is no peer of the active ones hands out their work if it was switched so often,
#: or so busy.
DISPATCHER_SWITCHES_MIN = 50
DISPATCHER_SHARE = 0.25
DISPATCHER_BUSY = 0.5

_JVM_MARK = "VM Thread"
_JVM_SERVICE = re.compile(
    r"VM Thread|VM Periodic|GC Thread|G1 |C[12] Compiler|Signal Dispatch|Finalizer|Reference Handl"
    r"|Common-Cleaner|Service Thread|Monitor Deflat|Notification T|Sweeper thread|Attach Listener"
    r"|ZDirector|ZDriver|ZStat|ZWorker|ZUncommitter|XDirector|DestroyJavaVM"
)


class Dispatcher(NamedTuple):
    """A thread that hands out work to the active ones: the share of the time that it ran, and
    whether it mostly waits for them to take it (at a futex: their queue is full)."""

    name: str
    ran: float
    waits_for_workers: bool


def present(
    role: RoleRecord, phases: Sequence[Usage], wall: float
) -> tuple[list[ThreadRecord], list[ThreadRecord]]:
    """Threads that may do the work, and bystanders, whose CPU time came before or after it.

    Where the threads of the busiest kind explain the CPU time of the measured phase, the others
    have set things up and wait for the end. Of threads that outlive it, a part of their CPU time
    counts. A JVM's own threads are neither.
    """
    listed = role.threads.listed
    is_jvm = any(thread.name.startswith(_JVM_MARK) for thread in listed)
    serving = [t for t in listed if is_jvm and _JVM_SERVICE.match(t.name) is not None]
    working = [thread for thread in listed if thread not in serving]
    kinds: dict[tuple[str, bool], int] = {}
    for thread in working:
        if thread.tid != thread.pid:
            kinds[_kind(thread)] = kinds.get(_kind(thread), 0) + (thread.usage.cpu_ns or 0)
    known = [usage.cpu_ns for usage in phases if usage.cpu_ns is not None]
    if not kinds or not known:
        return working, []
    busiest = max(kinds, key=lambda kind: kinds[kind])
    peers = [thread for thread in working if _kind(thread) == busiest]
    shares = [_within(thread, wall) for thread in peers]
    unexplained = sum(known) - sum(shares) - sum(_within(thread, wall) for thread in serving)
    if unexplained > BYSTANDER_SHARE * max(shares):
        return working, []
    return peers, [thread for thread in working if thread not in peers]


def _within(thread: ThreadRecord, wall: float) -> float:
    """CPU time of a thread in the measured phase: all, if it was hardly longer there, else the
    part of an even spending over its life."""
    life = life_of(thread, wall)
    return (thread.usage.cpu_ns or 0) * (wall / life if life > INSIDE_SLACK * wall else 1.0)


def active_threads(listed: Sequence[ThreadRecord], wall: float) -> list[ThreadRecord]:
    """Threads with a tenth of the busiest one's activity at least, and those that spend most of
    their lives waiting for a CPU; all, if none did anything. Not a first thread that waits for
    their end: where they get little CPU time, its own to start them may be a tenth of that."""
    busiest = max((thread.usage.cpu_ns or 0 for thread in listed), default=0)
    listed = [thread for thread in listed if not _joins(thread, busiest)]
    activity = [_activity(thread, wall) for thread in listed]
    least = ACTIVE_SHARE * max(activity, default=0.0)
    return [
        thread
        for thread, done in zip(listed, activity, strict=True)
        if done >= least or _starves(thread, wall)
    ]


def _joins(thread: ThreadRecord, busiest: int) -> bool:
    waits, usage = thread.waits, thread.usage
    if thread.tid != thread.pid or waits is None or 2 * waits.futex < max(1, waits.readings):
        return False
    seldom = (usage.voluntary_switches or 0) < JOINING_SWITCHES_MAX
    return seldom and (usage.cpu_ns or 0) < JOINING_SHARE * busiest


def _activity(thread: ThreadRecord, wall: float) -> float:
    """Time that a thread ran, or had the disk work for it. Waits for a network or a pipe do not
    count: so do idle threads."""
    waits = thread.waits
    disk = waits.disk / waits.readings if waits and waits.readings else 0.0
    return (thread.usage.cpu_ns or 0) + disk * life_of(thread, wall)


def _starves(thread: ThreadRecord, wall: float) -> bool:
    return (thread.usage.run_queue_ns or 0) >= STARVING_SHARE * life_of(thread, wall) > 0


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
    kinds = [_kind(thread) for thread in active]
    usual = max(set(kinds), key=kinds.count, default=None)
    if usual is None or kinds.count(usual) < 2:
        return None
    peers = sum(_switches(thread) for thread in active if _kind(thread) == usual)
    least = max(DISPATCHER_SWITCHES_MIN, DISPATCHER_SHARE * peers)
    # What a bystander ran was not in the measured phase.
    ran = [(thread, _ran(thread, wall)) for thread in listed]
    ran += [(thread, 0.0) for thread in bystanders]
    found = [
        (share, thread)
        for thread, share in ran
        if _kind(thread) != usual and (_switches(thread) >= least or share >= DISPATCHER_BUSY)
    ]
    if not found:
        return None
    share, chosen = max(found, key=lambda pair: pair[0])
    waits = chosen.waits or Waits()
    blocked = waits.readings - waits.running
    return Dispatcher(chosen.name, share, blocked > 0 and waits.futex >= 0.5 * blocked)


def _kind(thread: ThreadRecord) -> tuple[str, bool]:
    return re.sub(r"\d+", "", thread.name), thread.tid == thread.pid


def _switches(thread: ThreadRecord) -> int:
    return thread.usage.voluntary_switches or 0


def _ran(thread: ThreadRecord, wall: float) -> float:
    """Share of the measured time, or of its longer life, that a thread ran or wanted to."""
    ran = (thread.usage.cpu_ns or 0) + (thread.usage.run_queue_ns or 0)
    return ran / max(wall, life_of(thread, wall))


#: Threads whose lives are longer than the measured phase by more are counted inside it only.
PHASE_SLACK = 1.1
#: What a program may report of each of its workers: the seconds from when it began in a measured
#: phase to the end of its work.
WORKER_SECONDS = "worker_compute_seconds"


class ThreadTime(NamedTuple):
    """Time of a number of threads; ``None`` where a part of it was not read."""

    thread_ns: float
    cpu_ns: float | None
    run_queue_ns: float | None
    threads: int


def workers_time(role: RoleRecord, usages: Sequence[Usage]) -> ThreadTime | None:
    """From what each worker reports of its time, and the accounts of the whole tree: workers that
    wait at the start barrier, or for the end when they are done, have nothing to do. ``None`` where
    nothing is reported, or where workers are no kernel threads."""
    lines = [line for line in role.indicators if line.indicator == WORKER_SECONDS and line.worker]
    workers = len({line.worker for line in lines})
    if not lines or workers > (role.threads.peak or 0):
        return None
    cpu, queue = _summed(usages)
    return ThreadTime(1e9 * sum(line.value for line in lines), cpu, queue, workers)


def own_time(
    role: RoleRecord, active: Sequence[ThreadRecord], wall: float, phased: bool
) -> ThreadTime | None:
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
    return ThreadTime(
        sum(lived),
        float(sum(thread.usage.cpu_ns or 0 for thread in active)),
        None if None in queued else float(sum(wait or 0 for wait in queued)),
        _at_once(len(active), role),
    )


def tree_time(role: RoleRecord, usages: Sequence[Usage], active: int, wall: float) -> ThreadTime:
    """From the accounts of the whole tree, over the measured phase or the whole life."""
    unlisted = (role.threads.total or 0) - len(role.threads.listed)
    many = active == len(role.threads.listed) and unlisted > 0
    count = _at_once(active + unlisted if many else active, role)
    return ThreadTime(count * wall, *_summed(usages), count)


def _summed(usages: Sequence[Usage]) -> tuple[float | None, float | None]:
    """CPU time and run queue; ``None`` where one was not read."""
    cpu = [usage.cpu_ns for usage in usages]
    queue = [usage.run_queue_ns for usage in usages]
    return (
        None if None in cpu else float(sum(ns or 0 for ns in cpu)),
        None if None in queue else float(sum(ns or 0 for ns in queue)),
    )


def sampled_queue(time: ThreadTime, readings: dict[str, int]) -> float:
    """Samples see a thread running or runnable; what of that is no CPU time is the run queue."""
    share = readings["running"] / sum(readings.values())
    return max(0.0, share * time.thread_ns - (time.cpu_ns or 0.0))


def _at_once(active: int, role: RoleRecord) -> int:
    """No more of them at once than the role had threads at its peak."""
    return max(1, min(active, role.threads.peak or active))
