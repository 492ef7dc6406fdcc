"""The time of the active threads of a role, on a CPU and in the run queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from concurve.explain.threads import life_of
from concurve.wire.record import RoleRecord, ThreadRecord, Usage

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
    wait at a gate, or for the end when they are done, have nothing to do. ``None`` where nothing is
    reported, or where workers are no kernel threads."""
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
