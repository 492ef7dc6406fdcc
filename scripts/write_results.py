"""Write docs/results/: what a store has of each document, a page and three pictures each.

    write_results.py [--db STORE] [--effort EFFORT] [--to FOLDER] [NAME …]

Of each packaged study of a document, or of those of these names, the newest run that is complete at
this effort (normal), or the newest campaign that has ended: studies that could not run on its
machine are named. It has all that the effort has: each study, all levels, the numbers of trials,
the study's own programs, on one machine. What the store does not have so is named, with what the
newest lacks and the command that measures it; its page stays as it is, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from concurve import words
from concurve.analysis.campaign import campaign_findings
from concurve.assemble import report_of
from concurve.definition.campaign import Campaign, at_effort
from concurve.definition.catalogue import find
from concurve.definition.study import Study
from concurve.errors import ConcurveError
from concurve.exports import write
from concurve.findings.campaign import CampaignReport
from concurve.findings.run import Finding, Report
from concurve.host.machine import allowed_cpus
from concurve.report import format as fmt
from concurve.report.charts.image import to_svg
from concurve.report.charts.series import TABLE_BELOW
from concurve.report.document import (
    Block,
    Chart,
    Code,
    Collapsible,
    Column,
    Document,
    Fact,
    Facts,
    List,
    Missing,
    Number,
    Paragraph,
    Role,
    Section,
    Table,
    walk,
)
from concurve.report.markdown import to_markdown
from concurve.report.sections import assumed, claims
from concurve.report.sections.machine import facts
from concurve.report.sections.overview import paragraph
from concurve.report.sections.run import run_document
from concurve.store import Store
from concurve.store.campaign_head import CampaignHead, decode_campaign
from concurve.store.rows import CampaignRow, RunRow
from concurve.store.run_head import RunHead, decode_head
from concurve.terms import Level

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"

#: The packaged studies and campaigns of each document, by its number.
DOCUMENTS = {
    "enqueue-io-threads": "000",
    "kernel-mode": "001",
    "java-threads": "002",
    "thread-scaling": "002",
    "io-schedulers": "003",
    "tpcb-multicore": "004",
}

#: The heading before which a reader is told where the claims are explained.
VERDICTS = "Verdicts"
PICTURES = 3

#: States of campaigns that will not go on by themselves; an incomplete one lacks studies.
ENDED = ("complete", "incomplete")

#: What a reader compares with another machine.
MACHINE = (
    "cpu_model", "topology", "smt", "governor", "boost", "memory_bytes", "virtualisation", "kernel",
    "distribution", "cpus_allowed",
)  # fmt: skip


class Result(NamedTuple):
    """What a page is made of: a run, or a campaign with its runs by the names of the studies."""

    name: str
    title: str
    question: str
    id: str
    effort: str
    started: str
    version: str
    trials: int
    seconds: float
    again: str
    machine: dict[str, Any]
    answers: tuple[Finding, ...]
    runs: tuple[tuple[str, Report], ...]
    missing: tuple[tuple[str, str], ...] = ()
    """Studies that are not complete, with their state and the reason."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages; 1 if any could not be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(DOCUMENTS))
    parser.add_argument("--db", help="the store; by default that of concurve")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="FOLDER")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in DOCUMENTS]
    if unknown:
        parser.error(f"{unknown[0]!r} is no study of a document: {', '.join(DOCUMENTS)}")
    options.to.mkdir(parents=True, exist_ok=True)
    lacking = 0
    try:
        store = Store(options.db)
        for name in options.names or DOCUMENTS:
            found = result(store, name, options.effort)
            if isinstance(found, str):
                lacking += 1
                print(
                    f"write_results: nothing complete of {name} at effort {options.effort} in "
                    f"{store.shown()}{found}: concurve run {name} --effort {options.effort}",
                    file=sys.stderr,
                )
            else:
                print(*write_page(found, options.to), sep="\n")
    except ConcurveError as error:
        print(f"write_results: {error}", file=sys.stderr)
        return 1
    return 1 if lacking else 0


# -- from the store ---------------------------------------------------------------------------


