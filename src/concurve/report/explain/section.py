"""What limits a run, as a section of the HTML and Markdown reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.report import format as fmt
from concurve.report.explain.words import named, percent, remarks
from concurve.terms import Level


class Row(NamedTuple):
    """A cell: its levels, the time of an operation, its parts, the cause and the sentence."""

    levels: tuple[str, ...]
    time: str
    cpu: str
    queue: str
    blocked: str
    cause: str
    evidence: str


class Section(NamedTuple):
    """The table with its heading, and what is said below it."""

    factors: tuple[str, ...]
    heading: str
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]


class Curves(NamedTuple):
    """Causes by curve: cells that differ in the work factor only share a row, with a column for
    each of its levels, and the sentence of the greatest."""

    factors: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[CurveRow, ...]


class CurveRow(NamedTuple):
    """A curve: its levels of the other factors, the cause at each level, and the last sentence."""

    levels: tuple[str, ...]
    causes: tuple[str, ...]
    evidence: str


def curves(explanation: Explanation) -> Curves | None:
    """The causes by curve; ``None`` where no factor counts as concurrency, or it alone varies."""
    work = explanation.work
    factors = tuple(name for name in explanation.factors if name != work)
    if work is None or work not in explanation.factors or not factors:
        return None
    groups: dict[tuple[str, ...], dict[Level, CellExplanation]] = {}
    for cell in explanation.cells:
        place = tuple(fmt.level(cell.parameters[name]) for name in factors)
        groups.setdefault(place, {})[cell.parameters[work]] = cell
    levels = tuple(dict.fromkeys(cell.parameters[work] for cell in explanation.cells))
    return Curves(
        factors,
        tuple(f"{work}={fmt.level(level)}" for level in levels),
        tuple(
            CurveRow(
                place,
                tuple(named(cells[n]) if n in cells else fmt.MISSING for n in levels),
                list(cells.values())[-1].evidence,
            )
            for place, cells in groups.items()
        ),
    )


def section(explanation: Explanation) -> Section:
    """The section's contents as text."""
    totals = [cell.per_operation["total"].value for cell in explanation.cells if cell.per_operation]
    scale = fmt.scale_for(totals, "ns")
    return Section(
        explanation.factors,
        f"time per operation ({scale.symbol})",
        tuple(_row(cell, explanation, scale) for cell in explanation.cells),
        (_operation(explanation), *remarks(explanation)),
    )


def to_markdown(explanation: Explanation | None) -> Iterator[str]:
    """The section as Markdown; nothing if the records were not read."""
    if explanation is not None:
        yield "## What limits it"
        yield ""
        yield from cells_to_markdown(section(explanation))


def curves_to_markdown(found: Curves) -> Iterator[str]:
    """The causes by curve as Markdown."""
    from concurve.report.markdown import grid, text

    heading = [text(name) for name in (*found.factors, *found.columns, "at the last")]
    rows = [
        [text(entry) for entry in (*row.levels, *row.causes, row.evidence)] for row in found.rows
    ]
    yield from grid(heading, rows)
    yield ""


def cells_to_markdown(found: Section) -> Iterator[str]:
    """The cells, and what is said of them, as Markdown."""
    from concurve.report.markdown import grid, text

    figures = (found.heading, "on a CPU", "waiting for one", "blocked", "cause")
    first = len(found.factors)
    yield from grid(
        [text(name) for name in (*found.factors, *figures)],
        [[text(entry) for entry in (*row.levels, *row[1:6])] for row in found.rows],
        range(first, first + 4),
    )
    yield ""
    for row in found.rows:
        yield f"- **{row.cause}**: {text(row.evidence)}"
    yield ""
    for remark in found.remarks:
        yield text(remark)
        yield ""


def _row(cell: CellExplanation, explanation: Explanation, scale: fmt.Scale) -> Row:
    total = cell.per_operation.get("total")
    rest = [share for name, share in cell.shares.items() if name not in ("cpu", "run_queue")]

    def part(name: str) -> str:
        return percent(cell.shares[name]) if name in cell.shares else fmt.MISSING

    return Row(
        tuple(fmt.level(cell.parameters[name]) for name in explanation.factors),
        fmt.estimate(total, scale).value if total else fmt.MISSING,
        part("cpu"),
        part("run_queue"),
        percent(sum(rest)) if cell.shares else fmt.MISSING,
        named(cell),
        cell.evidence,
    )


def _operation(explanation: Explanation) -> str:
    return (
        f"Thread time of the threads that do the work, per operation ({explanation.operation}); "
        "a cause is named where a part exceeds that of the base cell beyond its noise."
    )
