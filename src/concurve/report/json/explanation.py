"""What limits each cell, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from concurve.estimate import Estimate
from concurve.findings.explanation import CellExplanation, Explanation
from concurve.terms import Level

FORMAT = 1
#: Always there; ``null`` where it was not read, and ``missing`` gives the reason.
_PROMISED = ("cpu", "run_queue", "blocked")


class _Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    parameters: dict[str, Level]
    cause: str
    per_operation_ns: dict[str, float | None]
    evidence: str
    limit: str = ""
    blocked_by_kind_ns: dict[str, float] = {}
    intervals_ns: dict[str, list[float]] = {}
    base: dict[str, Level] | None = None
    excess_ns: dict[str, dict[str, float]] = {}
    threads: int | None = None
    trials: int | None = None
    missing: dict[str, str] = {}


def to_json(explanation: Explanation) -> bytes:
    """The explanation as JSON, as ``schema/explain.schema.json`` describes it."""
    return msgspec.json.encode(
        {
            "format": FORMAT,
            "run": explanation.run,
            "study": explanation.study,
            "operation": explanation.operation,
            "cells": [_cell(cell) for cell in explanation.cells],
            "missing": explanation.missing,
            "notes": explanation.notes,
        }
    )


def _cell(cell: CellExplanation) -> _Cell:
    return _Cell(
        parameters=cell.parameters,
        cause=cell.cause,
        per_operation_ns=dict.fromkeys(_PROMISED)
        | {name: figure.value for name, figure in cell.per_operation.items()},
        evidence=cell.evidence,
        limit=cell.limit,
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


def _figure(figure: Estimate) -> dict[str, Any]:
    if figure.low is None or figure.high is None:
        return {"value": figure.value}
    return {"value": figure.value, "low": figure.low, "high": figure.high}
