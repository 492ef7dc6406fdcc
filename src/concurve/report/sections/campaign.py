"""The report of a campaign: a Software Test Document in the form of document 002.

Tables and figures of the source keep the source's numbers; new ones are numbered N1, N2, …
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from concurve import words
from concurve.findings.again import run_again
from concurve.findings.campaign import CampaignFindings, CampaignReport, StudyFindings
from concurve.findings.explanation import Limit
from concurve.findings.run import Report, TrialFindings
from concurve.report import format as fmt
from concurve.report.charts import hero
from concurve.report.document import (
    Block,
    Caption,
    Cell,
    Chart,
    Code,
    Collapsible,
    Column,
    Detail,
    Document,
    Fact,
    Facts,
    List,
    Missing,
    Number,
    Overview,
    Paragraph,
    Role,
    Section,
    Table,
    Text,
    Tone,
    at_detail,
    once,
    walk,
)
from concurve.report.sections.machine import described
from concurve.report.sections.overview import limit as limit_of
from concurve.report.sections.overview import limit_line, paragraph
from concurve.report.sections.published import counts
from concurve.report.sections.run import sections
from concurve.terms import TestCase

PROTOCOL = (
    "Each trial is a fresh process. A block runs every cell once, in an order drawn from the seed. "
    "After a pilot of a few blocks as many follow as the least precise cell needs for the "
    "precision asked for, up to a cap and within a time allowance; the centre counts, with its "
    "95 % interval. A trial is redone for a cause: a program error, a wrong result, a machine that "
    "other processes used. A value alone is no cause. The table gives the greatest number of "
    "redos a trial, and the greatest share of the pilot's trials that may be redone because other "
    "processes used the machine. A second program error "
    "skips the cell. Rejected trials stay stored."
)

COMPARED = (
    "Times of another machine say nothing about ours. So a published figure is compared with ours, "
    "each relative to a base cell on its own machine. It agrees where the whole 95 % interval "
    "of ours lies within ±10 % of it (less where the source found less) and what its rounding "
    "leaves open, differs where none of the interval does, and is undecided otherwise. Figures of "
    "two scales that have nothing in common, such as the priorities of two systems, agree if "
    "both lie on the same side of their base. "
    "Where trials are in use with a doubt, a verdict stands only if the quiet ones alone give it."
)

_STATES = {"complete": Tone.STRONG, "failed": Tone.BAD, "not run": Tone.BAD}
_VERDICTS = ("supported", "refuted", "undecided", "cannot be decided", "not testable here")
#: Has a column only where a claim has it.
_SELDOM = "cannot be decided"
_AGREEMENTS = ("agrees", "differs", "undecided")
_BAD = ("refuted", "differs")
# At most this many sentences of a run are shown unfolded.
_SENTENCES_OPEN_MAX = 4


@dataclass
class _Numbers:
    """Gives labels to tables and figures, and keeps their links for the index."""

    tables: list[Text] = field(default_factory=list)
    figures: list[Text] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    new_tables: int = 0
    new_figures: int = 0

    def caption(self, title: str, label: str = "") -> Caption:
        """The caption of a table, with the source's label or a new one."""
        if not label:
            self.new_tables += 1
            label = f"Table N{self.new_tables}"
        anchor = self._enter(self.tables, label, title)
        return Caption(title, label, anchor)

    def figure(self, chart: Chart, study: str) -> Chart:
        """A chart with its number, which its file is named by."""
        title = chart.title if chart.label else f"{study}: {chart.title}"
        label = chart.label
        if not label:
            self.new_figures += 1
            label = f"Figure N{self.new_figures}"
        anchor = self._enter(self.figures, label, title)
        return msgspec.structs.replace(chart, title=title, label=label, anchor=anchor, name=anchor)

    def _enter(self, index: list[Text], label: str, title: str) -> str:
        plain = "".join(char if char.isalnum() else "-" for char in label).lower()
        anchor, number = plain, 0
        while anchor in self.anchors:
            number += 1
            anchor = f"{plain}-{number}"
        self.anchors.add(anchor)
        index.append(Text(f"{label} {title}", link=anchor))
        return anchor


def campaign_document(findings: CampaignReport) -> Document:
    """The report of a campaign, with the report of each of its runs."""
    return _document(findings, _full(findings), Detail.FULL)


