"""What a run says in sentences: answers, warnings and notes."""

from __future__ import annotations

from concurve.findings.run import Finding, Findings
from concurve.report.document import Detail, List, Paragraph, Section, Tone

TONES = {"answer": Tone.STRONG, "warning": Tone.WARNING, "note": Tone.SOFT}


def section(findings: Findings) -> Section | None:
    """The sentences; in a brief report with what became of a run that is not complete."""
    blocks = []
    if findings.sentences:
        blocks.append(List(tuple(map(paragraph, findings.sentences))))
    run = findings.run
    if run.state != "complete" and run.reason:
        item = Paragraph(run.reason, Tone.WARNING, lead=run.state)
        blocks.append(List((item,), detail=Detail.BRIEF))
    if not blocks:
        return None
    return Section("Findings", tuple(blocks), anchor="findings", brief_title="")


def paragraph(item: Finding) -> Paragraph:
    """A sentence with its tone."""
    return Paragraph(item.sentence, TONES[item.kind])
