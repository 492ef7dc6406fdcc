"""Record → what the goroutines of a Go program were doing. Pure.

Goroutines run on any thread, and idle threads of the runtime wait at futexes, so the threads' own
waits say nothing of locks. The runtime's list of goroutines does; the runner samples it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concurve.wire.record import RoleRecord

#: Fewer readings than this of a cell, and of a trial, say little.
READINGS_MIN = 5
TRIAL_READINGS_MIN = 3
_LOCKS = ("sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock")
_SENDS = ("chan send", "chan send (nil chan)")
_RECEIVES = ("chan receive", "chan receive (nil chan)")
#: Who waits for the end of others; older versions of Go have the second reason for it.
_ENDS = ("sync.WaitGroup.Wait", "semacquire")
_OUTSIDE = ("IO wait", "sleep", "select")
#: A goroutine that collects has these; it waits as far as the scheduler is concerned.
_COLLECTING = ("GC worker (active)", "GC assist marking", "GC mark termination")


class Goroutines(NamedTuple):
    """Mean numbers of goroutines at a time: that ran or could run, that waited for a lock of Go's
    library, to send to a channel, to receive from one, for what is outside of the program (with
    those in system calls), and that collected garbage. ``marking`` is
    the share of the time in which the collector marked, ``readings`` how many samples say so.
    ``joining``: that waited for the end of others at a ``WaitGroup``, ``calling``: in system calls,
    each on a thread of its own."""

    running: float
    locked: float
    sending: float
    receiving: float
    outside: float
    collecting: float
    marking: float
    readings: float
    joining: float = 0.0
    calling: float = 0.0

    @property
    def joined(self) -> float:
        """The share of the time in which one may have waited for the end of others, which say it by
        a ``WaitGroup`` or a channel."""
        return min(1.0, self.joining + self.receiving)

    @property
    def is_known(self) -> bool:
        """Are there enough readings to rely on?"""
        return self.readings >= TRIAL_READINGS_MIN


def is_written_in_go(role: RoleRecord) -> bool:
    """Is the program of a role written in Go, whether its goroutines could be read or not?"""
    return role.runtime is not None or "runtime" in role.absent


def goroutines_of(role: RoleRecord) -> Goroutines | None:
    """Of a role whose program is written in Go, where its memory could be read."""
    found = role.runtime
    if found is None or not found.readings:
        return None

    def waiting(reasons: Sequence[str]) -> float:
        return sum(found.waiting.get(reason, 0) for reason in reasons) / found.readings

    return Goroutines(
        running=found.running / found.readings,
        locked=waiting(_LOCKS),
        sending=waiting(_SENDS),
        receiving=waiting(_RECEIVES),
        outside=waiting(_OUTSIDE) + found.in_calls / found.readings,
        collecting=waiting(_COLLECTING),
        marking=found.collecting / found.readings,
        readings=float(found.readings),
        joining=waiting(_ENDS),
        calling=found.in_calls / found.readings,
    )


#: Where threads of Go's runtime wait that have no goroutine to run; one of them waits for events,
#: and one sleeps between looks at the others. A goroutine that sleeps or waits keeps no thread.
_IDLE_AT = ("futex", "poll", "sleep")


def idle_in_go(
    role: RoleRecord, blocked_ns: float, wall_ns: float, readings: Mapping[str, int]
) -> tuple[float, dict[str, int]]:
    """For how much of the time for which threads of a Go program were blocked they had no goroutine
    to run, in nanoseconds, and the readings without that; none of another program. How many such
    threads there are is up to the runtime: no operation takes that time. A goroutine in a system
    call, or in C, has a thread of its own, which may wait at a futex there: as many stay as were in
    calls."""
    waiting = sum(seen for kind, seen in readings.items() if kind != "running")
    idle = sum(readings.get(kind, 0) for kind in _IDLE_AT)
    if not idle or not is_written_in_go(role):
        return 0.0, dict(readings)
    found = goroutines_of(role)
    in_calls = found.calling * wall_ns if found is not None else 0.0
    at_idle = blocked_ns * idle / waiting
    kept = min(at_idle, max(0.0, in_calls - (blocked_ns - at_idle)))
    left = kept / at_idle if at_idle else 0.0
    return at_idle - kept, {
        kind: round(seen * left) if kind in _IDLE_AT else seen for kind, seen in readings.items()
    }


def mean_goroutines(found: Sequence[Goroutines | None]) -> Goroutines | None:
    """Over the trials of a cell that were sampled; ``None`` if all of them are too few."""
    known = [one for one in found if one is not None]
    readings = sum(one.readings for one in known)
    if readings < READINGS_MIN:
        return None
    means = Goroutines(
        *(sum(one[at] * one.readings for one in known) / readings for at in range(len(known[0])))
    )
    return means._replace(readings=readings)
