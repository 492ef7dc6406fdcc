"""A document as Markdown that GitHub renders. A chart stands there as a picture; without one, its
figures as a table, or its words where no table has them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping

from concurve.report import format as fmt
from concurve.report.document import (
    Bar,
    Block,
    Caption,
    Cell,
    Chart,
    Code,
    Collapsible,
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

# Characters that GitHub would read as markup, links or references inside a line.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$@&!])")
_BOLD = {Tone.STRONG, Tone.GOOD, Tone.BAD, Tone.WARNING}


def to_markdown(document: Document, pictures: Mapping[str, str] | None = None) -> str:
    """The whole document. ``pictures`` are the files of charts by the names of the charts, relative
    to it; of other charts the figures or the words stand there."""
    shown = pictures or {}
    parts = [f"# {_text(document.title)}"]
    facts = [document.kicker, *(fact.text for fact in document.facts)]
    parts.append(_text(" · ".join(filter(None, facts))))
    parts += _blocks(document.head, 1, shown)
    number = 0
    for block in document.blocks:
        if document.has_contents and isinstance(block, Section):
            number += 1
            parts.append(f"## {number}. {_text(block.title)}")
            parts += _blocks(block.blocks, 2, shown)
        else:
            parts += _block(block, 1, shown)
    parts.append(_text(document.footer))
    return "\n\n".join(part for part in parts if part) + "\n"


def _blocks(blocks: Iterable[Block], depth: int, pictures: Mapping[str, str]) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, depth, pictures)


def _block(block: Block, depth: int, pictures: Mapping[str, str]) -> Iterator[str]:
    """The parts of a block, to be separated by empty lines."""
    match block:
        case Section():
            yield from _section(block, depth, pictures)
        case Paragraph() if block.of_charts and not pictures:
            pass
        case Paragraph():
            yield _paragraph(block)
        case List():
            yield "\n".join(f"- {_item(item)}" for item in block.items)
        case Facts():
            yield "\n".join(_fact(name, value) for name, value in block.pairs)
        case Table():
            yield _table(block)
        case Chart():
            yield from _chart(block, pictures)
        case Code():
            yield _code(block.text)
        case Caption():
            yield (
                f"**{_text(block.label)}** {_text(block.title)}"
                if block.label
                else (f"**{_text(block.title)}**")
            )
        case Overview():
            yield from _overview(block, depth, pictures)
        case Collapsible():
            inside = _blocks(block.blocks, depth, pictures)
            yield from _details(_html(block.summary), inside, block.is_open)


def _chart(chart: Chart, pictures: Mapping[str, str]) -> Iterator[str]:
    """Its picture; else its words, where no table says the same."""
    if chart.name in pictures:
        yield f"**{_text(chart.title)}**"
        yield f"![{_text(chart.alternative)}]({pictures[chart.name]})"
    elif not chart.in_table:
        said = chart.alternative
        named = "" if said.startswith(chart.title) else f"{chart.title}."
        lead = f"{chart.label} {named}".strip()
        yield f"**{_text(lead)}** {_text(said)}" if lead else _text(said)


def _overview(block: Overview, depth: int, pictures: Mapping[str, str]) -> Iterator[str]:
    """The answers, their chart or its figures, and what stands beside it."""
    yield from _blocks(block.answers, depth, pictures)
    is_pictured = block.chart is not None and block.chart.name in pictures
    shown = block.chart if is_pictured or block.figures is None else block.figures
    yield from _blocks([shown] if shown else [], depth, pictures)
    yield from _blocks(block.beside, depth, pictures)


def _section(block: Section, depth: int, pictures: Mapping[str, str]) -> Iterator[str]:
    """A heading and what stands below it; nothing where that would be nothing."""
    inside = list(_blocks(block.blocks, depth + 1, pictures))
    if not inside:
        return
    if block.folded and not block.is_main and depth == 1:
        yield from _details(f"<b>{_html(block.title)}</b> {_html(block.summary)}".rstrip(), inside)
        return
    if block.title:
        yield f"{'#' * (depth + 1)} {_text(block.title)}"
    yield from inside


def _details(summary: str, inside: Iterable[str], is_open: bool = False) -> Iterator[str]:
    """What a reader opens; ``markdown`` lets MkDocs read it as GitHub does."""
    yield f"<details markdown{' open' if is_open else ''}>\n<summary>{summary}</summary>"
    yield from inside
    yield "</details>"


def _paragraph(item: Paragraph) -> str:
    lead = f"**{_text(item.lead)}**{item.after_lead} " if item.lead else ""
    mark = "**Warning:** " if item.tone is Tone.WARNING and not lead else ""
    return f"{lead}{mark}{_text(item.text)}"


def _item(item: Paragraph | Text) -> str:
    return _text(item.text) if isinstance(item, Text) else _paragraph(item)


def _fact(name: str, value: str | tuple[str, ...]) -> str:
    if isinstance(value, str):
        return f"- **{_text(name)}**: {_text(value)}"
    return "\n".join([f"- **{_text(name)}**:", *(f"  - {_text(item)}" for item in value)])


def _table(table: Table) -> str:
    headings = [
        _text(f"{column.title} ({column.unit})" if column.unit else column.title)
        for column in table.columns
    ]
    ends = ["---:" if column.role is Role.NUMBER else "---" for column in table.columns]
    rows = (f"| {' | '.join(map(_cell, row))} |" for _, row in table.rows())
    legend = table.legend(table.columns) if table.legend else ""
    below = ["", _text(legend)] if legend else []
    return "\n".join([f"| {' | '.join(headings)} |", f"|{'|'.join(ends)}|", *rows, *below])


def _cell(cell: Cell) -> str:
    match cell:
        case str():
            return _text(cell)
        case Text():
            shown = _text(cell.text)
            return f"**{shown}**" if shown and cell.tone in _BOLD else shown
        case Number():
            return _text(f"{cell.value} {cell.after}")
        case Missing():
            return fmt.MISSING
        case Bar():
            return ", ".join(f"{part.name} {fmt.percent(part.share)}" for part in cell.parts)
        case _:
            return "; ".join(_cell(item) for item in cell if item.text)


def _code(command: str) -> str:
    """A fence longer than any run of backticks in the command."""
    longest = max((len(run) for run in re.findall(r"`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{fmt.clean_lines(command)}\n{fence}"


def _html(said: str) -> str:
    return html.escape(fmt.clean(said)).strip()


def _text(said: str) -> str:
    """External text, escaped so that it is shown literally."""
    return _SPECIAL.sub(r"\\\1", fmt.clean(said)).strip()
