"""What experiments say of a cause: is it one, and what would be gained without a part of it?"""

from __future__ import annotations

from typing import Literal

import msgspec

from concurve.estimate import Estimate
from concurve.terms import Level

#: ``open``: the trials were too few, or too noisy, to say so.
Confirmed = Literal["confirmed", "not confirmed", "open", "out of reach"]


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """What holding a lock for ``held`` of its time is predicted to gain: how many times as much is
    done in the same time. ``is_bounded``: more CPU time, or the lock itself, would be the limit
    then, and sets it."""

    held: float
    times: Estimate
    is_bounded: bool = False


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment: its level in the run, what it did, and how many times as long an operation
    took as in the level ``against``; ``cpu``: the same of its CPU time."""

    level: str
    says: str
    against: str
    wall: Estimate | None = None
    cpu: Estimate | None = None


#: Classes inside of the locks of Java's library that threads park on.
_INNER = ("$NonfairSync", "$FairSync", "$Sync")


def short_class(name: str) -> str:
    """The class without its packages; of an array that of its elements."""
    bare = name.lstrip("[")
    if len(bare) < len(name):
        bare = bare[1:-1] if bare.startswith("L") and bare.endswith(";") else bare
        return f"array of {bare.split('.')[-1]}"
    return bare.split(".")[-1]


class RecordedPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a program of a JVM where its threads waited, as its flight recorder says.

    ``name`` is the function without its packages, for sentences, and ``file`` the source that its
    outermost class has by Java's convention. ``lock`` is the class of the monitor, or of the object
    that threads parked on. ``share`` is that of the time of all waits for locks; ``None`` for waits
    for no lock. ``owners`` are the threads that had it before, with the number of waits.
    """

    name: str
    function: str
    kind: str
    primitive: str
    events: int
    blocked_ns: int
    file: str | None = None
    line: int | None = None
    lock: str | None = None
    share: float | None = None
    owners: tuple[tuple[str, int], ...] = ()

    @property
    def at(self) -> str:
        """``Table.java:17``; empty where the class was compiled without lines."""
        return f"{self.file}:{self.line}" if self.file and self.line else ""

    @property
    def waits_for(self) -> str:
        """What threads wait for, in words: ``monitor of Table``, ``ReentrantLock``."""
        if self.lock is None:
            return "an object without a name"
        name = self.lock
        for inner in _INNER:
            name = name.removesuffix(inner)
        return f"monitor of {short_class(name)}" if self.kind == "monitor" else short_class(name)


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """What the flight recorder of a JVM says of the waits for locks in ``trials``: how many they
    were, and what they took together. ``sites`` have the longest time first, and waits for no lock
    last. ``elsewhere`` are waits in no function of the program. ``place`` says the first ones in a
    sentence, ``cost`` how many times as long an operation took with the recorder. ``missing`` says
    why nothing was recorded.
    """

    trials: int = 0
    events: int = 0
    blocked_ns: int = 0
    threshold_ns: int = 0
    sites: tuple[RecordedPlace, ...] = ()
    elsewhere_events: int = 0
    elsewhere_blocked_ns: int = 0
    is_cut: bool = False
    place: str = ""
    cost: Estimate | None = None
    missing: str = ""


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """What experiments say of the cause of one cell.

    ``run`` has the trials; ``of`` is the run that was explained, ``parameters`` its cell.
    ``lock`` names the lock, or the place that takes it, where it is in reach. ``evidence`` is one
    sentence. ``slope`` is the part of the time of an operation that the lock's holding costs, by
    the slope at the time for which it is held now; ``holds`` are those of an operation, and
    ``held_ns`` the mean time of one. ``held_share`` is the part of the measured time in which a
    thread has the lock; ``None`` where the program marks a phase, as locks are counted outside of
    it, too, or has more threads than CPUs, as who holds it then waits for one. ``blocks`` are the
    complete blocks that it rests on.
    ``recorded`` is what the flight recorder of a JVM says, where one was asked.
    """

    run: str
    of: str
    study: str
    parameters: dict[str, Level]
    cause: str
    result: Confirmed
    evidence: str
    lock: str = ""
    tried: tuple[Tried, ...] = ()
    slope: Estimate | None = None
    gain: Gain | None = None
    holds: float | None = None
    held_ns: float | None = None
    held_share: Estimate | None = None
    blocks: int = 0
    notes: tuple[str, ...] = ()
    recorded: Recorded | None = None
