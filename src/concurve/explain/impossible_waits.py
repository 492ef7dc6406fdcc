"""Waits for a CPU that the samples of their own thread contradict: a role → the same without them.

The kernel's account of how long a thread was ready and had no CPU (``run_delay`` of schedstat) is
now and then off by seconds on virtual machines: of a thread that slept in 42 of 43 samples it said
that it was ready all the time. Such an account would be a cause of its own.
"""

from __future__ import annotations

import math

import msgspec

from concurve.wire.record import RoleRecord, ThreadRecord, Usage

#: Fewer samples of a thread contradict nothing.
READINGS_MIN = 20
#: So many standard deviations of a count of samples are chance.
_DEVIATIONS = 4.0


def without_impossible_waits(role: RoleRecord) -> RoleRecord:
    """The role, whose threads were ready for no longer than their samples allow. Where one is said
    to have been, its wait is what its samples have; the sums of the role have that much less."""
    threads = [_believable(thread, role.wall_ns) for thread in role.threads.listed]
    taken = sum(
        (before.usage.run_queue_ns or 0) - (after.usage.run_queue_ns or 0)
        for before, after in zip(role.threads.listed, threads, strict=True)
    )
    if taken <= 0:
        return role
    whole = _at_most(role.usage, max(0, (role.usage.run_queue_ns or 0) - taken))
    # Whether it fell into a phase is not known; none has more than the whole life.
    most = whole.run_queue_ns or 0
    return msgspec.structs.replace(
        role,
        threads=msgspec.structs.replace(role.threads, listed=tuple(threads)),
        usage=whole,
        phases=tuple(
            msgspec.structs.replace(phase, usage=_at_most(phase.usage, most))
            if whole.run_queue_ns is not None
            else phase
            for phase in role.phases
        ),
    )


def _believable(thread: ThreadRecord, wall_ns: int) -> ThreadRecord:
    waits, queued = thread.waits, thread.usage.run_queue_ns
    if waits is None or queued is None or waits.readings < READINGS_MIN:
        return thread
    life = wall_ns if thread.lived_ns is None else thread.lived_ns
    chance = _DEVIATIONS * math.sqrt(waits.running + 1)
    if queued <= life * (waits.running + 1 + chance) / waits.readings:
        return thread
    seen = life * waits.running / waits.readings - (thread.usage.cpu_ns or 0)
    usage = msgspec.structs.replace(thread.usage, run_queue_ns=max(0, int(seen)))
    return msgspec.structs.replace(thread, usage=usage)


def _at_most(usage: Usage, most_ns: int) -> Usage:
    """The usage with a wait of no more than so much; one that was not read stays so."""
    if usage.run_queue_ns is None or usage.run_queue_ns <= most_ns:
        return usage
    return msgspec.structs.replace(usage, run_queue_ns=most_ns)
