"""What experiments say of a cause, as JSON: a part of ``concurve explain --json``."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from concurve.estimate import Estimate
from concurve.fields import Count, about
from concurve.findings.confirmation import Confirmation, Confirmed, Tried
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
    experiments: tuple[Experiment, ...] = ()
    notes: tuple[str, ...] = ()


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
        experiments=tuple(map(_experiment, found.tried)),
        notes=found.notes,
    )


def _experiment(tried: Tried) -> Experiment:
    wall, cpu = (None if it is None else _ratio(it) for it in (tried.wall, tried.cpu))
    return Experiment(tried.level, tried.says, tried.against, wall, cpu)


def _ratio(figure: Estimate) -> Ratio:
    return Ratio(figure.value, figure.low, figure.high)
