"""What limits each cell, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

import msgspec

from concurve.estimate import Estimate
from concurve.fields import Count, Positive, about
from concurve.findings.explanation import Cause, CellExplanation, Explanation
from concurve.terms import Level

FORMAT = 1
#: Always there; ``null`` where it was not read, and ``missing`` gives the reason.
_PROMISED = ("cpu", "run_queue", "blocked")


Time = Annotated[float, about(minimum=0)]
Kind = Annotated[
    str, about(enum=["futex", "disk", "network", "poll", "pipe", "sleep", "child", "other"])
]
Missing = Annotated[dict[str, str], about("Kinds of evidence that the records lack, and why.")]


class Excess(msgspec.Struct, frozen=True):
    """By how much a component exceeds the base's, with its interval where there is one."""

    KEYWORDS: ClassVar = {"dependentRequired": {"low": ["high"], "high": ["low"]}}

    value: float
    low: float | msgspec.UnsetType = msgspec.UNSET
    high: float | msgspec.UnsetType = msgspec.UNSET


class ExplainedCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """What limits a cell."""

    parameters: dict[str, Level]
    cause: Annotated[
        Cause,
        about("none: no limit was found, or the records lack the evidence for one."),
    ]
    per_operation_ns: Annotated[
        dict[str, Time | None],
        about(
            "total is the sum of the others; null: not read, and missing gives the reason. Where "
            "run_queue is null it is in blocked.",
            required=list(_PROMISED),
        ),
    ]
    evidence: Annotated[str, about("One sentence.")]
    limit: Annotated[
        str,
        about(
            "The resource of a loaded server that is used up: CPUs, a kind of threads, or load; "
            "left out if none is."
        ),
    ] = ""
    doubt: Annotated[
        str,
        about(
            "Why its figures or the base's are in doubt: then no cause is named but "
            "contamination; left out if they are not."
        ),
    ] = ""
    blocked_by_kind_ns: Annotated[
        dict[Kind, Time],
        about("blocked, divided as the samples are; left out without samples."),
    ] = {}
    intervals_ns: Annotated[
        dict[str, Annotated[list[float], about(minItems=2, maxItems=2)]],
        about("95 % intervals by component or kind: low, high."),
    ] = {}
    base: Annotated[
        dict[str, Level] | None,
        about("The cell that this one is held against; left out for that cell itself."),
    ] = None
    excess_ns: Annotated[dict[str, Excess], about("By how much components exceed the base's.")] = {}
    threads: Annotated[Positive | None, about("Active ones at once.")] = None
    trials: Count | None = None
    missing: Missing = {}


class Explained(msgspec.Struct, frozen=True):
    """Written by ``concurve explain --json``. Times are thread time per operation, in
    nanoseconds."""

    format: Annotated[int, about(const=FORMAT)]
    run: str
    study: str
    operation: Annotated[str, about("What counts as an operation.")]
    cells: list[ExplainedCell]
    missing: Missing
    notes: tuple[str, ...]


def to_json(explanation: Explanation) -> bytes:
    """The explanation as JSON, as ``schema/explain.schema.json`` describes it."""
    return msgspec.json.encode(
        Explained(
            format=FORMAT,
            run=explanation.run,
            study=explanation.study,
            operation=explanation.operation,
            cells=[_cell(cell) for cell in explanation.cells],
            missing=explanation.missing,
            notes=explanation.notes,
        )
    )


def _cell(cell: CellExplanation) -> ExplainedCell:
    return ExplainedCell(
        parameters=cell.parameters,
        cause=cell.cause,
        per_operation_ns=dict.fromkeys(_PROMISED)
        | {name: figure.value for name, figure in cell.per_operation.items()},
        evidence=cell.evidence,
        limit=cell.limit,
        doubt=cell.doubt,
        blocked_by_kind_ns={name: figure.value for name, figure in cell.by_kind.items()},
        intervals_ns=dict(_intervals({**cell.per_operation, **cell.by_kind})),
        base=cell.base,
        excess_ns={name: _figure(figure) for name, figure in cell.excess.items()},
        threads=cell.threads,
        trials=cell.trials,
        missing=cell.missing,
    )


def _intervals(figures: Mapping[str, Estimate]) -> Iterator[tuple[str, list[float]]]:
    for name, figure in figures.items():
        if figure.low is not None and figure.high is not None:
            yield name, [figure.low, figure.high]


def _figure(figure: Estimate) -> Excess:
    if figure.low is None or figure.high is None:
        return Excess(figure.value)
    return Excess(figure.value, figure.low, figure.high)
