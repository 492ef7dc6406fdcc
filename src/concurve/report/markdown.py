"""A run as Markdown that GitHub renders: question, findings, table, rejects, machine, command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from concurve.findings import Findings
from concurve.report import format as fmt
from concurve.report.claims import claim_rows
from concurve.report.machine import facts
from concurve.report.table import Column, Entry, Table, table

_REJECTS_LISTED_MAX = 50
_MARKS = {"answer": "", "warning": "**Warning:** ", "note": ""}
# What GitHub would take for markup, links or references inside a line.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$@&!])")


def to_markdown(findings: Findings) -> str:
    """The whole report as one document."""
    contents = table(findings)
    run = findings.run
    return "\n".join(
        [
            f"# {_text(findings.question or run.study)}",
            "",
            *_opening(findings),
            *_findings(findings),
            *_claims(findings),
            "## Figures",
            "",
            *_figures(contents),
            "## What was rejected",
            "",
            *_rejects(findings),
            "## The machine",
            "",
            *_grid(
                ("", ""), [(_text(name), _text(value)) for name, value in facts(findings.machine)]
            ),
            "",
            "## Run it again",
            "",
            *_code(run.again),
            "",
            f"Concurve {_text(run.version)} · run {_text(run.id)} · seed {run.seed}",
            "",
        ]
    )


def _opening(findings: Findings) -> Iterator[str]:
    run = findings.run
    took = f"{fmt.count(run.trials, 'trial')} in {fmt.duration(run.duration_seconds)}"
    source = [f"after {findings.source}"] if findings.source else []
    yield _text(" · ".join([run.study, took, run.effort, run.started, *source]))
    yield ""
    if run.state != "complete":
        yield f"**This run is {run.state}.** {_text(run.reason)}"
        yield ""


def _findings(findings: Findings) -> Iterator[str]:
    if not findings.sentences:
        return
    yield "## Findings"
    yield ""
    for item in findings.sentences:
        yield f"- {_MARKS[item.kind]}{_text(item.sentence)}"
    yield ""


def _claims(findings: Findings) -> Iterator[str]:
    if not findings.claims:
        return
    yield "## Claims of the source"
    yield ""
    yield "| verdict | claim | where | measured | asked for | published |"
    yield "|---|---|---|---|---|---|"
    for row in claim_rows(findings):
        cells = (
            f"**{row.verdict}**",
            _text(row.says),
            _text(row.source),
            _text(row.figure or row.reason),
            _text(row.threshold),
            _text(row.published),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _figures(contents: Table) -> Iterator[str]:
    if contents.constant:
        yield f"Throughout: {_text(fmt.setting(contents.constant))}"
        yield ""
    status = any(cell.status != "ok" for cell in contents.cells)
    heading = [
        *map(_text, contents.factors),
        *(_text(column.heading) for column in contents.columns),
        "trials",
        *(["status"] if status else []),
    ]
    rows = []
    for position, cell in enumerate(contents.cells):
        levels = [
            _text(fmt.level(cell.parameters[name])) if name in cell.parameters else fmt.MISSING
            for name in contents.factors
        ]
        figures = [_figure(column, column.entries[position]) for column in contents.columns]
        remark = cell.note or cell.stop_reason if cell.status != "ok" else ""
        became = [_text(f"{cell.status}: {remark}" if remark else cell.status)] if status else []
        rows.append((*levels, *figures, f"{cell.trials:,}", *became))
    right = range(len(contents.factors), len(heading) - (1 if status else 0))
    yield from _grid(heading, rows, right)
    yield ""
    if contents.confidence:
        yield f"± is half the width of the {contents.confidence} interval."
        yield ""


def _figure(column: Column, entry: Entry) -> str:
    if entry.shown is None:
        return fmt.MISSING
    return f"{entry.shown.value} ± {entry.shown.half}" if entry.shown.half else entry.shown.value


def _rejects(findings: Findings) -> Iterator[str]:
    if not findings.rejects:
        yield "Nothing: every trial was used."
        yield ""
        return
    causes = Counter(item.cause for item in findings.rejects if not item.used)
    if causes:
        yield ", ".join(f"{_text(cause)}: {number}" for cause, number in causes.most_common())
        yield ""
    listed = findings.rejects[:_REJECTS_LISTED_MAX]
    yield from _grid(
        ("cell", "block", "attempt", "cause", "detail", "used"),
        [
            (
                _text(fmt.setting(item.parameters)),
                str(item.block + 1),
                str(item.attempt + 1),
                _text(item.cause),
                _text(item.detail),
                "yes" if item.used else "no",
            )
            for item in listed
        ],
    )
    if len(findings.rejects) > len(listed):
        yield ""
        yield f"and {len(findings.rejects) - len(listed):,} more"
    yield ""


def _grid(
    heading: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()
) -> Iterator[str]:
    """A table; the columns numbered in ``right`` are aligned to the right."""
    ends = set(right)
    yield f"| {' | '.join(heading)} |"
    yield f"|{'|'.join('---:' if n in ends else '---' for n in range(len(heading)))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _code(command: str) -> Iterator[str]:
    """A fence longer than any run of backticks in the command."""
    longest = max((len(run) for run in re.findall(r"`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}sh"
    yield fmt.clean_lines(command)
    yield fence


def _text(text: str) -> str:
    """Text that comes from outside, shown as it is."""
    return _SPECIAL.sub(r"\\\1", fmt.clean(text)).strip()
