"""The parts of a report: sections, paragraphs, tables and charts, as frozen data.

A builder in :mod:`concurve.report.sections` makes them of findings, once; the renderers
(:mod:`~concurve.report.terminal`, :mod:`~concurve.report.markdown`, :mod:`~concurve.report.html`)
show them and know nothing else. Texts are plain: a renderer takes control characters out and
escapes what its format would read as markup. What takes long to make and many views leave out (the
entries of a column, a chart) is a function, called when a view first reads it.

A block with a :class:`Detail` is meant for documents of that detail only; one without stands in
all of them. :func:`at_detail` leaves the others out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum, auto
from functools import cached_property
from typing import Any, TypeAlias

import msgspec


class Detail(Enum):
    """How much a document says: ``BRIEF`` fits a terminal after a run, ``FULL`` is a report."""

    BRIEF = auto()
    FULL = auto()


class Tone(Enum):
    """What a text means to its reader; each renderer has its own way to show it."""

    PLAIN = "plain"
    STRONG = "strong"
    """An answer to the question of the study."""
    SOFT = "soft"
    """A remark or a legend that explains other content."""
    WARNING = "warning"
    GOOD = "good"
    BAD = "bad"


class Role(Enum):
    """What a column holds."""

    KEY = auto()
    """The key of a row, such as the level of a factor."""
    NAME = auto()
    """The name of a row, which no view cuts or leaves out; empty for that of the row above."""
    TEXT = auto()
    NUMBER = auto()
    BAR = auto()


# -- cells ------------------------------------------------------------------------------------


class Text(msgspec.Struct, frozen=True):
    """A text with its meaning; ``link`` is the anchor of a place in the same document, ``hint`` an
    explanation on demand."""

    text: str
    tone: Tone = Tone.PLAIN
    link: str = ""
    hint: str = ""


class Number(msgspec.Struct, frozen=True):
    """A figure as text: ``spread`` follows the value (``± 0.03``), ``span`` is the interval from
    end to end. ``order`` is the figure itself, by which a table is sorted. ``is_skewed``: the
    spread is the interval, since the value is not near its middle. ``mark`` follows both, such as
    ``?`` for a figure in doubt; the legend of the table explains it."""

    value: str
    spread: str = ""
    span: str = ""
    order: float | None = None
    is_skewed: bool = False
    mark: str = ""

    @property
    def after(self) -> str:
        """What follows the value: the spread and the mark."""
        return f"{self.spread} {self.mark}".strip()


class Missing(msgspec.Struct, frozen=True):
    """A missing figure, with the reason if it is known."""

    reason: str = ""


class Part(msgspec.Struct, frozen=True):
    """A part of a bar: the letter that draws it without colours, its name, its share."""

    letter: str
    name: str
    share: float


class Bar(msgspec.Struct, frozen=True):
    """A bar: shares of a whole, side by side."""

    parts: tuple[Part, ...]


Cell: TypeAlias = str | Text | tuple[Text, ...] | Number | Missing | Bar
"""An entry of a table; each of several texts has a line of its own where lines can be broken."""


# -- blocks -----------------------------------------------------------------------------------


class Paragraph(msgspec.Struct, frozen=True):
    """Some sentences; the ``lead`` before them names their subject. ``of_charts``: they say how
    to read charts, so a text without pictures leaves them out."""

    text: str
    tone: Tone = Tone.PLAIN
    lead: str = ""
    detail: Detail | None = None
    of_charts: bool = False

    @property
    def after_lead(self) -> str:
        """The sign between lead and text: a colon, or none if the lead is a sentence or empty."""
        return "" if not self.lead or self.lead.endswith(".") else ":"


class List(msgspec.Struct, frozen=True):
    """Paragraphs of one kind, or links, one below the other."""

    items: tuple[Paragraph | Text, ...]
    detail: Detail | None = None


class Facts(msgspec.Struct, frozen=True):
    """Names with their values; a value of several texts is a list."""

    pairs: tuple[tuple[str, str | tuple[str, ...]], ...]
    detail: Detail | None = None


class Entries(msgspec.Struct, frozen=True):
    """The entries of a column in the order of the rows, and the unit that they share."""

    cells: Sequence[Cell]
    unit: str = ""


class Column(msgspec.Struct, frozen=True, dict=True):
    """A column: its heading, its entries, and what they are.

    ``content`` are the entries, with their unit if they have one, or a function that makes them
    when they are first read: narrow views need few of the columns of a long table. ``short`` is a
    shorter heading for narrow places, ``note`` explains the heading. ``wanted`` is 0 for a column
    that is always shown; of the others those with the least number come first, as far as they fit.
    ``is_filled``: is any entry there? ``None`` where only the entries tell. ``kind``: where it has
    no room, another one of its kind may have. ``below``: where it has none, it stands in a table
    of its own below, if that has at most so many rows.
    """

    title: str
    content: Sequence[Cell] | Entries | Callable[[], Entries]
    role: Role = Role.TEXT
    short: str = ""
    name: str = ""
    note: str = ""
    wanted: int = 0
    detail: Detail | None = None
    is_filled: bool | None = None
    kind: str = ""
    below: int = 0

    @cached_property
    def _entries(self) -> Entries:
        content = self.content() if callable(self.content) else self.content
        return content if isinstance(content, Entries) else Entries(content)

    @property
    def cells(self) -> Sequence[Cell]:
        """The entries in the order of the rows."""
        return self._entries.cells

    @property
    def unit(self) -> str:
        """The unit that all entries share; empty if none."""
        return self._entries.unit

    @property
    def has_entries(self) -> bool:
        """Is any entry there?"""
        if self.is_filled is not None:
            return self.is_filled
        return any(not isinstance(cell, Missing) for cell in self.cells)


class Table(msgspec.Struct, frozen=True):
    """Columns of equal length, with a tone for each row if there is any.

    ``title`` is its text alternative. ``as_text``: the entries are sentences, so
    where columns do not fit, a row is written as a sentence. ``crossed``: the first two
    columns may become the rows and the columns of a matrix whose entries are the rest. ``sortable``
    tables are long, and a reader may sort them by any column. ``legend`` says how to read the
    columns that a view shows, ``more`` how to get those that a narrow view leaves out, which are
    counted and not named where it is ``terse``, and not told where it has no ``more`` either.
    ``whole``: rows are searched by what stands in them, so no view cuts an entry or leaves a column
    out; a row may be wider than a terminal.
    """

    columns: tuple[Column, ...]
    tones: tuple[Tone, ...] = ()
    title: str = ""
    as_text: bool = False
    crossed: bool = False
    sortable: bool = False
    legend: Callable[[Sequence[Column]], str] | None = None
    more: str = ""
    terse: bool = False
    whole: bool = False
    detail: Detail | None = None

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(self.columns[0].cells) if self.columns else 0

    def rows(self) -> Iterator[tuple[Tone, tuple[Cell, ...]]]:
        """Each row with its tone."""
        tones = self.tones or (Tone.PLAIN,) * self.length
        return zip(tones, zip(*(column.cells for column in self.columns), strict=True), strict=True)


class Chart(msgspec.Struct, frozen=True, dict=True):
    """A chart: its file name, caption, text alternative, and remarks on what it leaves out.

    ``draw`` makes the Altair chart, when :attr:`spec` is first read: many views need none.
    ``wide`` charts hold several panels, or rows with long names, and need the full width.
    ``in_table``: a table of the same document has its figures, so a text without pictures leaves it
    out. ``curves`` are the labels of its curves, in the order of their colours, where a reader may
    hide some. ``draw_other`` makes the same chart with the axes that ``other_axes`` names.
    ``zooms``: a reader may stretch its horizontal axis.
    """

    name: str
    title: str
    alternative: str
    remarks: tuple[str, ...]
    wide: bool
    draw: Callable[[], Any]
    label: str = ""
    anchor: str = ""
    detail: Detail | None = Detail.FULL
    in_table: bool = False
    curves: tuple[str, ...] = ()
    draw_other: Callable[[], Any] | None = None
    other_axes: str = ""
    zooms: bool = False

    @cached_property
    def spec(self) -> Any:
        """The Altair chart."""
        return self.draw()

    @cached_property
    def other_spec(self) -> Any:
        """The same with the other axes; ``None`` if there are none."""
        return self.draw_other() if self.draw_other else None


class Code(msgspec.Struct, frozen=True):
    """A command line to be copied."""

    text: str
    detail: Detail | None = None


class Caption(msgspec.Struct, frozen=True):
    """The title of the table that follows, with its number and its place in the document."""

    title: str
    label: str = ""
    anchor: str = ""
    detail: Detail | None = None


class Collapsible(msgspec.Struct, frozen=True):
    """Blocks that are hidden until the reader opens them, below a line that names them."""

    summary: str
    blocks: tuple[Block, ...]
    is_open: bool = False
    detail: Detail | None = None


class Section(msgspec.Struct, frozen=True):
    """Blocks below a heading. ``brief_title`` is the heading in a brief document, where it differs;
    a section without a heading is only set apart. A ``folded`` section is for who asks for it: a
    page shows its heading and its ``summary`` until the reader opens it. ``is_main``: of these the
    one that a text shows all the same, which has no first look of it."""

    title: str
    blocks: tuple[Block, ...]
    anchor: str = ""
    brief_title: str | None = None
    detail: Detail | None = None
    folded: bool = False
    summary: str = ""
    is_main: bool = False


class Overview(msgspec.Struct, frozen=True):
    """What a reader with a minute reads: the answers, the chart that shows them, and ``beside`` it
    why it is so and how sure it is. The first ``main`` answers are shown alike, above the others:
    under several conditions each is as much asked for. ``figures`` has those of the chart, for
    a text without pictures."""

    answers: tuple[Paragraph, ...]
    chart: Chart | None
    beside: tuple[Section, ...]
    main: int = 1
    figures: Table | None = None
    detail: Detail | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All of it in the order of reading."""
        return (*self.answers, *([self.chart] if self.chart else []), *self.beside)


