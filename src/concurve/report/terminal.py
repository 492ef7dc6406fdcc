"""A run on the terminal: header, table, findings. Never wider than the terminal.

To a file or a pipe the same lines go without colours, in fixed columns separated by two or
more blanks, so that grep, awk and cut read them.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from concurve.findings import Findings
from concurve.report import dependence
from concurve.report import format as fmt
from concurve.report.claims import claim_rows
from concurve.report.letters import cut, fit_encoding
from concurve.report.prose import wrapped
from concurve.report.published import beside, counts, heading, judged
from concurve.report.scaling import scaling_rows
from concurve.report.table import Column, Table, legend, table

_GAP = "  "
_WIDTH_PLAIN = 80
_WIDTH_MIN = 20
_ASCII_ROOM = 8
# Factors may take this share of the width before their levels are cut short.
_FACTOR_SHARE = 0.6
_FACTOR_WIDTH_MIN = 6
# Longer tables repeat their heading below, and set groups of rows apart.
_ROWS_LONG = 24
# Of the indicators that there is no room for, so many are named.
_NAMES_MAX = 12

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


def print_lines(make: Callable[[int], Iterable[Text]], file: TextIO | None = None) -> None:
    """Print the lines that ``make`` gives for a width, in letters that the stream can carry."""
    out = console(file or sys.stdout)
    # Without ± and its like the same text is longer: a sign takes two letters.
    width = out.width if fit_encoding("±", out.file) == "±" else out.width - _ASCII_ROOM
    for line in make(max(width, _WIDTH_MIN)):
        text = fit_encoding(line.plain, out.file)
        if out.is_terminal:
            out.print(Text(text, line.style), soft_wrap=True, highlight=False)
        else:
            # The same letters: styling them for nobody takes longer than all else here.
            out.file.write(f"{text}\n")
    out.file.flush()


def console(file: TextIO) -> Console:
    """A console on a stream: colours on a terminal only, 80 columns elsewhere."""
    terminal = file.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    width = None if file.isatty() or "COLUMNS" in os.environ else _WIDTH_PLAIN
    return Console(
        file=file,
        force_terminal=terminal,
        no_color=True if "NO_COLOR" in os.environ else None,
        color_system="auto" if terminal else None,
        width=width,
        emoji=False,
        markup=False,
        highlight=False,
    )


def lines(findings: Findings, width: int, report: str | None = None) -> Iterator[Text]:
    """The lines of a run, none wider than ``width`` cells."""
    width = max(width, _WIDTH_MIN)
    contents = table(findings)
    yield from _header(findings, contents, width)
    yield Text()
    shown = yield from _table(contents, width)
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


def _table(contents: Table, width: int) -> Generator[Text, None, list[Column]]:
    """The lines of the table; returns the indicators that it has room for."""
    factors, hidden = _factor_columns(contents, width)
    status = _status_column(contents)
    used = _total([*factors, *status]) if factors or status else 0
    shown, dropped = _fitting(contents, width, used)
    columns = [*factors, *(_indicator_column(column) for column in shown), *status]
    if not columns:
        yield from wrapped(Text("no figures yet", "dim"), width)
        return []
    widths = [_width(column) for column in columns]
    heading, *rows = (_row(row, widths) for row in zip(*columns, strict=True))
    rule = _GAP.join("-" * size for size in widths)
    yield Text(heading.rstrip(), "bold")
    yield Text(rule, "dim")
    yield from _body(contents, rows)
    if len(rows) > _ROWS_LONG:
        yield Text(rule, "dim")
        yield Text(heading.rstrip(), "bold")
    if hidden:
        yield from wrapped(Text(f"factors left out here: {', '.join(hidden)}", "dim"), width)
    if dropped:
        names = [fmt.clean(column.name) for column in dropped]
        more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
        some = ", ".join(names[:_NAMES_MAX])
        hint = f"left out here: {some}{more} (a wider terminal or --export-csv shows them)"
        yield from wrapped(Text(hint, "dim"), width)
    return shown


def _factor_columns(contents: Table, width: int) -> tuple[list[list[str]], list[str]]:
    """Columns of the factors that vary, cut short where they are too wide, and those left out."""
    columns = [
        [
            fmt.clean(name),
            *(
                fmt.level(c.parameters[name]) if name in c.parameters else ""
                for c in contents.cells
            ),
        ]
        for name in contents.factors
    ]
    columns = [_right(c) if all(map(_is_number, c[1:])) else c for c in columns]
    primary = _width(_indicator_column(contents.columns[0])) + len(_GAP) if contents.columns else 0
    allowance = min(int(width * _FACTOR_SHARE), width - primary)
    while columns and _total(columns) > allowance:
        widest = max(columns, key=_width)
        size = _width(widest) - 1
        if size < _FACTOR_WIDTH_MIN:
            break
        widest[:] = [cut(text, size) for text in widest]
    left_out: list[str] = []
    while len(columns) > 1 and _total(columns) > allowance:
        left_out.insert(0, columns.pop()[0])
    return columns, left_out


def _fitting(contents: Table, width: int, used: int) -> tuple[list[Column], list[Column]]:
    """The indicators that fit beside the factors, most wanted first, and the others."""
    columns = [column for column in contents.columns if column.has_figures]
    for position, column in enumerate(columns):
        used += _width(_indicator_column(column)) + (len(_GAP) if used else 0)
        if used > width:
            return columns[:position], columns[position:]
    return columns, []


def _indicator_column(column: Column) -> list[str]:
    """Heading and entries, the decimal points and the intervals below one another."""
    shown = [entry.shown for entry in column.entries]
    fraction = max((len(_split(item.value)[1]) for item in shown if item), default=0)
    values = [
        item.value + " " * (fraction - len(_split(item.value)[1])) if item else "" for item in shown
    ]
    value_width = max(map(len, values), default=0)
    spreads = [item.spread if item else "" for item in shown]
    spread_width = max(map(len, spreads), default=0)
    cells = []
    for item, value, spread in zip(shown, values, spreads, strict=True):
        text = value.rjust(value_width) if item else fmt.MISSING.rjust(value_width - fraction)
        if spread_width:
            text += f" {spread.ljust(spread_width)}"
        cells.append(text.ljust(value_width))
    return _right([_short(column.heading), *cells])


def _short(heading: str) -> str:
    """The two long headings in the words that a narrow table has room for."""
    for long, short in (("involuntary", "invol."), ("voluntary", "vol.")):
        heading = heading.replace(long, short)
    return heading


def _split(number: str) -> tuple[str, str]:
    """Whole part and the rest with its point."""
    whole, point, rest = number.partition(".")
    return whole, point + rest


def _row(texts: Iterable[str], widths: list[int]) -> str:
    """One line of the table; figures and their headings end right, words start left."""
    return _GAP.join(
        text + " " * (size - cell_len(text)) for text, size in zip(texts, widths, strict=True)
    )


def _body(contents: Table, rows: list[str]) -> Iterator[Text]:
    grouped = len(rows) > _ROWS_LONG and len(contents.factors) > 1
    before: object = None
    for cell, row in zip(contents.cells, rows, strict=True):
        first = cell.parameters.get(contents.factors[0]) if grouped else None
        if grouped and before is not None and first != before:
            yield Text()
        before = first
        yield Text(row.rstrip(), "" if cell.status == "ok" else "yellow")


def _status_column(contents: Table) -> list[list[str]]:
    """A column for what became of the cells, unless all is well."""
    statuses = [cell.status for cell in contents.cells]
    return [] if set(statuses) <= {"ok"} else [["status", *statuses]]


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


def _right(column: list[str]) -> list[str]:
    """The texts of a column of figures, padded so that they end below one another."""
    size = _width(column)
    return [" " * (size - cell_len(text)) + text for text in column]


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "", 1).isdigit()


def _width(column: Iterable[str]) -> int:
    return max(cell_len(text) for text in column)


def _total(columns: list[list[str]]) -> int:
    return sum(_width(column) + len(_GAP) for column in columns) - len(_GAP)
