"""Fitted scaling models as rows of text: one form for every view."""

from __future__ import annotations

from dataclasses import dataclass

from concurve.findings.run import Findings
from concurve.findings.scaling import ScalingFinding
from concurve.report import format as fmt

#: Groups that are told in sentences; all of them stand in the table.
GROUPS_TOLD = 8


@dataclass(frozen=True)
class ScalingRow:
    """The models of a group of cells: the chosen one in a few words, and its sentences."""

    group: str
    model: str
    formula: str
    parameters: str
    peak: str
    expected: str
    answers: tuple[str, ...]
    warnings: tuple[str, ...]
    told: bool


def scaling_rows(findings: Findings) -> list[ScalingRow]:
    """A row a group, in the order of the cells."""
    return [_row(item, number < GROUPS_TOLD) for number, item in enumerate(findings.scaling)]


def expected_heading(findings: Findings) -> str:
    """What the column of expectations is of; greatest levels may differ between groups."""
    found = {(item.work, item.expected.n) for item in findings.scaling if item.expected}
    if len(found) != 1:
        return "expected at twice the greatest level"
    work, n = found.pop()
    return f"expected at {fmt.clean(work)}={n:g}"


def subject(findings: Findings) -> str:
    """What was fitted, and how to read it."""
    if not findings.scaling:
        return ""
    first = findings.scaling[0]
    confidence = next((f"{100 * i.fit.confidence:g} %" for i in findings.scaling if i.fit), "")
    read = f" Intervals are {confidence} profile-likelihood intervals." if confidence else ""
    return (
        f"Seven models of {fmt.clean(first.label)} ({fmt.clean(first.indicator)}) against "
        f"{fmt.clean(first.work)}.{read}"
    )


def _row(item: ScalingFinding, told: bool) -> ScalingRow:
    group = fmt.setting(item.group)
    if item.fit is None:
        reason = f"No model fitted: {fmt.clean(item.reason)}."
        return ScalingRow(group, fmt.MISSING, "", "", "", "", (), (reason,), told)
    from concurve.models import MODELS

    model, best = MODELS[item.fit.chosen], item.fit.best
    words = item.answers[0]
    peak = "not established"
    if best.peak is not None and best.peak.established:
        shown = fmt.estimate(best.peak.n)
        peak = f"{shown.value} ({shown.span})"
    expected = fmt.MISSING
    if item.expected is not None:
        shown = fmt.estimate(item.expected.throughput)
        expected = f"{fmt.with_unit(shown.value, shown.unit)} ({shown.span})"
    return ScalingRow(
        group=group,
        model=f"{model.title} ({100 * best.weight:.0f} %)",
        formula=model.formula,
        parameters=words.partition(": ")[2].removesuffix("."),
        peak=peak,
        expected=expected,
        answers=item.answers,
        warnings=item.warnings,
        told=told,
    )