def brief_campaign_document(
    findings: CampaignFindings[TrialFindings], limits: Sequence[Limit] = ()
) -> Document:
    """The answer to the question of a campaign, and what became of its studies. ``limits`` explain
    the cell of the study that answers first that a reader is told of."""
    return _document(findings, _brief(findings, limits), Detail.BRIEF)


def _document(
    findings: CampaignFindings[TrialFindings], found: Iterable[Section], detail: Detail
) -> Document:
    campaign = findings.campaign
    took = f"{fmt.count(findings.trials, 'trial')} in {fmt.duration(findings.duration_seconds)}"
    facts = [Fact(campaign.name, Detail.BRIEF), Fact(campaign.id, Detail.BRIEF), Fact(took),
             Fact(campaign.effort), Fact(campaign.state, Detail.BRIEF),
             Fact(fmt.moment(campaign.started), Detail.FULL)]  # fmt: skip
    if campaign.source:
        facts.append(Fact(f"after {campaign.source}", Detail.FULL))
    is_brief = detail is Detail.BRIEF
    reason = f" · {campaign.reason}" if campaign.reason else ""
    document = Document(
        title=campaign.question if is_brief else campaign.title or campaign.question,
        kicker=f"{campaign.name} · Software Test Document",
        facts=tuple(facts),
        head=tuple(_head(findings)),
        blocks=tuple(found),
        footer=f"Concurve {campaign.version} · campaign {campaign.id} · seed {campaign.seed}"
        f"{reason}",
        version=campaign.version,
        has_contents=not is_brief,
    )
    runs = [study.run.run for study in findings.studies if study.run is not None]
    again = [
        run_again(
            run.over_hosts,
            run.waiting,
            run.strangers,
            is_stolen=run.is_stolen,
            constant=run.constant,
            autogroups=run.autogroups,
        )
        for run in runs
    ]
    return once(at_detail(document, detail), list(dict.fromkeys(again)))


def _head(findings: CampaignFindings[TrialFindings]) -> Iterator[Block]:
    campaign = findings.campaign
    if campaign.title:
        yield Paragraph(campaign.question, detail=Detail.FULL)
    if campaign.state != "complete":
        lead = f"This campaign is {campaign.state}."
        yield Paragraph(campaign.reason, Tone.WARNING, lead=lead, detail=Detail.FULL)


def _brief(findings: CampaignFindings[TrialFindings], limits: Sequence[Limit]) -> Iterator[Section]:
    said = list(map(paragraph, findings.answers))
    for limit in limits:
        where = f" with {fmt.setting(limit.under)}" if limit.under else ""
        lead = f"What limits {findings.answered_by}{where}"
        said.append(msgspec.structs.replace(limit_line(limit), lead=lead))
    yield Section("", (List(tuple(said)),))
    for study in findings.studies:
        yield Section("", tuple(_study(study)))
    yield Section("", (List(tuple(map(paragraph, findings.summary))),))
    shown = next((study.run.run.id for study in findings.studies if study.run), None)
    if shown is not None:
        text = f"concurve show {shown} shows the first study's run; concurve report "
        text += f"{findings.campaign.id} --export-html FILE writes the whole"
        yield Section("", (Paragraph(text, Tone.SOFT),))


def _study(study: StudyFindings[TrialFindings]) -> Iterator[Paragraph]:
    head = f"{study.name} {study.state}"
    if study.run is not None:
        head += f" {study.run.run.id} {fmt.count(study.run.run.trials, 'trial')}"
    tone = _STATES.get(study.state, Tone.SOFT)
    yield Paragraph(head, tone)
    yield Paragraph(study.test_case.objective if study.test_case else study.question)
    if study.verdicts:
        verdicts = ", ".join(f"{number} {verdict}" for verdict, number in study.verdicts.items())
        yield Paragraph(f"claims: {verdicts}", Tone.SOFT)
    agreements = counts(study.agreements)
    if agreements:
        yield Paragraph(f"published figures: {agreements}", Tone.SOFT)


