"""The report of a campaign as Markdown; the charts are in the HTML report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve.findings.campaign import CampaignFindings, StudyFindings
from concurve.report import dependence
from concurve.report import format as fmt
from concurve.report.campaign.document import (
    COMPARED,
    PROTOCOL,
    Chapter,
    Document,
    Numbered,
    document,
    share,
    title_of,
)
from concurve.report.campaign.html import blocks
from concurve.report.explain.section import cells_to_markdown, curves_to_markdown
from concurve.report.machine import facts
from concurve.report.markdown import (
    MARKS,
    claims_table,
    code,
    figures,
    grid,
    models,
    published_table,
    text,
)
from concurve.report.told import to_markdown as told

_VERDICTS = ("supported", "refuted", "undecided", "not testable here")
_AGREEMENTS = ("agrees", "differs", "undecided")


def to_campaign_markdown(findings: CampaignFindings) -> str:
    """The whole document."""
    contents = document(findings, charts=False)
    campaign = findings.campaign
    sections = {
        "Management summary": _summary(findings),
        "Introduction and scope": [
            *_told(findings.texts.introduction),
            *_told(findings.texts.scope),
        ],
        "Test platform": _platform(findings),
        "Procedure": _procedure(findings),
        "Test cases": _cases(findings),
        "Results": _results(contents),
        "Deviations": _deviations(findings),
        "Glossary": _glossary(findings),
        "Tables": _index(contents),
        "Run it again": [*code(campaign.again), ""],
    }
    lines = [f"# {text(campaign.title or campaign.question)}", "", *_opening(findings)]
    number = 0
    for title, section in sections.items():
        body = list(section)
        if body:
            number += 1
            lines += [f"## {number}. {title}", "", *body]
    ids = f"campaign {text(campaign.id)} · seed {campaign.seed}"
    lines += [f"Concurve {text(campaign.version)} · {ids}", ""]
    return "\n".join(lines)


def _opening(findings: CampaignFindings) -> Iterator[str]:
    campaign = findings.campaign
    took = f"{fmt.count(findings.trials, 'trial')} in {fmt.duration(findings.duration_seconds)}"
    source = [f"after {campaign.source}"] if campaign.source else []
    facts = [campaign.name, "Software Test Document", took, campaign.effort, campaign.started]
    yield text(" · ".join([*facts, *source]))
    yield ""
    if campaign.title:
        yield text(campaign.question)
        yield ""
    if campaign.state != "complete":
        yield f"**This campaign is {campaign.state}.** {text(campaign.reason)}"
        yield ""


def _summary(findings: CampaignFindings) -> Iterator[str]:
    for item in findings.summary:
        yield f"- {MARKS[item.kind]}{text(item.sentence)}"
    yield ""
    heading = ("test case", "state", *_VERDICTS, *(f"figures: {name}" for name in _AGREEMENTS))
    rows = [
        (
            text(title_of(study)),
            study.state,
            *(_count(study.verdicts.get(name, 0)) for name in _VERDICTS),  # type: ignore[call-overload]
            *(_count(study.agreements.get(name, 0)) for name in _AGREEMENTS),  # type: ignore[call-overload]
        )
        for study in findings.studies
    ]
    yield from grid(heading, rows, range(2, len(heading)))
    yield ""


def _count(number: int) -> str:
    return str(number) if number else fmt.MISSING


def _told(said: str) -> Iterator[str]:
    for block in blocks(said):
        for item in block.items:
            yield f"- {text(item)}" if block.is_list else text(item)
        yield ""


def _platform(findings: CampaignFindings) -> Iterator[str]:
    yield from _told(findings.texts.platform)
    known = [(text(name), text(value)) for name, value in facts(findings.machine)]
    yield from grid(("", ""), known) if known else ["No study has begun: nothing is known of it."]
    yield ""


def _procedure(findings: CampaignFindings) -> Iterator[str]:
    yield from _told(findings.texts.procedure)
    yield text(PROTOCOL)
    yield ""
    yield text(COMPARED)
    yield ""
    yield f"Effort {text(findings.campaign.effort)}, seed {findings.campaign.seed}. As it was run:"
    yield ""
    heading = ("study", "cells", "blocks", "trials a cell", "precision", "redos a trial",
               "of the pilot", "allowed", "took", "trials", "rejected",
               "why cells stopped")  # fmt: skip
    rows = [_procedure_row(study) for study in findings.studies]
    yield from grid(heading, rows, range(1, len(heading) - 1))
    yield ""


def _procedure_row(study: StudyFindings) -> Sequence[str]:
    how = study.procedure
    if how is None:
        return (text(study.name), *[fmt.MISSING] * 10, study.state)
    return (
        text(study.name),
        str(how.cells),
        str(how.blocks),
        f"{how.repeats_min} to {how.repeats_max}",
        f"±{share(how.precision)}",
        str(how.redo_max),
        share(how.redo_share),
        fmt.duration(how.time_allowed_seconds),
        fmt.duration(how.duration_seconds),
        str(how.trials),
        str(how.rejected),
        text("; ".join(f"{number} × {reason}" for reason, number in how.stopped.items())),
    )


def _cases(findings: CampaignFindings) -> Iterator[str]:
    for study in findings.studies:
        case = study.test_case
        yield f"### {text(case.name if case else study.name)}"
        yield ""
        if case is None:
            yield text(study.question)
            yield ""
            continue
        yield f"**Objective:** {text(case.objective)}"
        yield ""
        for name, said in (("Goal", case.goal), ("Area", case.area)):
            if said:
                yield f"**{name}:** {text(said)}"
                yield ""
        for name in ("expected", "conditions", "indicators", "steps"):
            items: tuple[str, ...] = getattr(case, name)
            if items:
                yield f"**{name.capitalize()}:**"
                yield ""
                yield from (f"- {text(item)}" for item in items)
                yield ""


def _results(contents: Document) -> Iterator[str]:
    for chapter in contents.chapters:
        yield f"### {text(chapter.title)}"
        yield ""
        yield from _chapter(chapter)


def _chapter(chapter: Chapter) -> Iterator[str]:
    study = chapter.study
    if study.state != "complete":
        yield f"**{study.state.capitalize()}.** {text(study.reason)}"
        yield ""
    if study.run is None:
        return
    for item in chapter.comparisons:
        yield from _caption(item.table)
        yield from published_table(item.contents)
    if chapter.claims_number is not None:
        yield from _caption(chapter.claims_number)
        yield from claims_table(chapter.claims)
    if chapter.dependences_number is not None:
        yield from _caption(chapter.dependences_number)
        yield from dependence.to_markdown(study.run)
    answers = [item.sentence for item in study.run.sentences if item.kind == "answer"]
    if answers:
        yield "What the run says:"
        yield ""
        yield from (f"- {text(sentence)}" for sentence in answers)
        yield ""
    if chapter.cells is not None and chapter.cells_number is not None:
        yield from _caption(chapter.cells_number)
        yield from figures(chapter.cells)
    if chapter.models is not None:
        yield from _caption(chapter.models.table)
        yield from models(study.run)
    if chapter.limits is not None:
        yield from _caption(chapter.limits.table)
        if chapter.limits.curves is not None:
            yield from curves_to_markdown(chapter.limits.curves)
        yield from cells_to_markdown(chapter.limits.cells)
    if chapter.told_number is not None:
        yield from _caption(chapter.told_number)
        yield from told(study.run)
    yield f"Run {text(study.run.run.id)}. Again:"
    yield ""
    yield from code(study.run.run.again)
    yield ""


def _caption(number: Numbered) -> Iterator[str]:
    yield f"**{text(number.label)}** {text(number.title)}"
    yield ""


def _deviations(findings: CampaignFindings) -> Iterator[str]:
    yield from _told(findings.texts.deviations)
    if findings.deviations:
        rows = [(text(d.study or "all"), d.kind, text(d.says)) for d in findings.deviations]
        yield from grid(("study", "kind", "what"), rows)
    else:
        yield "None: every study ran as planned, and every trial was used."
    yield ""


def _glossary(findings: CampaignFindings) -> Iterator[str]:
    for term, meaning in findings.glossary.items():
        yield f"- **{text(term)}**: {text(meaning)}"
    if findings.glossary:
        yield ""


def _index(contents: Document) -> Iterator[str]:
    yield "Numbers are those of the source; N numbers what is new. The figures are in the HTML "
    yield "report."
    yield ""
    for entry in contents.tables:
        yield f"- {text(entry.label)} {text(entry.title)}"
    yield ""
