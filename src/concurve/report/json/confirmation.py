"""What experiments say of a cause, as JSON: a part of ``concurve explain --json``."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from concurve.estimate import Estimate
from concurve.fields import Count, about
from concurve.findings.confirmation import (
    Confirmation,
    Confirmed,
    Recorded,
    RecordedPlace,
    Tried,
)
from concurve.terms import Level


class Ratio(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many times as much, with its interval."""

    KEYWORDS: ClassVar = {"dependentRequired": {"low": ["high"], "high": ["low"]}}

    value: float
    low: float | None = None
    high: float | None = None


class PredictedGain(msgspec.Struct, frozen=True, omit_defaults=True):
    """What would be gained if the lock were held shorter."""

    held: Annotated[float, about("The part of its time for which it would be held.", minimum=0)]
    times: Annotated[Ratio, about("How many times as much would be done in the same time.")]
    is_bounded: Annotated[
        bool, about("The CPU time that remains sets it; left out if the slope does.")
    ] = False


class Experiment(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one experiment did to the time of an operation."""

    level: Annotated[str, about("Its name in the run of the experiments.")]
    says: Annotated[str, about("What it did.")]
    against: Annotated[str, about("The level that it is compared with.")]
    wall: Annotated[Ratio | None, about("Wall time; left out where trials were too few.")] = None
    cpu: Annotated[Ratio | None, about("CPU time; left out where trials were too few.")] = None


class LockOwner(msgspec.Struct, frozen=True, omit_defaults=True):
    """A thread that had a lock before one that waited got it."""

    name: str
    waits: Annotated[Count, about("The waits that its giving back ended.")]


class RecordedSite(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in the program where threads waited, by the flight recorder of their JVM."""

    kind: Annotated[
        str,
        about(
            "monitor: to enter one. park: parked, as by a lock of a library. wait: to be notified.",
            enum=["monitor", "park", "wait"],
        ),
    ]
    primitive: Annotated[
        str,
        about(
            "What is waited at.",
            enum=["mutex", "reader_writer_lock", "semaphore", "condition", "other"],
        ),
    ]
    function: Annotated[str, about("Class and method, the innermost outside of Java's packages.")]
    waits: Annotated[Count, about("In all trials.")]
    blocked_ns: Annotated[Count, about("What they took together.")]
    file: Annotated[
        str | None,
        about("By Java's convention: recordings have classes, and no names of files."),
    ] = None
    line: Count | None = None
    lock: Annotated[
        str | None, about("The class of the monitor, or of the object that was parked on.")
    ] = None
    share: Annotated[
        float | None,
        about("Of the time of all waits for locks; left out for no lock.", minimum=0, maximum=1),
    ] = None
    owners: Annotated[
        tuple[LockOwner, ...], about("The threads that had it before, most waits first.")
    ] = ()


class RecordedLocks(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where threads of a JVM waited for locks, by its flight recorder, which was on in further
    trials."""

    trials: Count
    waits: Annotated[Count, about("For locks, in all these trials.")]
    blocked_ns: Annotated[Count, about("What they took together.")]
    threshold_ns: Annotated[Count, about("Shorter waits are not recorded.")]
    place: Annotated[str, about("The first places, in a sentence.")] = ""
    sites: Annotated[
        tuple[RecordedSite, ...],
        about("The longest time first, waits for no lock last."),
    ] = ()
    cost: Annotated[
        Ratio | None,
        about("How many times as long an operation took with the recorder."),
    ] = None
    elsewhere_waits: Annotated[
        Count, about("Those of the waits with no function of the program on the stack.")
    ] = 0
    elsewhere_blocked_ns: Count = 0
    is_cut: Annotated[bool, about("Recordings were longer than what was read of them.")] = False
    missing: Annotated[str, about("Why nothing was recorded; left out if it was.")] = ""


class ConfirmedCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """What experiments say of the cause of a cell."""

    run: Annotated[str, about("The run that has their trials.")]
    of: Annotated[str, about("The run that was explained.")]
    parameters: dict[str, Level]
    cause: str
    result: Annotated[Confirmed, about("open: the trials were too few, or too noisy.")]
    evidence: Annotated[str, about("One sentence.")]
    blocks: Annotated[Count, about("Complete blocks of experiments.")]
    lock: Annotated[str, about("The lock that was held longer; left out if none was.")] = ""
    gain: PredictedGain | None = None
    slope: Annotated[
        Ratio | None,
        about("The part of the time of an operation that holding the lock costs."),
    ] = None
    holds: Annotated[float | None, about("Of the lock, in an operation.")] = None
    held_ns: Annotated[float | None, about("Mean time for which it was held.")] = None
    held_share: Annotated[
        Ratio | None,
        about(
            "The part of the measured time in which a thread has the lock; left out where the "
            "program marks a phase, or has more threads than CPUs."
        ),
    ] = None
    experiments: tuple[Experiment, ...] = ()
    notes: tuple[str, ...] = ()
    recorded: Annotated[
        RecordedLocks | None,
        about("In which lines threads of a JVM waited; left out where none was asked."),
    ] = None


def confirmed_cell(found: Confirmation) -> ConfirmedCell:
    """What experiments say, as it is written."""
    gain = found.gain
    return ConfirmedCell(
        run=found.run,
        of=found.of,
        parameters=found.parameters,
        cause=found.cause,
        result=found.result,
        evidence=found.evidence,
        blocks=found.blocks,
        lock=found.lock,
        gain=None
        if gain is None
        else PredictedGain(gain.held, _ratio(gain.times), gain.is_bounded),
        slope=None if found.slope is None else _ratio(found.slope),
        holds=found.holds,
        held_ns=found.held_ns,
        held_share=None if found.held_share is None else _ratio(found.held_share),
        experiments=tuple(map(_experiment, found.tried)),
        notes=found.notes,
        recorded=None if found.recorded is None else _recorded(found.recorded),
    )


def _recorded(found: Recorded) -> RecordedLocks:
    return RecordedLocks(
        trials=found.trials,
        waits=found.events,
        blocked_ns=found.blocked_ns,
        threshold_ns=found.threshold_ns,
        place=found.place,
        sites=tuple(map(_site, found.sites)),
        cost=None if found.cost is None else _ratio(found.cost),
        elsewhere_waits=found.elsewhere_events,
        elsewhere_blocked_ns=found.elsewhere_blocked_ns,
        is_cut=found.is_cut,
        missing=found.missing,
    )


def _site(site: RecordedPlace) -> RecordedSite:
    return RecordedSite(
        kind=site.kind,
        primitive=site.primitive,
        function=site.function,
        waits=site.events,
        blocked_ns=site.blocked_ns,
        file=site.file,
        line=site.line,
        lock=site.lock,
        share=site.share,
        owners=tuple(LockOwner(name, waits) for name, waits in site.owners),
    )


def _experiment(tried: Tried) -> Experiment:
    wall, cpu = (None if it is None else _ratio(it) for it in (tried.wall, tried.cpu))
    return Experiment(tried.level, tried.says, tried.against, wall, cpu)


def _ratio(figure: Estimate) -> Ratio:
    return Ratio(figure.value, figure.low, figure.high)
