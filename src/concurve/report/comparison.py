"""A comparison on the terminal and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from rich.cells import cell_len
from rich.text import Text

from concurve.estimate import Estimate
from concurve.findings.comparison import CellComparison, Comparison
from concurve.report import format as fmt
from concurve.report.letters import cut
from concurve.report.prose import wrapped
from concurve.terms import IndicatorInfo, Level

FORMAT = 1

_GAP = "  "
_FACTOR_WIDTH_MIN = 6
_STYLES = {"faster": "green", "slower": "red", "same": "", "undecided": "yellow"}
_WORDS = {"same": "no difference worth the name"}


def lines(comparison: Comparison, width: int) -> Iterator[Text]:
    """The lines of a comparison, none wider than ``width`` cells."""
    yield from wrapped(Text(f"{comparison.new} against {comparison.base}", "bold"), width)
    for info in comparison.indicators:
        cells = [cell for cell in comparison.cells if cell.indicator == info.name]
        yield Text()
        yield from wrapped(Text(f"{info.label or info.name}, {info.better} is better"), width)
        yield from _table(comparison, cells, info, width)
    yield Text()
    yield from _reading(comparison, width)
    for warning in comparison.warnings:
        yield from wrapped(Text(f"! {fmt.clean(warning)}", "yellow"), width)


def _table(
    comparison: Comparison, cells: list[CellComparison], info: IndicatorInfo, width: int
) -> Iterator[Text]:
    known = [figure for cell in cells for figure in (cell.base, cell.new) if figure]
    scale = fmt.scale_for([figure.value for figure in known], info.unit)
    unit = f" ({scale.symbol})" if scale.symbol else ""
    columns = [
        *([name, *(fmt.level(cell.parameters[name]) for cell in cells)]
          for name in comparison.factors),
        _right([f"base{unit}", *(_figure(cell.base, scale) for cell in cells)]),
        _right([f"new{unit}", *(_figure(cell.new, scale) for cell in cells)]),
        _right(["ratio", *(_ratio(cell.ratio) for cell in cells)]),
        ["95 % interval", *(_span(cell.ratio) for cell in cells)],
        ["verdict", *(cell.verdict for cell in cells)],
    ]  # fmt: skip
    columns = _fitted(columns, len(comparison.factors), width)
    sizes = [max(map(cell_len, column)) for column in columns]
    heading, *rows = (
        _GAP.join(text + " " * (size - cell_len(text)) for text, size in zip(row, sizes,
                                                                          strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    )  # fmt: skip
    yield Text(heading, "bold")
    yield Text(_GAP.join("-" * size for size in sizes), "dim")
    for cell, row in zip(cells, rows, strict=True):
        yield Text(row, _STYLES[cell.verdict])
    for note in dict.fromkeys(cell.note for cell in cells if cell.note):
        where = [fmt.setting(cell.parameters) for cell in cells if cell.note == note]
        more = f" and {len(where) - 3} more" if len(where) > 3 else ""
        yield from wrapped(
            Text(f"{fmt.clean(note)} ({'; '.join(where[:3])}{more})", "yellow"), width
        )


def _fitted(columns: list[list[str]], factors: int, width: int) -> list[list[str]]:
    """Base and new give way first, then the factors are cut short."""

    def total() -> int:
        widths = (max(map(cell_len, column)) for column in columns)
        return sum(widths) + len(_GAP) * (len(columns) - 1)

    if total() > width:
        del columns[factors : factors + 2]
    while factors and total() > width:
        widest = max(columns[:factors], key=lambda column: max(map(cell_len, column)))
        size = max(map(cell_len, widest)) - 1
        if size < _FACTOR_WIDTH_MIN:
            break
        widest[:] = [cut(text, size) for text in widest]
    return columns


def _reading(comparison: Comparison, width: int) -> Iterator[Text]:
    """How many of each verdict, and what they mean."""
    counts = Counter(cell.verdict for cell in comparison.cells)
    said = ", ".join(f"{n} {_WORDS.get(verdict, verdict)}" for verdict, n in counts.most_common())
    yield from wrapped(Text(f"{fmt.count(len(comparison.cells), 'cell')}: {said}.", "bold"), width)
    effect = f"{100 * comparison.effect:.2g} %"
    yield from wrapped(
        Text(
            f"The ratio is new over base. Verdicts are of all cells together (false discovery "
            f"rate 5 %), intervals of each alone; less than {effect} is no difference worth the "
            "name.",
            "dim",
        ),
        width,
    )
    if counts["undecided"]:
        text = f"To decide more: more trials (--repeats), or an --effect above {effect}."
        yield from wrapped(Text(text, "dim"), width)


def _figure(figure: Estimate | None, scale: fmt.Scale) -> str:
    return fmt.estimate(figure, scale).value if figure else fmt.MISSING


def _ratio(ratio: Estimate | None) -> str:
    return fmt.estimate(ratio).value if ratio else fmt.MISSING


def _span(ratio: Estimate | None) -> str:
    shown = fmt.estimate(ratio) if ratio else None
    return shown.span if shown else ""


def _right(column: list[str]) -> list[str]:
    size = max(map(cell_len, column))
    return [" " * (size - cell_len(text)) + text for text in column]


# -- JSON -------------------------------------------------------------------------------------


class _Ratio(msgspec.Struct, frozen=True):
    value: float
    low: float | msgspec.UnsetType
    high: float | msgspec.UnsetType
    n: int


class _Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    parameters: dict[str, Level]
    indicator: str
    verdict: str
    ratio: _Ratio | msgspec.UnsetType = msgspec.UNSET
    base: float | None = None
    new: float | None = None
    note: str = ""


class _Comparison(msgspec.Struct, frozen=True):
    format: int
    base: str
    new: str
    effect: float
    method: str
    indicators: list[dict[str, Any]]
    cells: list[_Cell]
    warnings: tuple[str, ...]


def to_json(comparison: Comparison) -> bytes:
    """The comparison as JSON, as ``schema/compare.schema.json`` describes it."""
    return msgspec.json.encode(
        _Comparison(
            FORMAT,
            comparison.base,
            comparison.new,
            comparison.effect,
            comparison.method,
            [
                {"name": info.name, "unit": info.unit, "better": info.better}
                for info in comparison.indicators
            ],
            [_cell(cell) for cell in comparison.cells],
            comparison.warnings,
        )
    )


def _cell(cell: CellComparison) -> _Cell:
    return _Cell(
        parameters=cell.parameters,
        indicator=cell.indicator,
        verdict=cell.verdict,
        ratio=_ratio_of(cell.ratio) if cell.ratio else msgspec.UNSET,
        base=cell.base.value if cell.base else None,
        new=cell.new.value if cell.new else None,
        note=cell.note,
    )


def _ratio_of(ratio: Estimate) -> _Ratio:
    low, high = ratio.low, ratio.high
    if low is None or high is None or not math.isfinite(high):
        return _Ratio(ratio.value, msgspec.UNSET, msgspec.UNSET, ratio.n)
    return _Ratio(ratio.value, low, high, ratio.n)
