"""A run as Markdown that GitHub renders: question, findings, table, rejects, machine, command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from concurve.findings.published import PublishedTable
from concurve.findings.run import Findings
from concurve.report import dependence
from concurve.report import format as fmt
from concurve.report.claims import ClaimRow, claim_rows
from concurve.report.explain.section import to_markdown as explained
from concurve.report.machine import facts
from concurve.report.published import heading, how, not_comparable, published_row
from concurve.report.scaling import expected_heading, scaling_rows, subject
from concurve.report.table import Column, Entry, Table, legend, table
from concurve.report.told import to_markdown as told

_REJECTS_LISTED_MAX = 50
MARKS = {"answer": "", "warning": "**Warning:** ", "note": ""}
# What GitHub would take for markup, links or references inside a line.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$@&!])")


def to_markdown(findings: Findings) -> str:
    """The whole report as one document."""
    contents = table(findings)
    run = findings.run
    return "\n".join(
        [
            f"# {text(findings.question or run.study)}",
            "",
            *_opening(findings),
            *_findings(findings),
            *_claims(findings),
            *_dependences(findings),
            *_published(findings),
            *_scaling(findings),
            *explained(findings.explanation),
            "## Figures",
            "",
            *figures(contents),
            "## What was rejected",
            "",
            *_rejects(findings),
            "## The machine",
            "",
            *grid(("", ""), [(text(name), text(value)) for name, value in facts(findings.machine)]),
            "",
            *_told(findings),
            "## Run it again",
            "",
            *code(run.again),
            "",
            f"Concurve {text(run.version)} · run {text(run.id)} · seed {run.seed}",
            "",
        ]
    )


def _opening(findings: Findings) -> Iterator[str]:
    run = findings.run
    took = f"{fmt.count(run.trials, 'trial')} in {fmt.duration(run.duration_seconds)}"
    source = [f"after {findings.source}"] if findings.source else []
    yield text(" · ".join([run.study, took, run.effort, run.started, *source]))
    yield ""
    if run.state != "complete":
        yield f"**{fmt.state(run.state)}.** {text(run.reason)}"
        yield ""


def _findings(findings: Findings) -> Iterator[str]:
    if not findings.sentences:
        return
    yield "## Findings"
    yield ""
    for item in findings.sentences:
        yield f"- {MARKS[item.kind]}{text(item.sentence)}"
    yield ""


def _claims(findings: Findings) -> Iterator[str]:
    if findings.claims:
        yield "## Claims of the source"
        yield ""
        yield from claims_table(claim_rows(findings))


def _dependences(findings: Findings) -> Iterator[str]:
    if findings.dependences:
        yield f"## {dependence.TITLE}"
        yield ""
        yield from dependence.to_markdown(findings)


def claims_table(claims: Iterable[ClaimRow]) -> Iterator[str]:
    """Claims with their verdicts, a line each; with what limits them where that is known."""
    listed = list(claims)
    limits = any(row.limit for row in listed)
    heading = ["verdict", "claim", "where", "measured", "asked for", "published"]
    rows = [
        [
            f"**{row.verdict}**",
            text(row.says),
            text(row.source),
            text("; ".join(filter(None, (row.figure or row.reason, row.doubt)))),
            text(row.threshold),
            text(row.published),
            *([text(row.limit)] if limits else []),
        ]
        for row in listed
    ]
    yield from grid([*heading, *(["what limits it"] if limits else [])], rows)
    yield ""


def _scaling(findings: Findings) -> Iterator[str]:
    if findings.scaling:
        yield "## Scaling models"
        yield ""
        yield from models(findings)


def models(findings: Findings) -> Iterator[str]:
    """The scaling models of a run: in sentences, and as a table where there are several."""
    rows = scaling_rows(findings)
    for row in (row for row in rows if row.told):
        place = f"**{text(row.group)}.** " if row.group else ""
        if row.answers:
            yield f"- {place}{text(' '.join(row.answers))}"
            place = ""
        for sentence in row.warnings:
            yield f"- {place}{MARKS['warning']}{text(sentence)}"
    yield ""
    if len(rows) > 1:
        yield from grid(
            ("cells", "model (weight)", "parameters", "peak N", text(expected_heading(findings))),
            [
                [text(part) for part in (r.group, r.model, r.parameters, r.peak, r.expected)]
                for r in rows
            ],
        )
        yield ""
    yield text(subject(findings))
    yield ""


def _told(findings: Findings) -> Iterator[str]:
    if findings.facts:
        yield "## What the program said"
        yield ""
        yield from told(findings)


def _published(findings: Findings) -> Iterator[str]:
    if not findings.published:
        return
    yield "## Published figures beside the new ones"
    yield ""
    for contents in findings.published:
        yield f"### {text(heading(contents))}"
        yield ""
        yield from published_table(contents)


def published_table(contents: PublishedTable) -> Iterator[str]:
    """A table of the source, a line a figure."""
    rows = [
        (
            text(row.row),
            text(row.column),
            text(row.printed),
            row.published or fmt.MISSING,
            row.ours or fmt.MISSING,
            f"**{row.verdict}**" if row.verdict == "differs" else row.verdict,
        )
        for row in map(published_row, contents.figures)
    ]
    heading_row = ("row", "column", "printed", "published", "ours", "verdict")
    yield from grid(heading_row, rows, (2, 3, 4))
    yield ""
    yield text(f"Published and ours: {how(contents)} {not_comparable(contents)}")
    yield ""


def figures(contents: Table) -> Iterator[str]:
    """The table of a run, a line a cell."""
    if contents.constant:
        yield f"Throughout: {text(fmt.setting(contents.constant))}"
        yield ""
    status = any(cell.status != "ok" for cell in contents.cells)
    heading = [
        *map(text, contents.factors),
        *(text(column.heading) for column in contents.columns),
        "trials",
        *(["status"] if status else []),
    ]
    rows = []
    for position, cell in enumerate(contents.cells):
        levels = [
            text(fmt.level(cell.parameters[name])) if name in cell.parameters else fmt.MISSING
            for name in contents.factors
        ]
        figures = [_figure(column, column.entries[position]) for column in contents.columns]
        remark = cell.note or cell.stop_reason if cell.status != "ok" else ""
        became = [text(f"{cell.status}: {remark}" if remark else cell.status)] if status else []
        rows.append((*levels, *figures, f"{cell.trials:,}", *became))
    right = range(len(contents.factors), len(heading) - (1 if status else 0))
    yield from grid(heading, rows, right)
    yield ""
    behind = legend(contents.columns)
    if behind:
        yield f"{behind}."
        yield ""


def _figure(column: Column, entry: Entry) -> str:
    if entry.shown is None:
        return fmt.MISSING
    return f"{entry.shown.value} {entry.shown.spread}".rstrip()


def _rejects(findings: Findings) -> Iterator[str]:
    if not findings.rejects:
        yield "Nothing: every trial was used."
        yield ""
        return
    causes = Counter(item.cause for item in findings.rejects if not item.used)
    if causes:
        yield ", ".join(f"{text(cause)}: {number}" for cause, number in causes.most_common())
        yield ""
    listed = findings.rejects[:_REJECTS_LISTED_MAX]
    yield from grid(
        ("cell", "block", "attempt", "cause", "detail", "used"),
        [
            (
                text(fmt.setting(item.parameters)),
                str(item.block + 1),
                str(item.attempt + 1),
                text(item.cause),
                text(item.detail),
                "yes" if item.used else "no",
            )
            for item in listed
        ],
    )
    if len(findings.rejects) > len(listed):
        yield ""
        yield f"and {len(findings.rejects) - len(listed):,} more"
    yield ""


def grid(
    heading: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()
) -> Iterator[str]:
    """A table; the columns numbered in ``right`` are aligned to the right."""
    ends = set(right)
    yield f"| {' | '.join(heading)} |"
    yield f"|{'|'.join('---:' if n in ends else '---' for n in range(len(heading)))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def code(command: str) -> Iterator[str]:
    """A fence longer than any run of backticks in the command."""
    longest = max((len(run) for run in re.findall(r"`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}sh"
    yield fmt.clean_lines(command)
    yield fence


def text(said: str) -> str:
    """Text that comes from outside, shown as it is."""
    return _SPECIAL.sub(r"\\\1", fmt.clean(said)).strip()
