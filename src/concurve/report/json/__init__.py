"""The JSON export: everything that a run found, and every raw trial behind it.

The format is described in ``schema/export.schema.json`` and kept stable: fields are added,
never changed or removed, as long as ``format`` stays the same.

History of the format (``FORMAT``):

- 1 (2026-11): first version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from concurve.findings.fit import Expectation
from concurve.findings.run import Finding, Findings, Report
from concurve.findings.workers import ProgramFact
from concurve.report.json.best import Best, BestSet, best_by_condition, best_overall
from concurve.report.json.cells import Cell, Trial, cell_of
from concurve.report.json.claims import (
    Claim,
    DependenceEntry,
    Published,
    claim_of,
    dependence_of,
    published_figures,
)
from concurve.report.json.explanation import to_json as explanation_to_json
from concurve.report.json.fit import as_dict as fit_as_dict

FORMAT = 1

RawTrial = tuple[int, int, int, bool, str | None, bytes]
"""Index of the cell, block, attempt, whether it was used, cause of a reject, record as stored."""


class _Export(msgspec.Struct, frozen=True):
    format: int
    run: dict[str, Any]
    cells: list[Cell]
    findings: tuple[Finding, ...]
    claims: list[Claim]
    dependences: list[DependenceEntry] | msgspec.UnsetType
    best: Best | msgspec.UnsetType
    best_by_condition: list[BestSet] | msgspec.UnsetType
    models: list[dict[str, Any]] | msgspec.UnsetType
    published: list[Published] | msgspec.UnsetType
    explanation: msgspec.Raw | msgspec.UnsetType
    facts: tuple[ProgramFact, ...] | msgspec.UnsetType


def to_json(findings: Report, raw_trials: Iterable[RawTrial] = ()) -> bytes:
    """The whole run as JSON. Records are embedded as they were stored, without parsing them."""
    trials: dict[int, list[Trial]] = {}
    for cell, block, attempt, used, cause, record in raw_trials:
        item = Trial(block, attempt, used, msgspec.Raw(record), cause)
        trials.setdefault(cell, []).append(item)
    export = _Export(
        FORMAT,
        _run(findings),
        [cell_of(cell, trials.get(cell.index, [])) for cell in findings.cells],
        findings.sentences,
        [claim_of(claim) for claim in findings.claims],
        [dependence_of(item) for item in findings.dependences] or msgspec.UNSET,
        best_overall(findings),
        best_by_condition(findings),
        _models(findings),
        published_figures(findings) or msgspec.UNSET,
        _explanation(findings),
        findings.facts or msgspec.UNSET,
    )
    return msgspec.json.encode(export)


def _models(findings: Report) -> list[dict[str, Any]] | msgspec.UnsetType:
    """Fits in the form of ``concurve fit --json``, each with its group; absent where none was
    asked for or none is possible. A group without a fit has the reason instead."""
    if not findings.scaling:
        return msgspec.UNSET
    found = []
    for item in findings.scaling:
        which = {"parameters": item.group, "indicator": item.indicator}
        if item.fit is None:
            found.append({**which, "reason": item.reason})
            continue
        expected = item.expected
        known = [Expectation(n=expected.n, figure=expected.throughput)] if expected else []
        fitted = fit_as_dict(item.fit, item.work, item.indicator, known, item.notes)
        found.append({**which, **fitted, "answers": item.answers})
    return found


def _explanation(findings: Report) -> msgspec.Raw | msgspec.UnsetType:
    """What limits each cell in the form of ``concurve explain --json``; absent where no records
    were read."""
    if findings.explanation is None:
        return msgspec.UNSET
    return msgspec.Raw(explanation_to_json(findings.explanation))


def _run(findings: Findings) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(findings.run),
        "question": findings.question,
        "source": findings.source,
        "primary": findings.primary,
        "factors": findings.factors,
        "indicators": findings.indicators,
        "roles": findings.roles,
        "machine": findings.machine,
    }
