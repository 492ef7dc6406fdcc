"""The JSON export: everything that a run found, and every raw trial behind it.

The format is described in ``schema/export.schema.json`` and kept stable: fields are added,
never changed or removed, as long as ``format`` stays the same.

History of the format (``FORMAT``):

- 1 (2026-11): first version.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from concurve.estimate import Estimate
from concurve.findings.best import BestFinding
from concurve.findings.cells import CellFindings
from concurve.findings.claims import ClaimFinding, Dependence
from concurve.findings.run import Finding, Findings
from concurve.findings.study import Level
from concurve.findings.workers import ToldFact

FORMAT = 1

RawTrial = tuple[int, int, int, bool, str | None, bytes]
"""Index of the cell, block, attempt, whether it was used, cause of a reject, record as stored."""


class _Object(msgspec.Struct, frozen=True, omit_defaults=True):
    """Absent fields are left out, so that a reader never takes one for a figure."""


class _Trial(_Object, frozen=True):
    block: int
    attempt: int
    used: bool
    record: msgspec.Raw
    reject_cause: str | None = None


class _Indicator(msgspec.Struct, frozen=True):
    value: float
    low: float | msgspec.UnsetType
    high: float | msgspec.UnsetType
    n: int
    unit: str
    confidence: float
    median: float | msgspec.UnsetType
    min: float | msgspec.UnsetType
    max: float | msgspec.UnsetType
    stdev: float | msgspec.UnsetType


class _Cell(msgspec.Struct, frozen=True):
    index: int
    parameters: dict[str, Level]
    status: str
    indicators: dict[str, _Indicator]
    absent: dict[str, str]
    including_rejects: _Indicator | msgspec.UnsetType
    base: int | msgspec.UnsetType
    stop_reason: str
    note: str
    trials: list[_Trial]


class _Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    says: str
    source: str
    kind: str
    verdict: str
    reason: str
    threshold: str = ""
    indicator: str = ""
    estimate: _Indicator | None = None
    published: float | None = None
    cell: dict[str, Level] = {}
    doubt: str = ""


class _Published(msgspec.Struct, frozen=True, omit_defaults=True):
    table: str
    title: str
    row: str
    column: str
    printed: str
    unit: str
    indicator: str
    parameters: dict[str, Level]
    base: dict[str, Level]
    compare: str
    verdict: str
    reason: str
    published: float | None = None
    ours: _Indicator | None = None


class _BestSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settings are bare levels where one factor varies, else objects of levels."""

    indicator: str
    factors: tuple[str, ...]
    levels: list[Level | dict[str, Level]]
    recommended: Level | dict[str, Level]
    leader: Level | dict[str, Level]
    compared: int
    group: dict[str, Level] | msgspec.UnsetType = msgspec.UNSET
    decide: str = ""
    trials: int | None = None


class _Best(_BestSet, frozen=True, omit_defaults=True):
    groups: list[_BestSet] = []


class _Dependence(msgspec.Struct, frozen=True, omit_defaults=True):
    claim: str
    factor: str
    level: Level
    settings: int
    ratio: _Indicator | None
    change: _Indicator | None = None


class _Export(msgspec.Struct, frozen=True):
    format: int
    run: dict[str, Any]
    cells: list[_Cell]
    findings: tuple[Finding, ...]
    claims: list[_Claim]
    dependences: list[_Dependence] | msgspec.UnsetType
    best: _Best | msgspec.UnsetType
    best_by_condition: list[_BestSet] | msgspec.UnsetType
    models: list[dict[str, Any]] | msgspec.UnsetType
    published: list[_Published] | msgspec.UnsetType
    explanation: msgspec.Raw | msgspec.UnsetType
    facts: tuple[ToldFact, ...] | msgspec.UnsetType


def to_json(findings: Findings, raw_trials: Iterable[RawTrial] = ()) -> bytes:
    """The whole run as JSON. Records are embedded as they were stored, without parsing them."""
    trials: dict[int, list[_Trial]] = {}
    for cell, block, attempt, used, cause, record in raw_trials:
        item = _Trial(block, attempt, used, msgspec.Raw(record), cause)
        trials.setdefault(cell, []).append(item)
    export = _Export(
        FORMAT,
        _run(findings),
        [_cell(cell, trials.get(cell.index, [])) for cell in findings.cells],
        findings.sentences,
        [_claim(claim) for claim in findings.claims],
        [_dependence(item) for item in findings.dependences] or msgspec.UNSET,
        _best(findings),
        _best_by_condition(findings),
        _models(findings),
        _published(findings) or msgspec.UNSET,
        _explanation(findings),
        findings.facts or msgspec.UNSET,
    )
    return msgspec.json.encode(export)


