"""The table of a run in fixed columns, as wide as the terminal at most."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from rich.cells import cell_len
from rich.text import Text

from concurve.report import format as fmt
from concurve.report.letters import cut
from concurve.report.prose import wrapped
from concurve.report.table import Column, Table

_GAP = "  "
# Factors may take this share of the width before their levels are cut short.
_FACTOR_SHARE = 0.6
_FACTOR_WIDTH_MIN = 6
# Longer tables repeat their heading below, and set groups of rows apart.
_ROWS_LONG = 24
# Of the indicators that there is no room for, so many are named.
_NAMES_MAX = 12


def table_lines(contents: Table, width: int) -> Generator[Text, None, list[Column]]:
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
