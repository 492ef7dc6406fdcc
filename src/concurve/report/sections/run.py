"""The report of a run: the list of its sections, and those that are a few lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.findings.again import run_again
from concurve.findings.cells import FailureOutput
from concurve.findings.explanation import Explanation, Limit
from concurve.findings.run import Findings, Report
from concurve.findings.scaling import ScalingFinding
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
    once,
)
from concurve.report.sections import (
    assumed,
    best,
    claims,
    dependence,
    figures,
    limits,
    machine,
    overview,
    program,
    published,
    rejected,
    scaling,
)


class Topic(Enum):
    """What a brief report leaves out unless it is asked for."""

    FIGURES = "figures"
    CLAIMS = "claims"
    PUBLISHED = "published"
    MODELS = "models"
    MACHINE = "machine"
    REJECTED = "rejected"


ALL_TOPICS = frozenset(Topic)

#: So many cells may fit on a screen, with an answer.
SCREEN_CELLS = 24

#: What is said of a topic of which a run has nothing.
_NONE = {
    Topic.CLAIMS: "this study makes no claims.",
    Topic.PUBLISHED: "this study holds no published figures.",
    Topic.MODELS: "none is fitted: that takes a parameter that counts workers (--work, or work in "
    "[protocol]), with three numbers as levels or more.",
    Topic.REJECTED: "no trial was rejected, and none is in doubt.",
}


class Part(NamedTuple):
    """A section of a full report: what makes it (``None`` where the run has nothing of it), and
    whether the report of a campaign has it for each of its runs."""

    make: Callable[[Report], Section | None]
    in_campaign: bool = True


def _again(report: Report) -> Section:
    """How to run it again."""
    return Section("Run it again", (Code(report.run.again),), anchor="again")


#: The sections of a full report in their order.
FULL = (
    Part(overview.section),
    Part(figures.drawn),
    Part(limits.section),
    Part(figures.full),
    Part(claims.section),
    Part(assumed.section),
    Part(dependence.section),
    Part(published.section),
    Part(scaling.section),
    Part(program.section),
    Part(rejected.section, in_campaign=False),
    Part(machine.section, in_campaign=False),
    Part(_again, in_campaign=False),
)


def brief_sections(
    findings: Findings,
    models: Sequence[ScalingFinding],
    explanation: Explanation | None,
    topics: Collection[Topic],
    limits: Sequence[Limit],
    outputs: Sequence[FailureOutput] = (),
    room: overview.Room = overview.ROOMS[0],
    named: Collection[str] = (),
) -> Iterator[Section | None]:
    """The sections of a brief report in their order. They take the figures of the cells: nothing
    else is read for them, unless it was asked for. ``room`` is that for answers and warnings;
    ``named`` are the figures that are listed where they are a topic, by default all."""
    findings = rejected.quoted_once(findings, outputs)
    if Topic.REJECTED in topics:
        findings = rejected.told_below(findings)
    yield overview.answers(findings, limits, room)
    # All of them follow.
    counted = room.figures and Topic.FIGURES not in topics
    table = figures.brief(
        findings,
        terse=not room.doubts,
        counted=counted,
        legend=room.legend,
        apart=room.apart,
    )
    said = overview.warnings(
        findings,
        room,
        limits,
        all_of_them=set(topics) >= ALL_TOPICS,
        rejects_follow=Topic.REJECTED in topics,
    )
    found = _asked(findings, models, explanation, topics, limits, outputs, named)
    asked = [it for it in found if it]
    contents = _contents(asked) if set(topics) >= ALL_TOPICS else ()
    yield msgspec.structs.replace(table, blocks=(*table.blocks, *said, *contents))
    if Topic.REJECTED not in topics:
        yield from map(rejected.output, outputs)
    yield from asked
    if not topics:
        yield _more(findings, room)


def _contents(found: Sequence[Section]) -> Iterator[Paragraph]:
    """What follows the table, where it is more than a screen."""
    titles = [it.title if it.brief_title is None else it.brief_title for it in found]
    named = ", ".join(f"{title[0].lower()}{title[1:]}" for title in titles if title)
    if named:
        yield Paragraph(named, Tone.SOFT, lead="below")


def _asked(
    findings: Findings,
    models: Sequence[ScalingFinding],
    explanation: Explanation | None,
    topics: Collection[Topic],
    limits: Sequence[Limit],
    outputs: Sequence[FailureOutput],
    named: Collection[str],
) -> Iterator[Section | None]:
    """The topics that were asked for: what the run says, how sure it is, and last what is long and
    looked up."""
    if Topic.CLAIMS in topics:
        yield claims.brief(findings, explanation) or _none_of(Topic.CLAIMS, topics)
        yield assumed.section(findings)
        yield dependence.section(findings)
    if Topic.PUBLISHED in topics:
        yield published.section(findings) or _none_of(Topic.PUBLISHED, topics)
    if Topic.MODELS in topics:
        told = [limit.cell for limit in limits]
        yield scaling.brief(models, told) or _none_of(Topic.MODELS, topics)
    if Topic.REJECTED in topics:
        has_any = bool(findings.rejects)
        yield rejected.section(findings) if has_any else _none_of(Topic.REJECTED, topics)
        yield from map(rejected.output, outputs)
    if Topic.MACHINE in topics:
        yield machine.section(findings)
    if Topic.FIGURES in topics:
        yield figures.every(findings, named)


def _none_of(topic: Topic, topics: Collection[Topic]) -> Section | None:
    """That a run has nothing of a topic, for who asked for it by name."""
    if set(topics) >= ALL_TOPICS:
        return None
    return Section("", (Paragraph(_NONE[topic], Tone.SOFT, lead=f"--{topic.value}"),))


def _more(findings: Findings, room: overview.Room) -> Section:
    """What else there is, and how to read it. Claims are counted where a verdict was reached, and
    the other figures are named where the table does not."""
    there = []
    if findings.claims:
        is_decided = any(claim.verdict in ("supported", "refuted") for claim in findings.claims)
        counted = f" ({claims.counted(findings.claims)})" if is_decided else ""
        there.append(f"--claims{counted}")
    if findings.published:
        there.append("--published")
    there += [] if room.figures else ["--figures"]
    there += ["--rejected"] if findings.rejects and not room.rejects else []
    there += ["--models"] if findings.can_have_models else []
    there.append("--all")
    text = f"concurve show {findings.run.id} {', '.join(there)}"
    more = [Paragraph(text, Tone.SOFT, lead="more")]
    command = best.decisive_command(findings.best, findings.run.id)
    if command and room.figures:
        more.append(Paragraph(command, Tone.SOFT, lead="more trials"))
    return Section("", tuple(more))


def run_document(report: Report) -> Document:
    """The full report of a run."""
    return _document(report, sections(report), Detail.FULL)


def brief_run_document(
    findings: Findings,
    models: Sequence[ScalingFinding] = (),
    explanation: Explanation | None = None,
    topics: Collection[Topic] = (),
    limits: Sequence[Limit] = (),
    outputs: Sequence[FailureOutput] = (),
    named: Collection[str] = (),
) -> Document:
    """The brief report of a run, with the topics that were asked for; for these the scaling models
    and what limits the cells of its claims. ``limits`` explain the cells that a reader is told of
    first; where they are not given, ``explanation`` does. ``outputs`` has what programs had written
    that failed; ``named`` are the figures that are listed where they are a topic, by default
    all."""
    if set(topics) == {Topic.FIGURES}:
        return _figures_alone(findings, named)
    limits = limits or overview.limited(findings, explanation)

    def made(room: overview.Room) -> Document:
        found = brief_sections(findings, models, explanation, topics, limits, outputs, room, named)
        return _document(findings, found, Detail.BRIEF)

    # More cells do not fit anyway.
    rooms = overview.ROOMS[:1] if topics or len(findings.cells) > SCREEN_CELLS else overview.ROOMS
    shorter: Document | None = None
    for room in reversed(rooms):
        shorter = msgspec.structs.replace(made(room), shorter=shorter)
    assert shorter is not None
    return shorter


def _figures_alone(findings: Findings, named: Collection[str]) -> Document:
    """The list of figures under one line: who asks for it has seen the answer."""
    run = findings.run
    took = fmt.count(run.trials, "trial")
    of = f"Figures of {run.study} · {run.id} · {took}"
    title = of if run.state == "complete" else f"{of} · {run.state}"
    return Document(title=title, blocks=(figures.every(findings, named),), version=run.version)


#: The reason of a cell that got no more trials for want of time.
_ALLOWANCE = "time allowance"

#: It is said of so many resumptions when they were.
_RESUMED_NAMED_MAX = 3


def glance_document(report: Report, limits: Sequence[Limit]) -> Document:
    """What a notebook shows of a run: the answer, its chart, what limits it, how sure it is, and
    the first figures."""
    found = overview.with_limits(report, limits), figures.first(report)
    return _document(report, found, Detail.BRIEF)


def sections(report: Report, *, in_campaign: bool = False) -> Iterator[Section | None]:
    """The sections of a run in a full report, or in that of a campaign."""
    return (part.make(report) for part in FULL if part.in_campaign or not in_campaign)


def _document(findings: Findings, found: Iterable[Section | None], detail: Detail) -> Document:
    run = findings.run
    took = f"{fmt.count(run.trials, 'trial')} in {fmt.duration(run.duration_seconds)}"
    if any(cell.stop_reason == _ALLOWANCE for cell in findings.cells):
        took += " (time allowance used up)"
    facts = [Fact(run.study, Detail.BRIEF), Fact(run.id, Detail.BRIEF), Fact(took),
             Fact(run.effort), Fact(fmt.moment(run.started), Detail.FULL)]  # fmt: skip
    if constant := figures.throughout(findings):
        facts.append(Fact(constant, Detail.BRIEF))
    if run.waiting is not None and run.waiting.waited_seconds:
        waited = fmt.duration(run.waiting.waited_seconds)
        facts.append(Fact(f"waited {waited} for a quiet machine"))
    if run.resumed_after:
        facts.append(Fact(_resumed(run.resumed_after)))
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
    again = run_again(
        run.over_hosts,
        run.waiting,
        run.strangers,
        is_stolen=run.is_stolen,
        constant=run.constant,
        autogroups=run.autogroups,
    )
    return once(at_detail(document, detail), [again])


def _resumed(after: Sequence[int]) -> str:
    """That a run was stopped and went on, after these numbers of trials; of many only how often."""
    if len(after) > _RESUMED_NAMED_MAX:
        return f"resumed {len(after)} times"
    *first, last = after
    return f"resumed after {words.listed([*map(str, first), fmt.count(last, 'trial')])}"


def _head(findings: Findings) -> Iterator[Block]:
    if findings.run.state != "complete":
        lead = fmt.state(findings.run.state) + ("" if findings.run.reason else ".")
        yield Paragraph(findings.run.reason, Tone.WARNING, lead=lead, detail=Detail.FULL)
