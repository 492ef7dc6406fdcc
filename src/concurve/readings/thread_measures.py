"""Record → the scheduling settings that the kernel gave each thread of a role. Pure.

Workers are known by their names: ``Thread-1`` … as the kernels of document 002 call them, and
``worker-0`` … as our other programs do; the carriers of a JVM's virtual threads by that of their
pool. All others are service threads: the first thread, collectors, compilers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from concurve.wire.record import RoleRecord, ThreadRecord
from concurve.wire.spec import Policy

WORKER = re.compile(r"(Thread|worker)-\d+")
CARRIER = re.compile(r"ForkJoinPool-.*")

#: The kernel's numbers of its policies (``sched(7)``), field 41 of ``/proc/PID/stat``.
POLICY_NUMBERS = {"other": 0, "fifo": 1, "rr": 2, "batch": 3, "idle": 5, "deadline": 6, "ext": 7}


def thread_figures(role: RoleRecord) -> tuple[dict[str, float], dict[str, str]]:
    """Figures of a role's threads by name, and why others are absent.

    A program without a thread that is named like a worker has none of them.
    """
    values: dict[str, float] = {}
    absent: dict[str, str] = {}
    workers = [thread for thread in role.threads.listed if WORKER.fullmatch(thread.name)]
    carriers = [thread for thread in role.threads.listed if CARRIER.fullmatch(thread.name)]
    if workers or carriers:
        _count(role, len(workers), len(carriers), values, absent)
        _settings(workers or carriers, values, absent)
        _affinity(role, values, absent)
    return values, absent


def _count(role: RoleRecord, workers: int, carriers: int,
           values: dict[str, float], absent: dict[str, str]) -> None:  # fmt: skip
    listed, total = len(role.threads.listed), role.threads.total
    if total is None:
        reason = role.threads.absent.get("total", "not all threads were counted")
    elif listed < total:
        reason = f"{listed} of {total} threads are listed"
    else:
        values["worker_threads_total"] = workers
        values["carrier_threads_total"] = carriers
        values["service_threads_total"] = total - workers - carriers
        return
    absent.update(
        dict.fromkeys(
            ("worker_threads_total", "carrier_threads_total", "service_threads_total"), reason
        )
    )


_READINGS: Mapping[str, Callable[[ThreadRecord], float | None]] = {
    "nice": lambda thread: thread.nice,
    "priority": lambda thread: kernel_priority(thread.nice, thread.policy),
    "policy": lambda thread: (
        None if thread.policy is None else POLICY_NUMBERS[thread.policy.class_]
    ),
    "cpus": lambda thread: None if thread.cpus is None else len(thread.cpus),
}


def _settings(
    workers: list[ThreadRecord], values: dict[str, float], absent: dict[str, str]
) -> None:
    """Least and greatest of each setting over the workers; carriers where there are only those."""
    for name, reading in _READINGS.items():
        readings = [reading(thread) for thread in workers]
        known = [value for value in readings if value is not None]
        if len(known) < len(readings):
            reason = f"{len(readings) - len(known)} of {len(readings)} workers were not sampled"
            absent.update({f"worker_{name}_min": reason, f"worker_{name}_max": reason})
        else:
            values[f"worker_{name}_min"], values[f"worker_{name}_max"] = min(known), max(known)


def kernel_priority(nice: int | None, policy: Policy | None) -> float | None:
    """One scale for all policies, on which more is more: PRI of ``ps`` (procps), which is 19 - nice
    or 40 + the real-time priority. SCHED_IDLE counts as -1, since its weight (3) lies below that of
    nice 19 (15); deadline and ext have no place on it. A real-time priority of 0 does not exist: it
    is that of a thread whose policy is known from its exit only."""
    if policy is None or policy.class_ in ("deadline", "ext"):
        return None
    if policy.class_ in ("fifo", "rr"):
        return 40 + policy.priority if policy.priority else None
    if policy.class_ == "idle":
        return -1
    return None if nice is None else 19 - nice


def _affinity(role: RoleRecord, values: dict[str, float], absent: dict[str, str]) -> None:
    """How many threads do not have the CPUs that their process was granted."""
    seen = [thread.cpus for thread in role.threads.listed if thread.cpus is not None]
    if role.controls.cpus is None or not seen:
        absent["threads_off_affinity"] = "the allowed CPUs were not read"
    else:
        values["threads_off_affinity"] = sum(cpus != role.controls.cpus for cpus in seen)