def _full(findings: CampaignReport) -> Iterator[Section]:
    """The sections that have something to say."""
    texts, numbers = findings.texts, _Numbers()
    results = Section("Results", tuple(_results(findings, numbers)), "results")
    found = (
        Section("The answer", (_overview(findings),), "answer"),
        Section("Management summary", tuple(_summary(findings)), "summary"),
        Section("About this document", tuple(_about(findings)), "about"),
        Section("Introduction and scope",
                (*_written(texts.introduction), *_written(texts.scope), *_goals(findings)),
                "introduction"),
        Section("Test platform", (*_written(texts.platform), described(findings.machine)),
                "platform"),
        Section("Procedure", tuple(_procedure(findings)), "procedure"),
        Section("Indicators and tools", tuple(_measures(findings)), "measures"),
        Section("Test cases", tuple(map(_case, findings.studies)), "cases"),
        results,
        Section("Deviations", tuple(_deviations(findings)), "deviations"),
        Section("Glossary", tuple(_glossary(findings)), "glossary"),
        Section("Tables", tuple(_index(numbers)), "index"),
        Section("Run it again", (Code(findings.campaign.again),), "again"),
    )  # fmt: skip
    yield from (section for section in found if section.blocks)


def _overview(findings: CampaignReport) -> Overview:
    """The first sentence answers the question; the chart is that of the study that says it."""
    first, *others = map(paragraph, findings.answers)
    studies = sorted(findings.studies, key=lambda study: study.name != findings.answered_by)
    run = next((study.run for study in studies if study.run is not None), None)
    beside = []
    if others:
        beside.append(Section("On what it hangs", (List(tuple(others)),)))
    limited = None if run is None else limit_of(run)
    if limited is not None:
        beside.append(limited)
    chart = None if run is None else hero(run)
    return Overview((first,), chart, tuple(beside))


def _written(text: str) -> Iterator[Block]:
    """Paragraphs and lists of a text: an empty line separates them, ``-`` begins an item."""
    for part in text.strip().split("\n\n"):
        lines = [line.strip() for line in part.splitlines() if line.strip()]
        if lines and all(line.startswith("- ") for line in lines):
            yield List(tuple(Paragraph(line[2:]) for line in lines))
        elif lines:
            yield Paragraph(" ".join(lines))


def _summary(findings: CampaignFindings[TrialFindings]) -> Iterator[Block]:
    yield List(tuple(map(paragraph, findings.summary)))
    studies = findings.studies
    verdicts = (
        Column(name, [_counted(study.verdicts.get(name, 0), name) for study in studies],  # type: ignore[call-overload]
               Role.NUMBER)
        for name in _VERDICTS
        if name != _SELDOM or any(name in study.verdicts for study in studies)
    )  # fmt: skip
    agreements = (
        Column(f"figures: {name}", [_counted(study.agreements.get(name, 0), name)  # type: ignore[call-overload]
                                    for study in studies], Role.NUMBER)
        for name in _AGREEMENTS
    )  # fmt: skip
    yield Table(
        (
            Column("test case", [Text(_title(study), link=f"result-{study.name}")
                                 for study in studies], Role.KEY),
            Column("state", [_state(study) for study in studies]),
            *verdicts,
            *agreements,
        ),
        title="One row a study: the claims of the source, and its figures.",
    )  # fmt: skip


def _about(findings: CampaignFindings[TrialFindings]) -> Iterator[Block]:
    """Which data it is made of, and the documents that it refers to."""
    campaign = findings.campaign
    yield Paragraph(
        f"Made by Concurve {campaign.version} of the stored trials of campaign {campaign.id}. Its "
        "version is that id: whoever makes it again of the same store gets the same figures, and "
        "another run is another campaign. It was not reviewed or released by anybody."
    )
    made = [(study.name, study.run.run) for study in findings.studies if study.run is not None]
    if made:
        columns = (
            Column("study", [name for name, _ in made], Role.KEY),
            Column("run", [run.id for _, run in made]),
            Column("begun", [fmt.moment(run.started) for _, run in made]),
            Column("state", [run.state for _, run in made]),
            Column("trials", [Number(str(run.trials), order=run.trials) for _, run in made],
                   Role.NUMBER),
        )  # fmt: skip
        yield Table(columns, title="One row a run that this document is made of.")
    references = [(item.id, item.says) for item in findings.texts.references]
    if references:
        yield Paragraph("It refers to:")
        yield Facts(tuple(references))


