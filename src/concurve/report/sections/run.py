"""The report of a run: the list of its sections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from concurve.findings.run import Report
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Code,
    Detail,
    Document,
    Fact,
    Paragraph,
    Section,
    Tone,
    at_detail,
)
from concurve.report.sections import (
    answers,
    charts,
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


class Part(NamedTuple):
    """A section of the report: its builder (which returns ``None`` if the run has no content for
    it), its detail, and whether the report of a campaign has it for each of its runs."""

    make: Callable[[Report], Section | None]
    detail: Detail | None = None
    in_campaign: bool = True


def _again(report: Report) -> Section:
    """How to run it again."""
    return Section("Run it again", (Code(report.run.again),), anchor="again")


#: The sections in their order. The table comes first in a brief report.
PARTS = (
    Part(figures.brief, Detail.BRIEF, in_campaign=False),
    Part(answers.section),
    Part(claims.section),
    Part(dependence.section),
    Part(published.section),
    Part(charts.section, Detail.FULL),
    Part(scaling.section),
    Part(limits.section, Detail.FULL),
    Part(figures.full, Detail.FULL),
    Part(rejected.section, in_campaign=False),
    Part(machine.section, Detail.FULL, in_campaign=False),
    Part(program.section, Detail.FULL),
    Part(_again, Detail.FULL, in_campaign=False),
)


def run_document(report: Report, detail: Detail = Detail.FULL) -> Document:
    """The report of a run."""
    run = report.run
    took = f"{fmt.count(run.trials, 'trial')} in {fmt.duration(run.duration_seconds)}"
    facts = [Fact(run.study, Detail.BRIEF), Fact(run.id, Detail.BRIEF), Fact(took),
             Fact(run.effort), Fact(run.started, Detail.FULL)]  # fmt: skip
    if run.state != "complete":
        facts.append(Fact(run.state, Detail.BRIEF))
    if report.source:
        facts.append(Fact(f"after {report.source}", Detail.FULL))
    document = Document(
        title=report.question or run.study,
        kicker=run.study if report.question else "",
        facts=tuple(facts),
        head=tuple(_head(report)),
        blocks=tuple(sections(report, detail)),
        footer=" · ".join(
            filter(None, (f"Concurve {run.version}", f"run {run.id}", f"seed {run.seed}",
                          run.reason))
        ),
        version=run.version,
    )  # fmt: skip
    return at_detail(document, detail)


def sections(report: Report, detail: Detail, *, in_campaign: bool = False) -> Iterator[Section]:
    """The sections of a run that a document of this detail has."""
    for part in PARTS:
        if part.detail in (None, detail) and (part.in_campaign or not in_campaign):
            made = part.make(report)
            if made is not None:
                yield made


def _head(report: Report) -> Iterator[Block]:
    if report.run.state != "complete":
        lead = f"{fmt.state(report.run.state)}."
        yield Paragraph(report.run.reason, Tone.WARNING, lead=lead, detail=Detail.FULL)
