"""What a reader with a minute reads of a run: the answer, its chart, what limits it, how sure it
is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.findings.run import Finding, Findings, Report
from concurve.report import format as fmt
from concurve.report.charts import hero
from concurve.report.document import (
    Block,
    Collapsible,
    List,
    Overview,
    Paragraph,
    Section,
    Tone,
)
from concurve.report.sections import rejected
from concurve.report.sections.figures import confidence
from concurve.terms import Level

_TONES = {"answer": Tone.STRONG, "warning": Tone.WARNING, "note": Tone.SOFT}
# So many warnings are shown; the reader opens or asks for the others.
_WARNINGS_SHOWN = 2
#: What limits a cell, as the subject of a sentence.
_LIMITS = {
    "cpu": "The CPUs",
    "lock": "Locks",
    "coherency": "Data that moves between CPUs",
    "io": "Input and output",
    "client": "The load generator",
    "contamination": "Other processes on the machine",
    "none": "No limit was found",
}


def paragraph(item: Finding) -> Paragraph:
    """A sentence with its tone."""
    return Paragraph(item.sentence, _TONES[item.kind])


def section(report: Report) -> Section:
    """The first section of a full report."""
    beside = (limit(report), _how_sure(report))
    overview = Overview(
        answers=tuple(_of_kind(report, "answer")),
        chart=hero(report),
        beside=tuple(item for item in beside if item is not None),
    )
    return Section("The answer", (overview,), anchor="findings")


def answers(findings: Findings) -> Section | None:
    """The answers alone."""
    found = tuple(_of_kind(findings, "answer"))
    return Section("", (List(found),)) if found else None


def warnings(findings: Findings, *, all_of_them: bool = False) -> Iterator[Block]:
    """The warnings that matter most (trials in doubt have one), what became of a run that is not
    complete, and how many trials were rejected; ``all_of_them`` has all warnings, and the notes."""
    found = list(_of_kind(findings, "warning"))
    shown = found if all_of_them else found[:_WARNINGS_SHOWN]
    run = findings.run
    if run.state != "complete" and run.reason:
        shown.append(Paragraph(run.reason, Tone.WARNING, lead=run.state))
    left_out = len(found) - _WARNINGS_SHOWN
    if left_out > 0 and not all_of_them:
        shown.append(Paragraph(f"{fmt.count(left_out, 'more warning')}: --all", Tone.WARNING))
    if all_of_them:
        shown += _of_kind(findings, "note")
    elif summary := rejected.summary(findings, with_doubts=False):
        shown.append(Paragraph(summary))
    if shown:
        yield List(tuple(shown))


def limit(report: Report) -> Section | None:
    """What limits the setting with the most concurrency, among those like the recommended one."""
    explanation = report.explanation
    cell = _limited(report, explanation) if explanation is not None else None
    if cell is None:
        return None
    named = f"{_LIMITS[cell.cause]} ({cell.limit})." if cell.limit else f"{_LIMITS[cell.cause]}."
    return Section("What limits it", (Paragraph(cell.evidence, lead=named),))


def _limited(report: Report, explanation: Explanation) -> CellExplanation | None:
    """The last cell that has the levels of the recommended setting, apart from the concurrency."""
    wanted: dict[str, Level] = {}
    if report.best:
        best = report.best_overall or report.best[-1]
        wanted = {**best.group, **best.recommended}
    alike = [
        cell
        for cell in explanation.cells
        if all(
            cell.parameters.get(name) == level
            for name, level in wanted.items()
            if name != explanation.work
        )
    ]
    return max(alike, key=lambda cell: _amount(cell, explanation.work)) if alike else None


def _amount(cell: CellExplanation, work: str | None) -> float:
    level = cell.parameters.get(work, 0) if work else 0
    return float(level) if isinstance(level, (int, float)) else 0.0


def _how_sure(report: Report) -> Section:
    return Section("How sure it is", tuple(_doubts(report)))


def _doubts(report: Report) -> Iterator[Block]:
    yield Paragraph(_basis(report))
    if summary := rejected.summary(report):
        yield Paragraph(f"{summary}.")
    found = tuple(_of_kind(report, "warning"))
    if found:
        yield from _some(found)
    decide = [
        Paragraph(f"{item.decide[:1].upper()}{item.decide[1:]}.", Tone.SOFT,
                  lead=fmt.setting(item.group))
        for item in report.best
        if item.decide and not item.doubt
    ]  # fmt: skip
    if decide:
        yield Collapsible("What would tell the best settings apart", (List(tuple(decide)),))


def _some(found: Sequence[Paragraph]) -> Iterator[Block]:
    yield List(tuple(found[:_WARNINGS_SHOWN]))
    rest = found[_WARNINGS_SHOWN:]
    if rest:
        yield Collapsible(fmt.count(len(rest), "more warning"), (List(tuple(rest)),))


def _basis(report: Report) -> str:
    """What the figures rest on: ``Medians of 5 to 8 trials a cell, with 95 % intervals.``"""
    numbers = [cell.trials for cell in report.cells if cell.trials]
    if not numbers:
        return "No trial gave a figure."
    least, most = min(numbers), max(numbers)
    trials = fmt.count(most, "trial") if least == most else f"{least:,} to {most:,} trials"
    known = confidence(report)
    intervals = f", with {known} intervals" if known else "; without intervals"
    return f"Medians of {trials} a cell{intervals}."


def _of_kind(findings: Findings, kind: str) -> Iterator[Paragraph]:
    return map(paragraph, _those(findings.sentences, kind))


def _those(found: Iterable[Finding], kind: str) -> Iterator[Finding]:
    return (item for item in found if item.kind == kind)