def result(store: Store, name: str, effort: str) -> Result | str:
    """The newest ended campaign, or complete run, of a name at an effort, that has all of it; else
    why the newest one is none, in brackets, or nothing."""
    whole = packaged(name)
    reasons = []
    for campaign in reversed(store.campaigns(name)):
        head = decode_campaign(campaign)
        if campaign.state not in ENDED or head.effort != effort:
            continue
        reason = lacking_of_campaign(head, whole)
        if not reason:
            return of_campaign(campaign_today(store, campaign, whole))
        reasons.append(f" ({campaign.id} {reason})")
    for run in reversed(store.runs(name)):
        run_head = decode_head(run)
        if run.state != "complete" or run_head.effort != effort:
            continue
        reason = lacking_of_run(run_head, whole)
        if not reason:
            assert isinstance(whole, Study)
            return of_run(report_of(store, run_today(run, whole)))
        reasons.append(f" ({run.id} {reason})")
    return reasons[0] if reasons else ""


def packaged(name: str) -> Study | Campaign:
    """What is measured under a name today."""
    return find(name, len(allowed_cpus()))


def campaign_today(store: Store, row: CampaignRow, whole: Study | Campaign) -> CampaignReport:
    """A stored campaign that has all of the packaged one, as that would be reported today."""
    head = decode_campaign(row)
    assert isinstance(whole, Campaign)
    campaign = at_effort(whole, head.effort)
    packaged = {member.name: member.study for member in campaign.studies}
    members = tuple(
        msgspec.structs.replace(member, study=study_today(member.study, packaged[member.name]))
        if member.name in packaged  # it may be packaged no longer
        else member
        for member in head.campaign.studies
    )
    head = msgspec.structs.replace(
        head, campaign=msgspec.structs.replace(campaign, studies=members)
    )
    names = {member.run: member.name for member in store.members(row.id)}

    def report(run: RunRow) -> Report:
        whole = packaged.get(names[run.id])
        return report_of(store, run if whole is None else run_today(run, whole))

    return campaign_findings(store, row._replace(head=msgspec.json.encode(head)), report)


def run_today(row: RunRow, whole: Study) -> RunRow:
    """A stored run that has all cells of the packaged study, with what that says today."""
    head = decode_head(row)
    head = msgspec.structs.replace(head, study=study_today(head.study, whole))
    return row._replace(head=msgspec.json.encode(head))


def study_today(own: Study, whole: Study) -> Study:
    """The stored study with the texts, the claims and the published figures of the packaged one:
    stored trials are judged by the claims as they stand, which may have been mended since."""
    return msgspec.structs.replace(
        own,
        title=whole.title,
        question=whole.question,
        source=whole.source,
        test_case=whole.test_case,
        claims=whole.claims,
        published=whole.published,
    )


def lacking_of_campaign(head: CampaignHead, whole: Study | Campaign) -> str:
    """What a stored campaign lacks of the packaged one at its effort; empty if nothing."""
    if head.hosts is not None:
        return "ran over hosts"
    assert isinstance(whole, Campaign)
    own = {member.name: member.study for member in head.campaign.studies}
    asked = {member.name: member.study for member in at_effort(whole, head.effort).studies}
    without = [name for name in asked if name not in own]
    if without:
        return f"is without {words.listed(without)}"
    lacking = (lacking_of_study(own[name], asked[name], head.effort, {}) for name in asked)
    return next(
        (f"has {what} in {name}" for name, what in zip(asked, lacking, strict=True) if what), ""
    )


def lacking_of_run(head: RunHead, whole: Study | Campaign) -> str:
    """What a stored run lacks of the packaged study at its effort; empty if nothing."""
    if head.hosts is not None:
        return "ran over hosts"
    assert isinstance(whole, Study)
    left_out: dict[str, set[Level]] = {}
    for item in head.left_out:
        left_out.setdefault(item.factor, set()).add(item.level)
    what = lacking_of_study(head.study, whole, head.effort, left_out)
    return f"has {what}" if what else ""


