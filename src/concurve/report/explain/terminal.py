"""What limits each cell, on the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rich.cells import cell_len
from rich.text import Text

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.report import format as fmt
from concurve.report.explain.words import named, percent, remarks
from concurve.report.letters import cut
from concurve.report.prose import wrapped

#: The parts of a bar: their letter, and how to call them.
PARTS: dict[str, tuple[str, str]] = {
    "cpu": ("c", "on a CPU"),
    "run_queue": ("r", "waiting for a CPU"),
    "futex": ("f", "futex (locks, conditions)"),
    "disk": ("d", "disk"),
    "network": ("n", "network"),
    "poll": ("p", "polling"),
    "pipe": ("|", "pipe"),
    "sleep": ("s", "asleep"),
    "child": ("h", "child process"),
    "other": ("o", "other"),
    "blocked": ("b", "blocked"),
}

_GAP = "  "
_BAR_WIDTH, _BAR_WIDTH_MIN = 24, 10
_FACTOR_WIDTH_MIN = 6
_STYLES = {"contamination": "yellow", "none": ""}


def lines(explanation: Explanation, width: int) -> Iterator[Text]:
    """The lines of an explanation, none wider than ``width`` cells."""
    yield from wrapped(Text(f"What limits {fmt.clean(explanation.study)}", "bold"), width)
    said = f"{explanation.run} · thread time per operation ({explanation.operation})"
    yield from wrapped(Text(fmt.clean(said), "dim"), width)
    yield Text()
    yield from _table(explanation, width)
    yield Text()
    for cell in explanation.cells:
        style = _STYLES.get(cell.cause, "bold")
        yield from wrapped(Text(f"{cell.cause}: {fmt.clean(cell.evidence)}", style), width)
    yield Text()
    for text in remarks(explanation):
        yield from wrapped(Text(fmt.clean(text), "dim"), width)


def _table(explanation: Explanation, width: int) -> Iterator[Text]:
    cells = explanation.cells
    totals = [cell.per_operation["total"] for cell in cells if "total" in cell.per_operation]
    scale = fmt.scale_for([total.value for total in totals], "ns")
    columns = [
        *([name, *(fmt.level(cell.parameters[name]) for cell in cells)]
          for name in explanation.factors),
        _right([f"time/op ({scale.symbol})", *(_total(cell, scale) for cell in cells)]),
        _right(["cpu", *(_share(cell, "cpu") for cell in cells)]),
        _right(["queue", *(_share(cell, "run_queue") for cell in cells)]),
        _right(["blocked", *(_blocked(cell) for cell in cells)]),
        ["cause", *(named(cell) for cell in cells)],
    ]  # fmt: skip
    room = width - _total_width(columns) - len(_GAP)
    size = min(_BAR_WIDTH, room)
    if size >= _BAR_WIDTH_MIN:
        columns.insert(-1, ["where it goes", *(bar(cell.shares, size) for cell in cells)])
    columns = _fitted(columns, len(explanation.factors), width)
    widths = [max(map(cell_len, column)) for column in columns]
    heading, *rows = (
        _GAP.join(
            text + " " * (size - cell_len(text)) for text, size in zip(row, widths, strict=True)
        ).rstrip()
        for row in zip(*columns, strict=True)
    )
    yield Text(heading, "bold")
    yield Text(_GAP.join("-" * size for size in widths), "dim")
    for row in rows:
        yield Text(row)
    if size >= _BAR_WIDTH_MIN:
        seen = [name for name in PARTS if any(c.shares.get(name, 0) >= 0.005 for c in cells)]
        legend = ", ".join(f"{PARTS[name][0]} {PARTS[name][1]}" for name in seen)
        yield from wrapped(Text(legend, "dim"), width)


def bar(shares: Mapping[str, float], size: int) -> str:
    """Shares as letters, by the largest remainder; a part that would get none is left out."""
    exact = {name: share * size for name, share in shares.items()}
    letters = {name: math.floor(value) for name, value in exact.items()}
    left = round(sum(exact.values())) - sum(letters.values())
    for name in sorted(exact, key=lambda name: letters[name] - exact[name])[: max(left, 0)]:
        letters[name] += 1
    return "".join(PARTS[name][0] * count for name, count in letters.items())


def _total(cell: CellExplanation, scale: fmt.Scale) -> str:
    figure = cell.per_operation.get("total")
    return fmt.estimate(figure, scale).value if figure else fmt.MISSING


def _share(cell: CellExplanation, name: str) -> str:
    return percent(cell.shares[name]) if name in cell.shares else fmt.MISSING


def _blocked(cell: CellExplanation) -> str:
    """Everything of the bar that is neither on a CPU nor in a queue."""
    if not cell.shares:
        return fmt.MISSING
    rest = [share for name, share in cell.shares.items() if name not in ("cpu", "run_queue")]
    return percent(math.fsum(rest))


def _fitted(columns: list[list[str]], factors: int, width: int) -> list[list[str]]:
    """Shares give way first, from the left, then the factors are cut short."""
    while len(columns) > factors + 2 and _total_width(columns) > width:
        del columns[factors + 1]
    while factors and _total_width(columns) > width:
        widest = max(columns[:factors], key=lambda column: max(map(cell_len, column)))
        size = max(map(cell_len, widest)) - 1
        if size < _FACTOR_WIDTH_MIN:
            break
        widest[:] = [cut(text, size) for text in widest]
    return columns


def _total_width(columns: list[list[str]]) -> int:
    return sum(max(map(cell_len, column)) for column in columns) + len(_GAP) * (len(columns) - 1)


def _right(column: list[str]) -> list[str]:
    size = max(map(cell_len, column))
    return [" " * (size - cell_len(text)) + text for text in column]
