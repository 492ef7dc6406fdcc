"""The report of a study's history."""

from __future__ import annotations

from collections.abc import Iterator

from concurve.findings.history import CellHistory, History, HistoryPoint
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Column,
    Detail,
    Document,
    Entries,
    Number,
    Paragraph,
    Role,
    Section,
    Table,
    Tone,
    at_detail,
)

_TONES = {"faster": Tone.GOOD, "slower": Tone.BAD, "changed": Tone.WARNING, "": Tone.PLAIN}
#: With more cells than this, a cell without a change takes one line.
_CELLS_FULL = 6


def history_document(history: History, detail: Detail = Detail.BRIEF) -> Document:
    """Each cell over the runs, the oldest first."""
    info = history.indicator
    blocks: list[Block] = [_cell(history, cell) for cell in history.cells]
    blocks.append(Section("", tuple(_reading(history))))
    document = Document(
        title=f"{history.study}: {info.label or info.name} over {fmt.count(history.runs, 'run')}",
        blocks=tuple(blocks),
    )
    return at_detail(document, detail)


def _reading(history: History) -> Iterator[Paragraph]:
    if any(point.verdict for cell in history.cells for point in cell.points):
        yield Paragraph(
            "< marks the first run after a change, with the new level over the old one and its "
            "95 % interval; 5 % of the changes shown may be false.",
            Tone.SOFT,
        )
    for warning in history.warnings:
        yield Paragraph(warning, Tone.WARNING)


def _cell(history: History, cell: CellHistory) -> Section:
    title = fmt.setting({name: cell.parameters[name] for name in history.factors})
    points = cell.points
    scale = fmt.scale_for([point.figure.value for point in points], history.indicator.unit)
    is_changed = any(point.verdict for point in points)
    if len(history.cells) > _CELLS_FULL and not is_changed and points:
        latest = fmt.estimate(points[-1].figure, scale).text
        latest_only = Paragraph(f"{cell.note or 'no change'}; latest {latest}", Tone.SOFT)
        return Section(title, (latest_only,))
    blocks: list[Block] = [_table(history, cell, scale)]
    if cell.note or not is_changed:
        blocks.append(Paragraph(cell.note or "no change", Tone.SOFT))
    return Section(title, tuple(blocks))


def _table(history: History, cell: CellHistory, scale: fmt.Scale) -> Table:
    points = cell.points
    label = history.indicator.label or history.indicator.name
    columns = [
        Column("started", [p.started[:16].replace("T", " ") for p in points], wanted=1),
        Column("run", [point.run for point in points]),
        Column(
            label, Entries([_figure(point, scale) for point in points], scale.symbol), Role.NUMBER
        ),
    ]
    if any(point.verdict for point in points):
        columns.append(Column("change", [_change(point) for point in points]))
    return Table(tuple(columns), tuple(_TONES[point.verdict] for point in points))


def _figure(point: HistoryPoint, scale: fmt.Scale) -> Number:
    shown = fmt.estimate(point.figure, scale)
    return Number(shown.value, shown.spread, shown.span, point.figure.value)


def _change(point: HistoryPoint) -> str:
    if not point.verdict:
        return ""
    if point.change is None:
        return f"< {point.verdict}"
    shown = fmt.estimate(point.change)
    span = f" ({shown.span})" if shown.span else ""
    return f"< {point.verdict}: {shown.value}×{span}"
