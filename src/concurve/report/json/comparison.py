"""A comparison, as JSON."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from concurve.estimate import Estimate
from concurve.findings.comparison import CellComparison, Comparison
from concurve.terms import Level

FORMAT = 1


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
