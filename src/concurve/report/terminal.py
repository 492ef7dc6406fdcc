"""A document on the terminal, never wider than it is but for paths and rows that are searched.

To a file or a pipe the same lines go without colours, in fixed columns separated by two or
more blanks, so that grep, awk and cut read them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TextIO

import msgspec
from rich.cells import cell_len

from concurve.report import format as fmt
from concurve.report.console import (
    WIDTH_MIN,
    Line,
    as_printed,
    cut,
    has_height,
    print_lines,
    wrapped,
)
from concurve.report.document import (
    Bar,
    Block,
    Caption,
    Cell,
    Chart,
    Code,
    Collapsible,
    Column,
    Document,
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
)

_STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.SOFT: "dim",
    Tone.WARNING: "yellow",
    Tone.GOOD: "green",
    Tone.BAD: "red",
}
#: Lines that fit on a screen, beside the one that names the whole report.
SCREEN = 29

_GAP = "  "
_INDENT = "  "
# What a row is called by.
_HEADS = (Role.KEY, Role.NAME)
# Texts in the columns of levels are cut if these columns take more than this share of the width.
_KEY_SHARE = 0.6
_KEY_WIDTH_MIN = 6
#: A row in words has the columns that are wanted more than this.
_WANTED_IN_WORDS = 4
_BAR_WIDTH, _BAR_WIDTH_MIN = 24, 10
# Longer tables repeat their heading at the end, and separate groups of rows.
_ROWS_LONG = 24
# At most this many of the columns that do not fit are named.
_NAMES_MAX = 12


def show(document: Document, file: TextIO | None = None, report: str | None = None) -> None:
    """Print a document, in a file the whole of it; ``report`` is the path of the whole report that
    was written, if any."""
    shown = document if has_height(file) else msgspec.structs.replace(document, shorter=None)
    print_lines(lambda width: [*lines(shown, width), *report_line(report)], file)


def lines(document: Document, width: int) -> list[Line]:
    """The lines of a document, none wider than ``width`` cells but for a path and the rows of a
    table that is ``whole``; of a shorter one, if it has one and does not fit on a screen."""
    found = list(_lines(document, max(width, WIDTH_MIN)))
    if document.shorter is not None and len(found) > SCREEN:
        return lines(document.shorter, width)
    return found


def _lines(document: Document, width: int) -> Iterator[Line]:
    yield from wrapped(Line(fmt.clean(document.title), "bold"), width)
    facts = " · ".join(fact.text for fact in document.facts)
    yield from wrapped(Line(fmt.clean(facts), "dim"), width)
    for block in (*document.head, *document.blocks):
        yield from _block(block, width)


def report_line(report: str | None) -> list[Line]:
    """The line that names the whole report; none without one. One line whatever its length: a path
    that is broken cannot be opened."""
    return [Line(f"report: {fmt.clean(report)}")] if report else []


def _block(block: Block, width: int, indent: str = "") -> Iterator[Line]:
    say = partial(wrapped, width=width, indent=indent)
    match block:
        case Section():
            inside = list(_blocks(block.blocks, width, indent))
            if inside:
                yield Line()
                yield from say(Line(f"{_lower(block.title)}:", "bold")) if block.title else ()
                yield from inside
        case Paragraph() if not block.of_charts:
            yield from _paragraph(block, width, indent)
        case List():
            for item in block.items:
                said = Paragraph(item.text, item.tone) if isinstance(item, Text) else item
                yield from _paragraph(said, width, indent)
        case Facts():
            yield from _facts(block, width, indent)
        case Table():
            yield from _as_text(block, width) if block.as_text else _grid(block, width)
        case Chart() if not block.in_table:
            yield from say(Line(fmt.clean(f"{block.label} {block.alternative}".strip()), "dim"))
        case Code():
            text = fmt.clean(block.text.expandtabs())
            yield from as_printed(Line(text), width, indent)
        case Caption():
            yield from say(Line(fmt.clean(f"{block.label} {block.title}".strip())))
        case Overview():
            yield from _blocks(block.blocks, width, indent)
        case Collapsible():
            yield from say(Line(f"{fmt.clean(block.summary)}:"))
            yield from _blocks(block.blocks, width, indent + _INDENT)


def _blocks(blocks: Iterable[Block], width: int, indent: str) -> Iterator[Line]:
    for block in blocks:
        yield from _block(block, width, indent)


def _paragraph(item: Paragraph, width: int, indent: str) -> Iterator[Line]:
    mark = "! " if item.tone is Tone.WARNING else ""
    lead = f"{item.lead}{item.after_lead} " if item.lead else ""
    line = Line(fmt.clean(f"{mark}{lead}{item.text}"), _STYLES[item.tone])
    yield from wrapped(line, width, indent)


def _facts(block: Facts, width: int, indent: str) -> Iterator[Line]:
    for name, value in block.pairs:
        shown = value if isinstance(value, str) else "; ".join(value)
        yield from wrapped(Line(fmt.clean(f"{name}: {shown}")), width, indent)


def _lower(title: str) -> str:
    """As it stands after others: without a capital, if it does not begin with an abbreviation."""
    title = fmt.clean(title)
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


# -- tables -----------------------------------------------------------------------------------


def _as_text(table: Table, width: int) -> Iterator[Line]:
    """Each row as a sentence: its key, then the other entries with their headings as words."""
    names: dict[int, str] = {}
    for tone, row in table.rows():
        columns = list(zip(table.columns, map(_plain, row), strict=True))
        for place, (column, text) in enumerate(columns):
            if column.role is Role.NAME and not text:
                columns[place] = column, names.get(place, "")
            names[place] = columns[place][1]
        head = ": ".join(text for column, text in columns if column.role in _HEADS and text)
        rest = ", ".join(
            f"{column.short or column.title} {text} {column.unit}".strip()
            for column, text in columns
            if column.role not in _HEADS and text not in ("", fmt.MISSING)
        )
        together = f"{head}: {rest}" if head and rest else head or rest
        if cell_len(together) <= width:
            yield Line(together, _STYLES[tone])
        else:
            yield from wrapped(Line(head, _STYLES[tone]), width)
            yield from wrapped(Line(rest, "dim"), width, _INDENT)


@dataclass
class _Drawn:
    """A column as texts of equal width, the heading first."""

    column: Column
    texts: list[str]
    is_right: bool = False

    def __post_init__(self) -> None:
        if self.is_right:
            self.texts = _right(self.texts)
        self.width = max(map(cell_len, self.texts))

    def shorten(self) -> bool:
        """Remove a character from the longest texts; ``False`` if they are at their minimum."""
        size = self.width - 1
        if size < _KEY_WIDTH_MIN:
            return False
        self.texts = [cut(text.strip(), size) for text in self.texts]
        self.__post_init__()
        return True


def _grid(table: Table, width: int) -> Iterator[Line]:
    shown, keys_left_out, left_out = _whole(table) if table.whole else _fitting(table, width)
    if not shown or not table.length:
        yield from wrapped(Line("no figures yet", "dim"), width)
        return
    if _total(shown) > width and not table.whole:
        # In words there is room for the most wanted columns.
        further = [
            it for it in table.columns if it.role not in _HEADS and it.wanted >= _WANTED_IN_WORDS
        ]
        kept = tuple(it for it in table.columns if it not in further)
        yield from _as_text(msgspec.structs.replace(table, columns=kept), width)
        others = [fmt.clean(it.name) for it in further if it.name]
        for text in _left_out(others, width, table) if others else ():
            yield from wrapped(Line(text, "dim"), width)
        return
    yield from _ruled(table, shown, width)
    below = _below(table, left_out, width)
    if below:
        left_out = [column for column in left_out if column not in [it.column for it in below]]
        yield Line()
        yield from _ruled(table, below, width)
        shown = [*shown, *below]
    if keys_left_out:
        names = ", ".join(item.column.title for item in keys_left_out)
        yield from wrapped(Line(fmt.clean(f"factors left out here: {names}"), "dim"), width)
    named = [fmt.clean(column.name) for column in left_out if column.name]
    if named:
        for text in _left_out(named, width, table):
            yield from wrapped(Line(text, "dim"), width)
    legend = table.legend([item.column for item in shown]) if table.legend else ""
    yield from wrapped(Line(fmt.clean(legend), "dim"), width)


def _ruled(table: Table, shown: Sequence[_Drawn], width: int) -> Iterator[Line]:
    """Columns side by side under their headings, and what the letters of bars are."""
    sizes = [item.width for item in shown]
    heading, *rows = (
        _GAP.join(
            text + " " * (size - cell_len(text)) for text, size in zip(row, sizes, strict=True)
        ).rstrip()
        for row in zip(*(item.texts for item in shown), strict=True)
    )
    rule = _GAP.join("-" * size for size in sizes)
    yield Line(heading, "bold")
    yield Line(rule, "dim")
    yield from _body(table, rows)
    if len(rows) > _ROWS_LONG:
        yield Line(rule, "dim")
        yield Line(heading, "bold")
    for item in shown:
        if item.column.role is Role.BAR:
            yield from wrapped(Line(_legend(item.column.cells), "dim"), width)


def _below(table: Table, left_out: Sequence[Column], width: int) -> list[_Drawn]:
    """The keys, and the columns that a reader misses most of those that have no room, as a table
    of its own; empty without such columns."""
    missed = [column for column in left_out if table.length <= column.below]
    if not missed:
        return []
    keys = [column for column in table.columns if column.role is Role.KEY]
    shown, _, _ = _fitting(msgspec.structs.replace(table, columns=(*keys, *missed)), width)
    return shown if _total(shown) <= width else []


def _left_out(names: Sequence[str], width: int, table: Table) -> list[str]:
    """``not shown: efficiency and 45 more (how to see them)``: on one line, with as many names as
    it has room for, none of a terse table, of which nothing is said where another line says how to
    see them. That stands on a line of its own where there is no room."""
    if table.terse and not table.more:
        return []
    how = f" ({table.more})" if table.more else ""
    for some in range(0 if table.terse else min(len(names), _NAMES_MAX), 0, -1):
        more = f" and {len(names) - some} more" if some < len(names) else ""
        text = f"not shown: {', '.join(names[:some])}{more}{how}"
        if cell_len(text) <= width:
            return [text]
    text = f"{len(names)} more figures"
    if cell_len(text + how) <= width:
        return [text + how]
    return [f"{text}:", table.more] if table.more else [text]


def _body(table: Table, rows: Sequence[str]) -> Iterator[Line]:
    keys = [column for column in table.columns if column.role is Role.KEY]
    is_grouped = len(rows) > _ROWS_LONG and len(keys) > 1
    tones = table.tones or (Tone.PLAIN,) * len(rows)
    for number, (row, tone) in enumerate(zip(rows, tones, strict=True)):
        if is_grouped and number and keys[0].cells[number] != keys[0].cells[number - 1]:
            yield Line()
        yield Line(row, _STYLES[tone])


def _whole(table: Table) -> tuple[list[_Drawn], list[_Drawn], list[Column]]:
    """All columns with entries, however wide they are together."""
    return [_drawn(column) for column in table.columns if column.has_entries], [], []


def _fitting(table: Table, width: int) -> tuple[list[_Drawn], list[_Drawn], list[Column]]:
    """The columns that fit, and the keys and the other columns that do not.

    Keys are cut if they take most of the width. Of the optional columns the most important come
    first; the first one that does not fit ends the list, but for others of its kind.
    """
    keys = [_drawn(column) for column in table.columns if column.role is Role.KEY]
    others = [column for column in table.columns if column.role is not Role.KEY]
    optional = sorted((c for c in others if c.wanted), key=lambda column: column.wanted)
    optional = [column for column in optional if column.has_entries]
    # What the table is about: it stays, a single heading cut where it must be.
    about = [column for column in others if not column.wanted]
    if not about:
        about, optional = optional[:1], optional[1:]
    always = [_drawn(column) for column in about]
    if len(always) == 1:
        room = max(width - _total(keys) - len(_GAP), int(width * (1 - _KEY_SHARE)))
        always = [_narrow(always[0], room)]
    least = _total(always)
    allowed = min(int(width * _KEY_SHARE), width - least - len(_GAP)) if least else width
    while keys and _total(keys) > max(allowed, 0):
        if not max(keys, key=lambda item: item.width).shorten():
            break
    keys_left_out: list[_Drawn] = []
    while len(keys) > 1 and _total(keys) > max(allowed, 0):
        keys_left_out.insert(0, keys.pop())
    shown = [*keys, *always]
    taken: list[_Drawn] = []
    left_out: list[Column] = []
    for column in optional:
        left = width - _total([*shown, *taken]) - (len(_GAP) if shown or taken else 0)
        is_tried = not left_out or (column.kind and column.kind == left_out[0].kind)
        drawn = _drawn(column, min(left, _BAR_WIDTH)) if is_tried else None
        if drawn is None or not _has_room(drawn, left):
            left_out.append(column)
        else:
            taken.append(drawn)
    place = {id(column): number for number, column in enumerate(table.columns)}
    return sorted([*shown, *taken], key=lambda d: place[id(d.column)]), keys_left_out, left_out


def _has_room(drawn: _Drawn, left: int) -> bool:
    return drawn.width <= left and (drawn.column.role is not Role.BAR or left >= _BAR_WIDTH_MIN)


def _narrow(drawn: _Drawn, size: int) -> _Drawn:
    """A column no wider than its entries, or than ``size`` if they are narrower: its heading is
    cut, and keeps its unit."""
    if drawn.width <= size:
        return drawn
    heading, *texts = drawn.texts
    left = min((cell_len(text) - cell_len(text.lstrip()) for text in texts), default=0)
    texts = [text[left:].rstrip() for text in texts]
    room = max([size, *map(cell_len, texts)])
    title, bracket, unit = heading.strip().rpartition(" (")
    title, unit = (title, bracket + unit) if title else (unit, "")
    texts = [text + " " * (max(map(cell_len, texts)) - cell_len(text)) for text in texts]
    return _Drawn(
        drawn.column,
        [cut(title, max(room - cell_len(unit), _KEY_WIDTH_MIN)) + unit, *texts],
        is_right=True,
    )


def _total(columns: Sequence[_Drawn]) -> int:
    return sum(item.width for item in columns) + len(_GAP) * max(len(columns) - 1, 0)


def _drawn(column: Column, size: int = _BAR_WIDTH) -> _Drawn:
    title = fmt.clean(column.short or column.title)
    title = f"{title} ({fmt.clean(column.unit)})" if column.unit else title
    if column.role is Role.BAR:
        bars = [bar(cell, max(size, 1)) for cell in column.cells if isinstance(cell, Bar)]
        return _Drawn(column, [title, *bars])
    if column.role is Role.NUMBER:
        return _Drawn(column, [title, *_numbers(column.cells)], is_right=True)
    texts = [_plain(cell) for cell in column.cells]
    is_right = column.role in _HEADS and all(map(_is_number, texts))
    return _Drawn(column, [title, *texts], is_right)


def _numbers(cells: Sequence[Cell]) -> list[str]:
    """Entries with aligned decimal points and intervals."""
    found = [cell if isinstance(cell, Number) else None for cell in cells]
    fraction = max((len(_fraction(item.value)) for item in found if item), default=0)
    values = [
        item.value + " " * (fraction - len(_fraction(item.value))) if item else "" for item in found
    ]
    size = max(map(len, values), default=0)
    spread = max((len(item.after) for item in found if item), default=0)
    texts = []
    for cell, item, value in zip(cells, found, values, strict=True):
        text = value.rjust(size) if item else _plain(cell).rjust(size - fraction)
        if spread:
            text += f" {(item.after if item else '').ljust(spread)}"
        texts.append(text.ljust(size))
    return texts


def _fraction(number: str) -> str:
    """What follows the whole part, with its point."""
    _, point, rest = number.partition(".")
    return point + rest


def _right(texts: list[str]) -> list[str]:
    size = max(map(cell_len, texts))
    return [" " * (size - cell_len(text)) + text for text in texts]


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "", 1).isdigit()


def _plain(cell: Cell) -> str:
    match cell:
        case str():
            return fmt.clean(cell)
        case Text():
            return fmt.clean(cell.text)
        case Number():
            return f"{cell.value} {cell.after}".rstrip()
        case Missing():
            return fmt.MISSING
        case Bar():
            return ", ".join(f"{part.name} {fmt.percent(part.share)}" for part in cell.parts)
        case _:
            return " ".join(fmt.clean(item.text) for item in cell)


# -- bars -------------------------------------------------------------------------------------


def bar(shares: Bar, size: int) -> str:
    """Shares as letters, by the largest-remainder method; a part without a letter is left out."""
    exact = [part.share * size for part in shares.parts]
    counts = [math.floor(value) for value in exact]
    left = round(sum(exact)) - sum(counts)
    by_remainder = sorted(range(len(exact)), key=lambda number: counts[number] - exact[number])
    for number in by_remainder[: max(left, 0)]:
        counts[number] += 1
    return "".join(part.letter * n for part, n in zip(shares.parts, counts, strict=True))


def _legend(cells: Iterable[Cell]) -> str:
    """What the letters of the bars are."""
    parts = [part for cell in cells if isinstance(cell, Bar) for part in cell.parts]
    names = {part.name: part.letter for part in parts if part.share >= 0.005}
    return ", ".join(f"{letter} {name}" for name, letter in names.items())
