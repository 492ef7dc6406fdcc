"""The run of an export, its study and its machine."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from concurve.fields import Count, Text, about
from concurve.findings.run import Findings
from concurve.terms import Level, Waiting


class Factor(msgspec.Struct, frozen=True):
    """A factor with its levels in order."""

    name: str
    levels: Annotated[tuple[Level, ...], about(minItems=1)]
    work: Annotated[bool, about("Counts as concurrency.")]


class IndicatorEntry(msgspec.Struct, frozen=True):
    """An indicator: its label, its unit and its better direction."""

    name: Text
    label: str
    unit: str
    better: Literal["lower", "higher", "neither"]
    note: str


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The run, and how to run it again."""

    id: Text
    study: str
    effort: Annotated[str, about("quick, normal or rigorous")]
    seed: Annotated[int, about("Seed of the order of the trials.")]
    started: Annotated[str, about("ISO 8601, UTC.")]
    state: Literal["running", "complete", "interrupted", "failed"]
    reason: Annotated[str, about("Why the run stopped.")]
    trials: Count
    rejected: Count
    duration_seconds: Annotated[float, about(minimum=0)]
    again: Annotated[str, about("Command that runs it again.")]
    version: Annotated[str, about("Version of Concurve.")]
    pilot: Annotated[
        int | None, about("Trials of a cell whose spread has set how many more it got.")
    ]
    is_staged: Annotated[
        bool, about("The spread of the pilot may have set how many trials there are.")
    ] = False
    simulation: Annotated[bool, about("The figures come from a clock of the program's own.")]
    waiting: Annotated[
        Waiting | None,
        about(
            "How it waited for a quiet machine (--wait-quiet); null if it was not asked to. "
            "What is 0, false or empty in it is left out."
        ),
    ] = None
    resumed_after: Annotated[
        tuple[int, ...], about("Trials that were stored each time it was resumed; oldest first.")
    ] = ()
    question: str
    source: str
    primary: Annotated[str, about("Name of the indicator that decides.")]
    factors: list[Factor]
    indicators: list[IndicatorEntry]
    roles: tuple[str, ...]
    machine: Annotated[dict[str, Any], about("What is known of the machine; open.")]


def run_of(findings: Findings) -> Run:
    """A run as it is exported."""
    known = msgspec.structs.asdict(findings.run)
    return Run(
        **{name: known[name] for name in known.keys() & Run.__struct_fields__},
        question=findings.question,
        source=findings.source,
        primary=findings.primary,
        factors=[Factor(item.name, item.levels, item.work) for item in findings.factors],
        indicators=[
            IndicatorEntry(item.name, item.label, item.unit, item.better, item.note)
            for item in findings.indicators
        ],
        roles=findings.roles,
        machine=findings.machine,
    )