Block: TypeAlias = (
    Paragraph | List | Facts | Table | Chart | Code | Caption | Collapsible | Section | Overview
)


class Fact(msgspec.Struct, frozen=True):
    """A fact of the line below the title."""

    text: str
    detail: Detail | None = None


class Document(msgspec.Struct, frozen=True):
    """A report. ``kicker`` stands above the title and says what the report is of; ``head`` follows
    the facts; ``has_contents``: the sections are numbered, and a list of them leads to each.
    ``shorter`` says less: a terminal shows it where this one does not fit on a screen."""

    title: str
    blocks: tuple[Block, ...]
    kicker: str = ""
    facts: tuple[Fact, ...] = ()
    head: tuple[Block, ...] = ()
    footer: str = ""
    version: str = ""
    has_contents: bool = False
    shorter: Document | None = None

    def charts(self) -> Iterator[Chart]:
        """Every chart in it, in order."""
        for block in walk(self.blocks):
            if isinstance(block, Chart):
                yield block


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks and those inside of them, in the order of reading."""
    for block in blocks:
        yield block
        if isinstance(block, (Section, Collapsible, Overview)):
            yield from walk(block.blocks)


def at_detail(document: Document, detail: Detail) -> Document:
    """The document without the blocks for the other detail."""
    return msgspec.structs.replace(
        document,
        facts=tuple(fact for fact in document.facts if fact.detail in (None, detail)),
        head=_kept(document.head, detail),
        blocks=_kept(document.blocks, detail),
    )


def _kept(blocks: Iterable[Block], detail: Detail) -> tuple[Block, ...]:
    meant = (block for block in blocks if block.detail in (None, detail))
    reduced = (_reduced(block, detail) for block in meant)
    return tuple(block for block in reduced if block is not None)


def _reduced(block: Block, detail: Detail) -> Block | None:
    """A block with its content for the detail; ``None`` for a section without content."""
    if isinstance(block, Collapsible):
        return msgspec.structs.replace(block, blocks=_kept(block.blocks, detail))
    if isinstance(block, Table):
        columns = tuple(item for item in block.columns if item.detail in (None, detail))
        return msgspec.structs.replace(block, columns=columns)
    if isinstance(block, Section):
        blocks = _kept(block.blocks, detail)
        is_short = detail is Detail.BRIEF and block.brief_title is not None
        title = (block.brief_title or "") if is_short else block.title
        return msgspec.structs.replace(block, blocks=blocks, title=title) if blocks else None
    return block


def reworded(document: Document, words: Callable[[str], str]) -> Document:
    """The document with other words in its sentences. Names, entries of tables and commands
    stay."""
    return msgspec.structs.replace(
        document,
        head=_all_reworded(document.head, words),
        blocks=_all_reworded(document.blocks, words),
        footer=words(document.footer),
        shorter=document.shorter and reworded(document.shorter, words),
    )


def once(document: Document, advice: Collection[str]) -> Document:
    """The document with each of these sentences where it is read first, and without it elsewhere:
    several paragraphs give the same advice, each for readers who read it alone. A paragraph that
    says nothing else is left out."""
    shorter = document.shorter and once(document.shorter, advice)
    said: set[str] = set()

    def words(text: str) -> str:
        for sentence in advice:
            before, found, after = text.partition(sentence)
            if found:
                kept = before.rstrip() if sentence in said else f"{before}{sentence}"
                text = f"{kept}{after.replace(f' {sentence}', '')}"
                said.add(sentence)
        return text

    alone = reworded(msgspec.structs.replace(document, shorter=None), words)
    return msgspec.structs.replace(alone, shorter=shorter)


def _all_reworded(blocks: Iterable[Block], words: Callable[[str], str]) -> tuple[Block, ...]:
    found = ((block, _reworded(block, words)) for block in blocks)
    return tuple(after for before, after in found if _is_empty(before) or not _is_empty(after))


def _is_empty(block: Any) -> bool:
    match block:
        case Paragraph():
            return not block.text
        case List():
            return not block.items
    return False


def _reworded(block: Any, words: Callable[[str], str]) -> Any:
    """A block, or an item of a list, with other words."""
    changed: dict[str, Any] = {}
    match block:
        case Paragraph():
            changed = {"text": words(block.text)}
        case List():
            changed = {"items": _all_reworded(block.items, words)}  # type: ignore[arg-type]
        case Table():
            changed = {"more": words(block.more)}
            if block.legend is not None:
                legend = block.legend
                changed["legend"] = lambda columns: words(legend(columns))
        case Collapsible() | Section():
            changed = {"blocks": _all_reworded(block.blocks, words)}
        case Overview():
            changed = {
                "answers": _all_reworded(block.answers, words),
                "beside": _all_reworded(block.beside, words),
            }
    return msgspec.structs.replace(block, **changed) if changed else block
