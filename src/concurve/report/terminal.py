"""A run on the terminal: header, table, findings. Never wider than the terminal.

To a file or a pipe the same lines go without colours, in fixed columns separated by two or
more blanks, so that grep, awk and cut read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TextIO

from rich.text import Text

from concurve.findings.run import Findings
from concurve.report import dependence
from concurve.report import format as fmt
from concurve.report.claims import claim_rows
from concurve.report.console import WIDTH_MIN, print_lines
from concurve.report.prose import wrapped
from concurve.report.published import beside, counts, heading, judged
from concurve.report.scaling import scaling_rows
from concurve.report.table import Column, Table, legend, table
from concurve.report.terminal_table import table_lines

_VERDICTS = {
    "supported": "green",
    "refuted": "red",
    "undecided": "yellow",
    "not testable here": "dim",
}
_AGREEMENTS = {"agrees": "green", "differs": "red", "undecided": "yellow"}
_MARKS = {"answer": ("", ""), "warning": ("! ", "yellow"), "note": ("", "dim")}


def show(findings: Findings, file: TextIO | None = None, report: str | None = None) -> None:
    """Print a run; ``report`` is the path of the report that was written, if one was."""
    print_lines(lambda width: lines(findings, width, report), file)


def lines(findings: Findings, width: int, report: str | None = None) -> Iterator[Text]:
    """The lines of a run, none wider than ``width`` cells."""
    width = max(width, WIDTH_MIN)
    contents = table(findings)
    yield from _header(findings, contents, width)
    yield Text()
    shown = yield from table_lines(contents, width)
    yield from _remarks(contents, width)
    yield from _legend(shown, width)
    if findings.sentences or findings.rejects or findings.claims:
        yield Text()
    yield from _sentences(findings, width)
    yield from _claims(findings, width)
    yield from dependence.lines(findings, width)
    yield from _scaling(findings, width)
    yield from _published(findings, width)
    yield from _rejects(findings, width)
    yield from _closing(findings, report, width)


def _header(findings: Findings, contents: Table, width: int) -> Iterator[Text]:
    run = findings.run
    yield from wrapped(Text(fmt.clean(findings.question or run.study), "bold"), width)
    took = f"{fmt.count(run.trials, 'trial')} in {fmt.duration(run.duration_seconds)}"
    facts = [run.study, run.id, took, run.effort]
    if run.state != "complete":
        facts.append(run.state)
    yield from wrapped(Text(fmt.clean(" · ".join(facts)), "dim"), width)
    if contents.constant:
        yield from wrapped(Text(f"throughout: {fmt.setting(contents.constant)}", "dim"), width)


def _remarks(contents: Table, width: int) -> Iterator[Text]:
    """What happened to cells that are not well, the same remark once."""
    settings: dict[str, list[str]] = {}
    for cell in contents.cells:
        if cell.status != "ok" and (cell.note or cell.stop_reason):
            remark = f"{cell.status}: {cell.note or cell.stop_reason}"
            settings.setdefault(remark, []).append(fmt.setting(cell.parameters))
    for remark, where in settings.items():
        more = f" and {len(where) - 3} more" if len(where) > 3 else ""
        text = f"{remark} ({'; '.join(where[:3])}{more})"
        yield from wrapped(Text(fmt.clean(text), "yellow"), width)


def _legend(shown: Iterable[Column], width: int) -> Iterator[Text]:
    yield from wrapped(Text(legend(shown), "dim"), width)


def _sentences(findings: Findings, width: int) -> Iterator[Text]:
    for item in findings.sentences:
        mark, style = _MARKS[item.kind]
        yield from wrapped(Text(f"{mark}{fmt.clean(item.sentence)}", style), width)
    if findings.run.state != "complete" and findings.run.reason:
        yield from wrapped(
            Text(f"! {findings.run.state}: {fmt.clean(findings.run.reason)}", "yellow"), width
        )


def _claims(findings: Findings, width: int) -> Iterator[Text]:
    if findings.claims:
        yield Text("claims of the source:")
    for row in claim_rows(findings):
        yield from wrapped(Text(f"{row.verdict}: {row.says}", _VERDICTS[row.verdict]), width)
        yield from wrapped(Text(row.evidence, "dim"), width, indent="  ")


def _published(findings: Findings, width: int) -> Iterator[Text]:
    if findings.published:
        yield Text("published figures, relative to their base:")
    for contents in findings.published:
        rows, reasons = judged(contents.figures), beside(contents.figures)
        told = counts(contents.counts())
        # Where nothing is compared for one reason, a line is enough.
        alone = next(iter(reasons)) if not rows and len(reasons) == 1 else ""
        parts = [heading(contents), told, alone]
        yield from wrapped(Text(": ".join(filter(None, parts)), "dim" if alone else ""), width)
        for row in rows:
            text = f"{row.verdict}: {row.row}, {row.column}: {row.evidence}"
            yield from wrapped(Text(text, _AGREEMENTS[row.verdict]), width, indent="  ")
        for reason, number in reasons.items() if not alone else ():
            text = f"{fmt.count(number, 'figure')} not comparable: {reason}"
            yield from wrapped(Text(text, "dim"), width, indent="  ")


def _scaling(findings: Findings, width: int) -> Iterator[Text]:
    rows = scaling_rows(findings)
    if rows:
        yield Text("scaling models:")
    for row in rows:
        if row.group:
            yield from wrapped(Text(row.group, "bold"), width, indent="  ")
        if row.answers:
            yield from wrapped(Text(fmt.clean(" ".join(row.answers))), width, indent="  ")
        for sentence in row.warnings:
            yield from wrapped(Text(f"! {fmt.clean(sentence)}", "yellow"), width, indent="  ")


def _rejects(findings: Findings, width: int) -> Iterator[Text]:
    redone = Counter(item.cause for item in findings.rejects if not item.used)
    doubted = Counter(item.cause for item in findings.rejects if item.used)
    for counter, what in ((redone, "rejected"), (doubted, "used with a doubt")):
        if counter:
            causes = ", ".join(f"{fmt.clean(cause)} {n}" for cause, n in counter.most_common())
            text = f"{fmt.count(counter.total(), 'trial')} {what}: {causes}"
            yield from wrapped(Text(text, "yellow"), width)


def _closing(findings: Findings, report: str | None, width: int) -> Iterator[Text]:
    if report:
        # One line whatever its length: a path that is broken cannot be opened.
        yield Text()
        yield Text(f"report: {fmt.clean(report)}")