def _models(findings: Findings) -> list[dict[str, Any]] | msgspec.UnsetType:
    """Fits in the form of ``concurve fit --json``, each with its group; absent where none was
    asked for or none is possible. A group without a fit has the reason instead."""
    if not findings.scaling:
        return msgspec.UNSET
    from concurve.report.fit.json import as_dict
    from concurve.report.fit.subject import Subject

    found = []
    for item in findings.scaling:
        which = {"parameters": item.group, "indicator": item.indicator}
        if item.fit is None:
            found.append({**which, "reason": item.reason})
            continue
        predictions = [item.expected] if item.expected else []
        fitted = as_dict(item.fit, predictions, Subject((), (), item.work, item.indicator))
        found.append({**which, **fitted, "answers": item.answers})
    return found


def _explanation(findings: Findings) -> msgspec.Raw | msgspec.UnsetType:
    """What limits each cell in the form of ``concurve explain --json``; absent where no records
    were read."""
    if findings.explanation is None:
        return msgspec.UNSET
    from concurve.report.explain.json import to_json as explained

    return msgspec.Raw(explained(findings.explanation))


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


def _cell(cell: CellFindings, trials: list[_Trial]) -> _Cell:
    figures = {name: _indicator(figure) for name, figure in cell.indicators.items()}
    absent = {name: "the figure is not finite" for name, figure in figures.items() if not figure}
    rejects = cell.including_rejects
    return _Cell(
        index=cell.index,
        parameters=cell.parameters,
        status=cell.status,
        indicators={name: figure for name, figure in figures.items() if figure},
        absent={**cell.absent, **absent},
        including_rejects=(_indicator(rejects) if rejects else None) or msgspec.UNSET,
        base=msgspec.UNSET if cell.base is None else cell.base,
        stop_reason=cell.stop_reason,
        note=cell.note,
        trials=trials,
    )


def _claim(claim: ClaimFinding) -> _Claim:
    return _Claim(
        id=claim.id,
        says=claim.says,
        source=claim.source,
        kind=claim.kind,
        verdict=claim.verdict,
        reason=claim.reason,
        threshold=claim.threshold,
        indicator=claim.indicator,
        estimate=_indicator(claim.estimate) if claim.estimate else None,
        published=claim.published,
        cell=claim.cell,
        doubt=claim.doubt,
    )


def _dependence(item: Dependence) -> _Dependence:
    return _Dependence(
        claim=item.claim,
        factor=item.factor,
        level=item.level,
        settings=item.settings,
        ratio=_indicator(item.ratio),
        change=_indicator(item.change) if item.change else None,
    )


def _published(findings: Findings) -> list[_Published]:
    return [
        _Published(
            table=table.number,
            title=table.title,
            row=figure.row,
            column=figure.column,
            printed=figure.printed,
            unit=figure.unit,
            indicator=figure.indicator,
            parameters=figure.parameters,
            base=figure.base,
            compare=figure.compare,
            verdict=figure.verdict,
            reason=figure.reason,
            published=figure.published,
            ours=_indicator(figure.ours) if figure.ours else None,
        )
        for table in findings.published
        for figure in table.figures
    ]


def _best(findings: Findings) -> _Best | msgspec.UnsetType:
    """The best settings over all cells, and those of each group; absent where none was sought."""
    whole = findings.best_overall
    if whole is None:
        return msgspec.UNSET
    groups = [_BestSet(**_best_set(item), group=item.group) for item in findings.best if item.group]
    return _Best(**_best_set(whole), groups=groups)


def _best_by_condition(findings: Findings) -> list[_BestSet] | msgspec.UnsetType:
    """The same under each of the conditions that the study meets; absent where it has none."""
    if findings.best_overall is not None or not findings.best:
        return msgspec.UNSET
    return [_BestSet(**_best_set(item), group=item.group) for item in findings.best]


def _best_set(item: BestFinding) -> dict[str, Any]:
    return {
        "indicator": item.indicator,
        "factors": item.factors,
        "levels": [_setting(setting) for setting in item.settings],
        "recommended": _setting(item.recommended),
        "leader": _setting(item.leader),
        "compared": item.compared,
        "decide": item.decide,
        "trials": item.trials,
    }


def _setting(setting: dict[str, Level]) -> Level | dict[str, Level]:
    return next(iter(setting.values())) if len(setting) == 1 else setting


def _indicator(figure: Estimate) -> _Indicator | None:
    """The estimate without what is not finite; ``None`` if its value is not."""
    if not math.isfinite(figure.value):
        return None
    both = _finite(figure.low) is not msgspec.UNSET and _finite(figure.high) is not msgspec.UNSET
    return _Indicator(
        value=figure.value,
        low=_finite(figure.low) if both else msgspec.UNSET,
        high=_finite(figure.high) if both else msgspec.UNSET,
        n=figure.n,
        unit=figure.unit,
        confidence=figure.confidence,
        median=_finite(figure.median),
        min=_finite(figure.min),
        max=_finite(figure.max),
        stdev=_finite(figure.stdev),
    )


def _finite(value: float | None) -> float | msgspec.UnsetType:
    return msgspec.UNSET if value is None or not math.isfinite(value) else value