def lacking_of_study(
    own: Study, whole: Study, effort: str, left_out: Mapping[str, Collection[Level]]
) -> str:
    """What is other in a stored study than in the packaged one; empty if nothing is. Levels that
    the machine lacked are left out of the stored one."""
    levels = {factor.name: set(factor.levels) for factor in own.factors_at(effort)}
    for factor in whole.factors_at(effort):
        if levels.get(factor.name, set()) != set(factor.levels) - set(
            left_out.get(factor.name, ())
        ):
            return f"other levels of {factor.name}"
    if _repeats(own, effort) != _repeats(whole, effort):
        return "other numbers of trials"
    if _programs(own) != _programs(whole):
        return "another program"
    return ""


def _repeats(study: Study, effort: str) -> tuple[int, int]:
    rules = study.effort(effort).rules
    return rules.repeats_min, rules.repeats_max


def _programs(study: Study) -> list[tuple[str, str | None]]:
    return [(role.name, role.program) for role in study.roles]


def of_campaign(report: CampaignReport) -> Result:
    """A campaign; first the study that answers its question."""
    info = report.campaign
    studies = sorted(report.studies, key=lambda study: study.name != report.answered_by)
    return Result(
        name=info.name,
        title=info.title or info.question,
        question=info.question,
        id=info.id,
        effort=info.effort,
        started=info.started,
        version=info.version,
        trials=report.trials,
        seconds=report.duration_seconds,
        again=info.again,
        machine=report.machine,
        answers=report.answers,
        runs=tuple((study.name, study.run) for study in studies if study.run is not None),
        missing=tuple(
            (study.name, f"{study.state}: {study.reason}")
            for study in studies
            if study.state != "complete"
        ),
    )


def of_run(report: Report) -> Result:
    """A run that is no part of a campaign."""
    info = report.run
    return Result(
        name=info.study,
        title=report.question,
        question="",
        id=info.id,
        effort=info.effort,
        started=info.started,
        version=info.version,
        trials=info.trials,
        seconds=info.duration_seconds,
        again=info.again,
        machine=report.machine,
        answers=tuple(item for item in report.sentences if item.kind == "answer"),
        runs=((info.study, report),),
    )


# -- to a page --------------------------------------------------------------------------------


def write_page(found: Result, folder: Path) -> list[Path]:
    """The page and its pictures; the paths written. Pictures of an older page go."""
    pictures = list(pictures_of(found))
    names = {chart.name: f"{chart.name}.svg" for chart in pictures}
    written = []
    for chart in pictures:
        write(folder / names[chart.name], to_svg(chart).encode())
        written.append(folder / names[chart.name])
    for number in range(len(pictures) + 1, PICTURES + 1):
        (folder / f"{found.name}-{number}.svg").unlink(missing_ok=True)
    page = folder / f"{found.name}.md"
    text = to_markdown(document(found, pictures), names).rstrip("\n")
    text = text.replace(f"## {VERDICTS}\n", f"## {VERDICTS}\n\n{more(found)}\n", 1)
    write(page, f"{text}\n".encode())
    return [page, *written]


def more(found: Result) -> str:
    """Where a reader goes on, as Markdown: documents have links inside themselves alone."""
    place = "../coverage-of-documents.md"
    return (
        "What is asked, what a verdict says and what it does not, and where our machine differs "
        f"from that of the document: [{found.name}](../studies/{found.name}.md). "
        f"Where each statement of document {DOCUMENTS[found.name]} is: [coverage]({place})."
    )


def pictures_of(found: Result) -> Iterator[Chart]:
    """The first chart of each run, then the second of each, and so on: three in all."""
    each = [[(name, chart) for chart in charts_of(report)] for name, report in found.runs]
    in_turn = chain.from_iterable(zip_longest(*each))
    wanted = islice((item for item in in_turn if item is not None), PICTURES)
    for number, (name, chart) in enumerate(wanted, 1):
        title = chart.title if len(found.runs) == 1 else f"{name}: {chart.title}"
        alternative = chart.alternative.removesuffix(TABLE_BELOW).rstrip()  # it has no such table
        yield msgspec.structs.replace(
            chart, name=f"{found.name}-{number}", title=title, alternative=alternative
        )


