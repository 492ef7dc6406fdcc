"""What a run says in sentences: answers, warnings and notes."""

from __future__ import annotations

from concurve.findings.run import Finding, Report
from concurve.report.document import Detail, List, Paragraph, Section, Tone

TONES = {"answer": Tone.STRONG, "warning": Tone.WARNING, "note": Tone.SOFT}


def section(report: Report) -> Section | None:
    """The sentences; a brief report adds the state of a run that is not complete."""
    blocks = []
    if report.sentences:
        blocks.append(List(tuple(map(paragraph, report.sentences))))
    run = report.run
    if run.state != "complete" and run.reason:
        item = Paragraph(run.reason, Tone.WARNING, lead=run.state)
        blocks.append(List((item,), detail=Detail.BRIEF))
    if not blocks:
        return None
    return Section("Findings", tuple(blocks), anchor="findings", brief_title="")


def paragraph(item: Finding) -> Paragraph:
    """A sentence with its tone."""
    return Paragraph(item.sentence, TONES[item.kind])
