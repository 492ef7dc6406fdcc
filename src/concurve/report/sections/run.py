"""The report of a run: the list of its sections, and those that are a few lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from concurve.findings.explanation import Explanation
from concurve.findings.run import Finding, Findings, Report
from concurve.findings.scaling import ScalingFinding
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Code,
    Detail,
    Document,
    Fact,
    List,
    Paragraph,
    Section,
    Tone,
    at_detail,
)
from concurve.report.sections import (
    claims,
    dependence,
    figures,
    limits,
    machine,
    program,
    published,
    rejected,
    scaling,
)

_TONES = {"answer": Tone.STRONG, "warning": Tone.WARNING, "note": Tone.SOFT}


class Part(NamedTuple):
    """A section of a full report: what makes it (``None`` where the run has nothing of it), and
    whether the report of a campaign has it for each of its runs."""

    make: Callable[[Report], Section | None]
    in_campaign: bool = True


def answers(findings: Findings) -> Section | None:
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
    return Paragraph(item.sentence, _TONES[item.kind])


def _again(report: Report) -> Section:
    """How to run it again."""
    return Section("Run it again", (Code(report.run.again),), anchor="again")


#: The sections of a full report in their order.
FULL = (
    Part(answers),
    Part(claims.section),
    Part(dependence.section),
    Part(published.section),
    Part(figures.drawn),
    Part(scaling.section),
    Part(limits.section),
    Part(figures.full),
    Part(rejected.section, in_campaign=False),
    Part(machine.section, in_campaign=False),
    Part(program.section),
    Part(_again, in_campaign=False),
)


def brief_sections(
    findings: Findings, models: Sequence[ScalingFinding], explanation: Explanation | None
) -> Iterator[Section | None]:
    """The sections of a brief report in their order, the table first. They take the figures of the
    cells: nothing else is read for them, unless it was asked for."""
    yield figures.brief(findings)
    yield answers(findings)
    yield claims.brief(findings, explanation)
    yield dependence.section(findings)
    yield published.section(findings)
    yield scaling.brief(models)
    yield rejected.section(findings)


def run_document(report: Report) -> Document:
    """The full report of a run."""
    return _document(report, sections(report), Detail.FULL)


def brief_run_document(
    findings: Findings,
    models: Sequence[ScalingFinding] = (),
    explanation: Explanation | None = None,
) -> Document:
    """The brief report of a run, with scaling models and what limits the cells of its claims where
    these were asked for."""
    return _document(findings, brief_sections(findings, models, explanation), Detail.BRIEF)


def sections(report: Report, *, in_campaign: bool = False) -> Iterator[Section | None]:
    """The sections of a run in a full report, or in that of a campaign."""
    return (part.make(report) for part in FULL if part.in_campaign or not in_campaign)


def _document(findings: Findings, found: Iterable[Section | None], detail: Detail) -> Document:
    run = findings.run
    took = f"{fmt.count(run.trials, 'trial')} in {fmt.duration(run.duration_seconds)}"
    facts = [Fact(run.study, Detail.BRIEF), Fact(run.id, Detail.BRIEF), Fact(took),
             Fact(run.effort), Fact(run.started, Detail.FULL)]  # fmt: skip
    if run.state != "complete":
        facts.append(Fact(run.state, Detail.BRIEF))
    if findings.source:
        facts.append(Fact(f"after {findings.source}", Detail.FULL))
    document = Document(
        title=findings.question or run.study,
        kicker=run.study if findings.question else "",
        facts=tuple(facts),
        head=tuple(_head(findings)),
        blocks=tuple(section for section in found if section is not None),
        footer=" · ".join(
            filter(None, (f"Concurve {run.version}", f"run {run.id}", f"seed {run.seed}",
                          run.reason))
        ),
        version=run.version,
    )  # fmt: skip
    return at_detail(document, detail)


def _head(findings: Findings) -> Iterator[Block]:
    if findings.run.state != "complete":
        lead = f"{fmt.state(findings.run.state)}."
        yield Paragraph(findings.run.reason, Tone.WARNING, lead=lead, detail=Detail.FULL)