def charts_of(report: Report) -> list[Chart]:
    """The charts of a run: of two of one name, the first, which marks the settings to run. What the
    verdicts on a simulation hang on comes first."""
    section = assumed.section(report)
    hang_on = [] if section is None else walk(section.blocks)
    found: dict[str, Chart] = {}
    charts = (block for block in hang_on if isinstance(block, Chart))
    for chart in chain(charts, run_document(report).charts()):
        found.setdefault(chart.name, chart)
    return list(found.values())


def document(found: Result, pictures: Sequence[Chart]) -> Document:
    """The page: the answer, the pictures, the verdicts, the machine, the command."""
    sections = (
        Section("The answer", tuple(answer(found))),
        Section("Pictures", tuple(pictures)),
        Section(VERDICTS, tuple(verdicts(found))),
        Section("The machine", (Facts(tuple(machine(found))),)),
        Section("Again", tuple(again(found))),
    )
    took = f"{fmt.count(found.trials, 'trial')} in {fmt.duration(found.seconds)}"
    begun, version = fmt.moment(found.started), f"Concurve {found.version}"
    said = (f"effort {found.effort}", begun, took, version)
    return Document(
        title=found.title,
        kicker=f"document {DOCUMENTS[found.name]}, {found.name}",
        facts=tuple(map(Fact, said)),
        head=(Paragraph(found.question),) if found.question else (),
        blocks=tuple(section for section in sections if section.blocks),
    )


def answer(found: Result) -> Iterator[Block]:
    """What answers the question; of a campaign its first sentence does, and what the other studies
    and the claims say to it is folded."""
    first = 1 if found.question else len(found.answers)
    folded = [item for item in found.answers[first:] if item.kind != "warning"]
    shown = [item for item in found.answers if item not in folded]
    yield List(tuple(map(paragraph, shown)))
    if folded:
        yield Collapsible("On what it hangs", (List(tuple(map(paragraph, folded))),))


def verdicts(found: Result) -> Iterator[Block]:
    """How many claims of each study have which verdict, and each claim."""
    counts = [Counter[str](claim.verdict for claim in report.claims) for _, report in found.runs]
    kinds = [kind for kind in claims.TONES if any(count[kind] for count in counts)]
    columns = (
        Column("study", [name for name, _ in found.runs], Role.KEY),
        *(
            Column(
                kind,
                [
                    Number(str(count[kind]), order=count[kind]) if count[kind] else Missing()
                    for count in counts
                ],
                Role.NUMBER,
            )
            for kind in kinds
        ),
    )
    if kinds:
        yield Paragraph(in_all(sum(counts, Counter())))
        yield Table(columns, title="One row a study.")
    for name, reason in found.missing:
        yield Paragraph(reason, lead=name)
    for name, report in found.runs:
        section = claims.brief(report)
        if section is not None:
            yield msgspec.structs.replace(section, title=name)


def in_all(counts: Counter[str]) -> str:
    """How many verdicts of all studies there are, and how many of those that could be tested here
    are open."""
    tested = counts.total() - counts["not testable here"]
    open_ = counts["undecided"]
    said = f"{open_} are undecided ({100 * open_ / tested:.0f} %)" if open_ else "none is undecided"
    verdicts = fmt.count(counts.total(), "verdict")
    beyond = counts["cannot be decided"]
    more = f", and {beyond} cannot be decided by the model ({100 * beyond / tested:.0f} %)"
    return (
        f"{verdicts}, of which this machine can test {tested}; of these {said}"
        f"{more if beyond else ''}."
    )


def machine(found: Result) -> Iterator[tuple[str, str]]:
    """What the figures are of."""
    known = {name: found.machine[name] for name in MACHINE if name in found.machine}
    yield from facts(known)


def again(found: Result) -> Iterator[Block]:
    """The commands of the measurement and of this page."""
    yield Code(found.again)
    yield Paragraph(
        f"The page is written from the stored trials of {found.id}, by the claims as they stand "
        "when it is written:"
    )
    yield Code(f".venv/bin/python scripts/write_results.py {found.name} --effort {found.effort}")


if __name__ == "__main__":
    sys.exit(main())
