"""What limits a run, as a section of the HTML and Markdown reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from concurve.findings import CellExplanation, Explanation
from concurve.report import format as fmt
from concurve.report.explain import percent, remarks


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
    from concurve.report.markdown import grid, text

    if explanation is None:
        return
    found = section(explanation)
    yield "## What limits it"
    yield ""
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
        cell.cause,
        cell.evidence,
    )


def _operation(explanation: Explanation) -> str:
    return (
        f"Thread time of the threads that do the work, per operation ({explanation.operation}); "
        "a cause is named where a part exceeds that of the base cell beyond its noise."
    )
