"""The report of a comparison of several runs with one base."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from concurve import words
from concurve.findings.explanation import CellExplanation
from concurve.findings.several import CausesOfCell, Difference, Several
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Cell,
    Collapsible,
    Column,
    Detail,
    Document,
    Missing,
    Number,
    Paragraph,
    Role,
    Section,
    Table,
    Tone,
    once,
)
from concurve.report.losses import loss_named
from concurve.report.sections import comparison as of_two
from concurve.report.sections.limits import named_cause


def several_document(several: Several) -> Document:
    """What differs, the most significant first; the curves over each other; what limits each cell,
    side by side; where blocked time differs; and behind a line all cells of each run."""
    sections = [_differences(several), _curves(several), _causes(several), _blocked(several)]
    whole = Section("All cells", tuple(_whole(several)), anchor="cells")
    document = Document(
        title=f"{', '.join(several.news)} against {several.base}",
        blocks=(*filter(None, sections), whole),
    )
    for advice in dict.fromkeys(text for item in several.comparisons for text in item.advice):
        document = once(document, [advice])
    return document


# -- what differs -----------------------------------------------------------------------------


def _differences(several: Several) -> Section:
    cells = [cell for item in several.comparisons for cell in item.cells]
    counts = Counter(cell.verdict for cell in cells)
    said = ", ".join(
        f"{number} {of_two.WORDS.get(verdict, verdict)}" for verdict, number in counts.most_common()
    )
    total = Paragraph(f"{fmt.count(len(cells), 'cell')}: {said}.", Tone.STRONG)
    if not several.differences:
        none = Paragraph(_nothing_differs(counts["undecided"], len(cells)))
        return Section("What differs", (total, none), anchor="differences")
    how = (
        "The most significant first: by how many times the half of its interval a ratio is from 1, "
        "on the scale of logarithms. Cells without a difference, and undecided ones, are left out "
        "here."
    )
    blocks = (total, _ranked(several), Paragraph(how, Tone.SOFT))
    return Section("What differs", blocks, anchor="differences")


def _nothing_differs(undecided: int, cells: int) -> str:
    """That no cell differs; where some are undecided, only that none is shown to."""
    if not undecided:
        return "No cell is faster or slower than that of the base."
    which = "all are" if undecided == cells else f"{undecided} {words.verb(undecided)}"
    return f"No cell is shown to be faster or slower than that of the base: {which} undecided."


def _ranked(several: Several) -> Table:
    found = several.differences
    names = dict.fromkeys(name for item in several.comparisons for name in item.factors)
    labels = {info.name: info.label for item in several.comparisons for info in item.indicators}
    runs = [Column("run", [item.new for item in found], Role.KEY)] if len(several.news) > 1 else []
    keys = (Column(name, [_level(item, name) for item in found], Role.KEY) for name in names)
    indicators = (
        [Column("indicator", [labels[item.cell.indicator] for item in found])]
        if len(labels) > 1
        else []
    )
    return Table(
        (
            *runs,
            *keys,
            *indicators,
            Column("ratio", [of_two.value_of(item.cell.ratio, None) for item in found],
                   Role.NUMBER),
            Column("95 % interval", [of_two.span_of(item.cell.ratio) for item in found]),
            Column("verdict", [item.cell.verdict for item in found]),
            Column("significance", [_significance(item) for item in found], Role.NUMBER, wanted=1),
        ),
        tuple(of_two.TONES[item.cell.verdict] for item in found),
        title="One row a cell that differs, the most significant first.",
        sortable=True,
    )  # fmt: skip


def _level(item: Difference, name: str) -> Cell:
    level = item.cell.parameters.get(name)
    return Missing() if level is None else fmt.level(level)


def _significance(item: Difference) -> Number:
    # An interval of no width, of exact counts or a simulation, is no finite number of its widths.
    shown = f"{item.significance:.1f}" if math.isfinite(item.significance) else "exact"
    return Number(shown, order=item.significance)


# -- curves and causes ------------------------------------------------------------------------


def _curves(several: Several) -> Section | None:
    from concurve.report.charts import of_indicator

    names = dict.fromkeys(info.name for item in several.comparisons for info in item.indicators)
    drawn = (of_indicator(several.overlaid, name) for name in names)
    charts = tuple(chart for chart in drawn if chart is not None)
    return Section("The runs over each other", charts, anchor="curves") if charts else None


def _causes(several: Several) -> Section | None:
    cells = several.causes
    if not cells:
        return None
    names = [
        name
        for name in dict.fromkeys(name for cell in cells for name in cell.parameters)
        if len({cell.parameters.get(name) for cell in cells}) > 1
    ]
    keys = (
        Column(name, [fmt.level(cell.parameters[name]) if name in cell.parameters else Missing()
                      for cell in cells], Role.KEY)
        for name in names
    )  # fmt: skip
    runs = (
        Column(title, [_cause(cell.causes[place]) for cell in cells])
        for place, title in enumerate((several.base, *several.news))
    )
    table = Table(
        (*keys, *runs),
        tuple(Tone.WARNING if _differ(cell) else Tone.PLAIN for cell in cells),
        title="One row a cell: what limits it in each run.",
    )
    said = Paragraph(_compared_causes(cells), Tone.STRONG)
    return Section("What limits each cell", (table, said), anchor="causes")


def _compared_causes(cells: Sequence[CausesOfCell]) -> str:
    """Of the cells whose cause all runs name, in how many they name another one."""
    others, named = sum(map(_differ, cells)), sum(map(_is_named, cells))
    if others:
        return f"In {fmt.count(others, 'cell')} of {len(cells)} the runs name different causes."
    if not named:
        return "In no cell do all runs name a cause."
    if named == len(cells):
        return "The same cause limits each cell in all of the runs."
    return (
        f"In the {fmt.count(named, 'cell')} of {len(cells)} whose cause all runs name it is the "
        "same."
    )


def _differ(cell: CausesOfCell) -> bool:
    """Do two runs name different causes? A cause in doubt is none that is named."""
    named = {(one.cause, one.limit) for one in cell.causes if one is not None and _names(one)}
    return len(named) > 1


def _is_named(cell: CausesOfCell) -> bool:
    return all(map(_names, cell.causes))


def _names(one: CellExplanation | None) -> bool:
    return one is not None and one.cause != "in doubt"


def _cause(cell: CellExplanation | None) -> Cell:
    if cell is None:
        return Missing("the run does not say")
    if cell.share is None:
        return named_cause(cell)
    share = f", {fmt.percent(cell.share.value)} of {loss_named(cell)}"
    return f"{named_cause(cell)}{share}"


# -- blocked time -----------------------------------------------------------------------------


def _blocked(several: Several) -> Section | None:
    from concurve.report.charts.blocked import HOW_TO_READ, blocked_differences

    blocks: list[Block] = []
    if several.blocked:
        blocks.append(Paragraph(f"{HOW_TO_READ}{_left_out(several)}", Tone.SOFT))
    blocks += blocked_differences(several.blocked)
    blocks += [Paragraph(why) for why in several.not_blocked]
    return (
        Section("Where blocked time differs", tuple(blocks), anchor="blocked") if blocks else None
    )


def _left_out(several: Several) -> str:
    drawn = len(several.blocked)
    if drawn == several.blocked_cells:
        return ""
    return (
        f" Of {several.blocked_cells} cells, the {drawn} with the greatest differences are drawn."
    )


# -- all cells --------------------------------------------------------------------------------


def _whole(several: Several) -> Iterator[Block]:
    for item in several.comparisons:
        blocks = of_two.comparison_document(item, Detail.FULL).blocks
        yield Collapsible(f"{item.new} against {item.base} ({len(item.cells)})", blocks)