def _goals(findings: CampaignFindings[TrialFindings]) -> Iterator[Block]:
    """The goals, with the priority of each, the test cases that serve it and their verdicts."""
    goals = findings.texts.goals
    if not goals:
        return
    serving = [
        [
            study
            for study in findings.studies
            if study.test_case is not None and study.test_case.goal == goal.id
        ]
        for goal in goals
    ]
    columns = [
        Column("goal", [goal.id for goal in goals], Role.KEY),
        Column("what", [goal.says for goal in goals]),
        Column("priority", [goal.priority or Missing() for goal in goals]),
        Column("test cases", [", ".join(study.name for study in studies) or Missing()
                              for studies in serving]),
        Column("claims", [_verdicts_of(studies) for studies in serving]),
    ]  # fmt: skip
    yield Table(tuple(columns), title="One row a goal.", as_text=True)


def _verdicts_of(studies: list[StudyFindings[TrialFindings]]) -> Cell:
    sums = Counter[str]()
    for study in studies:
        for name, number in study.verdicts.items():
            sums[name] += number
    return ", ".join(f"{sums[name]} {name}" for name in _VERDICTS if sums[name]) or Missing()


def _measures(findings: CampaignFindings[TrialFindings]) -> Iterator[Block]:
    """What is read, and by what means in the source and here."""
    used = [item for item in findings.texts.measures if not item.left_out]
    if used:
        columns = (
            Column("indicator", [item.name for item in used], Role.KEY),
            Column("meaning", [item.meaning for item in used]),
            Column("read in the source by", [item.source or Missing() for item in used]),
            Column("read here by", [item.here or Missing() for item in used]),
        )
        yield Table(columns, title="One row an indicator.", as_text=True)
    for item in findings.texts.measures:
        if item.left_out:
            yield Paragraph(f"{item.meaning} {item.left_out}", lead=f"Not used: {item.name}.")


def _counted(number: int, name: str) -> Cell:
    if not number:
        return Missing()
    return Text(str(number), Tone.BAD) if name in _BAD else Number(str(number), order=number)


def _state(study: StudyFindings[TrialFindings]) -> Text:
    return Text(study.state, Tone.PLAIN if study.state == "complete" else Tone.BAD)


def _title(study: StudyFindings[TrialFindings]) -> str:
    """``Test case 1: Degree of scaling``."""
    case = study.test_case
    return f"{case.name}: {case.objective}" if case else f"{study.name}: {study.question}"


def _procedure(findings: CampaignFindings[TrialFindings]) -> Iterator[Block]:
    campaign, studies = findings.campaign, findings.studies
    yield from _written(findings.texts.procedure)
    yield Paragraph(PROTOCOL)
    yield Paragraph(COMPARED)
    yield Paragraph(f"Effort {campaign.effort}, seed {campaign.seed}. As it was run:")
    headings = ("cells", "blocks", "trials a cell", "precision", "redos a trial", "of the pilot",
                "allowed", "took", "trials", "rejected")  # fmt: skip
    rows = [_procedure_of(study) for study in studies]
    columns = (
        Column(title, [row[number] if row else Missing() for row in rows], Role.NUMBER)
        for number, title in enumerate(headings)
    )
    why = [_stopped(study) for study in studies]
    names = Column("study", [study.name for study in studies], Role.KEY)
    yield Table((names, *columns, Column("why cells stopped", why)), title="One row a study.")


def _procedure_of(study: StudyFindings[TrialFindings]) -> tuple[str, ...]:
    how = study.procedure
    if how is None:
        return ()
    return (
        str(how.cells),
        str(how.blocks),
        f"{how.repeats_min} to {how.repeats_max}",
        f"±{_share(how.precision)}",
        str(how.redo_max),
        _share(how.redo_share),
        fmt.duration(how.time_allowed_seconds),
        fmt.duration(how.duration_seconds),
        str(how.trials),
        str(how.rejected),
    )


def _stopped(study: StudyFindings[TrialFindings]) -> Cell:
    if study.procedure is None:
        return study.state
    stopped = study.procedure.stopped.items()
    return tuple(Text(f"{number} × {reason}") for reason, number in stopped)


def _share(value: float) -> str:
    return f"{words.in_percent(value, 3)} %"


def _case(study: StudyFindings[TrialFindings]) -> Section:
    case = study.test_case
    if case is None:
        return Section(study.name, (Paragraph(study.question),))
    return Section(case.name, (Facts(tuple(_described(case))),))


def _described(case: TestCase) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    yield "objective", case.objective
    for name, text in (("goal", case.goal), ("area", case.area)):
        if text:
            yield name, text
    for name in ("expected", "conditions", "indicators", "steps"):
        items: tuple[str, ...] = getattr(case, name)
        if items:
            yield name, items


def _results(findings: CampaignReport, numbers: _Numbers) -> Iterator[Section]:
    for study in findings.studies:
        yield Section(_title(study), tuple(_chapter(study, numbers)), f"result-{study.name}")


def _chapter(study: StudyFindings[Report], numbers: _Numbers) -> Iterator[Block]:
    """What the run of a study has, its tables and charts numbered."""
    if study.state != "complete":
        yield Paragraph(study.reason, Tone.WARNING, lead=f"{study.state.capitalize()}.")
    if study.run is None:
        return
    name = study.test_case.name if study.test_case else study.name
    for section in sections(study.run, in_campaign=True):
        if section is not None:
            yield from _numbered(section, name, numbers)
    trials = fmt.count(study.run.run.trials, "trial")
    yield Paragraph(f"Run {study.run.run.id}, {trials}. Again:", Tone.SOFT)
    yield Code(study.run.run.again)


def _numbered(section: Section, name: str, numbers: _Numbers) -> Iterator[Block]:
    """A section of a run, below the caption of its table instead of a heading."""
    inside = list(walk(section.blocks))
    title = f"{name}: {section.title[:1].lower()}{section.title[1:]}"
    if section.folded and section.summary:
        said = " ".join(filter(None, (f"{section.title}:", section.summary)))
        plain = msgspec.structs.replace(section, folded=False)
        yield Collapsible(said, tuple(_numbered(plain, name, numbers)))
    elif any(isinstance(block, Caption) for block in inside):
        yield from _with_numbers(section.blocks, name, numbers)
    elif any(isinstance(block, Table) for block in inside):
        yield numbers.caption(title)
        yield from _with_numbers(section.blocks, name, numbers)
    elif any(isinstance(block, Chart) for block in inside):
        yield from _with_numbers(section.blocks, name, numbers)
    else:
        items = sum(len(block.items) for block in inside if isinstance(block, List))
        summary = f"{section.title} ({items})" if items else section.title
        yield Collapsible(summary, section.blocks, items <= _SENTENCES_OPEN_MAX)


def _with_numbers(blocks: Iterable[Block], name: str, numbers: _Numbers) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Caption):
            yield numbers.caption(block.title, block.label)
        elif isinstance(block, Chart):
            yield numbers.figure(block, name)
        elif isinstance(block, Overview):
            chart = numbers.figure(block.chart, name) if block.chart else None
            yield msgspec.structs.replace(block, chart=chart)
        elif isinstance(block, (Collapsible, Section)):
            yield msgspec.structs.replace(
                block, blocks=tuple(_with_numbers(block.blocks, name, numbers))
            )
        else:
            yield block


def _deviations(findings: CampaignFindings[TrialFindings]) -> Iterator[Block]:
    yield from _written(findings.texts.deviations)
    found = findings.deviations
    if not found:
        yield Paragraph("None: every study ran as planned, and every trial was used.")
        return
    columns = (
        Column("study", [item.study or "all" for item in found], Role.KEY),
        Column("kind", [item.kind for item in found]),
        Column("what", [item.says for item in found]),
    )
    yield Table(columns, title="One row a deviation.")


def _glossary(findings: CampaignFindings[TrialFindings]) -> Iterator[Block]:
    if findings.glossary:
        yield Facts(tuple(findings.glossary.items()))


def _index(numbers: _Numbers) -> Iterator[Block]:
    yield Paragraph("Numbers are those of the source; N numbers what is new.", Tone.SOFT)
    for title, entries in (("Tables", numbers.tables), ("Figures", numbers.figures)):
        if entries:
            yield Caption(title)
            yield List(tuple(entries))
