"""Cells as curves with their labels, divided among panels, and what charts of them are called."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from concurve.findings.cells import CellFindings
from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.report.charts.style import PALETTE
from concurve.terms import Factor

_SERIES_MAX = len(PALETTE)
_PANELS_MAX = 24
#: The end of the text alternative of a chart, in a report.
TABLE_BELOW = "The table below has the same figures."
_LABEL_LENGTH_MAX = 44


@dataclass(frozen=True)
class Series:
    """A curve, or a row: its label, its panel, and its cells."""

    label: str
    panel: str
    cells: tuple[CellFindings, ...]


def divided(
    findings: Findings, work: Factor, cells: Sequence[CellFindings]
) -> tuple[list[Series], tuple[str, ...]]:
    """The curves, divided among panels where one would hold too many of them."""
    others = [f.name for f in findings.factors if not f.work and len(f.levels) > 1]
    panel_factors: list[str] = []
    curve_factors = list(others)
    lengths = {factor.name: len(factor.levels) for factor in findings.factors}
    while curve_factors and math.prod(lengths[name] for name in curve_factors) > _SERIES_MAX:
        # The factor with the most levels selects the panels, so that each has the fewest curves.
        most = max(curve_factors, key=lambda name: lengths[name])
        curve_factors.remove(most)
        panel_factors.append(most)
    panel_of, curve_of = (
        unique_labels((_levels_of(cell, factors), label_of(cell, factors)) for cell in cells)
        for factors in (panel_factors, curve_factors)
    )
    groups: dict[tuple[str, str], list[CellFindings]] = {}
    for cell in cells:
        panel = panel_of[_levels_of(cell, panel_factors)]
        label = curve_of[_levels_of(cell, curve_factors)]
        groups.setdefault((panel, label), []).append(cell)
    panels = list(dict.fromkeys(panel for panel, _ in groups))
    remarks: tuple[str, ...] = ()
    if len(panels) > _PANELS_MAX:
        remarks = (f"The first {_PANELS_MAX} of {len(panels)} panels; the table has all cells.",)
        panels = panels[:_PANELS_MAX]
    series = [
        Series(label, panel, tuple(sorted(group, key=lambda c: float(c.parameters[work.name]))))
        for (panel, label), group in groups.items()
        if panel in panels
    ]
    return series, remarks


def unique_labels(found: Iterable[tuple[Hashable, str]]) -> dict[Hashable, str]:
    """A label for each different thing: where two would have the same, since both were cut, the
    later one has a number."""
    labels: dict[Hashable, str] = {}
    counts: Counter[str] = Counter()
    for what, text in found:
        if what not in labels:
            counts[text] += 1
            labels[what] = text if counts[text] == 1 else f"{text} ({counts[text]})"
    return labels


def _levels_of(cell: CellFindings, factors: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(cell.parameters.get(name, "")) for name in factors)


def label_of(cell: CellFindings, factors: Iterable[str]) -> str:
    """The levels of some factors in a cell, in words."""
    parts = (f"{name} {cell.parameters[name]}" for name in factors if name in cell.parameters)
    return _shortened(fmt.clean(", ".join(parts)))


def row_labels(cells: Sequence[CellFindings], factors: Sequence[str]) -> tuple[dict[int, str], str]:
    """A unique label for each cell: rows of the same name would coincide. If the names of the
    factors leave no space for their levels, they are written above all labels."""
    texts = [label_of(cell, factors) for cell in cells]
    is_cut = any(text.endswith("…") for text in texts)
    if is_cut:
        texts = [_levels(cell, factors) for cell in cells]
    labels: dict[int, str] = {}
    taken: set[str] = set()
    for cell, text in zip(cells, texts, strict=True):
        label = f"{text} (cell {cell.index})" if text in taken else text
        taken.add(label)
        labels[cell.index] = label
    return labels, fmt.clean(", ".join(factors)) if is_cut else ""


def _levels(cell: CellFindings, factors: Sequence[str]) -> str:
    levels = (str(cell.parameters[name]) for name in factors if name in cell.parameters)
    return _shortened(fmt.clean(", ".join(levels)))


def _shortened(text: str) -> str:
    return text if len(text) <= _LABEL_LENGTH_MAX else text[: _LABEL_LENGTH_MAX - 1] + "…"


# -- captions ---------------------------------------------------------------------------------


def alternative(
    title: str, points: Sequence[dict[str, Any]], series: Sequence[Series], scale: fmt.Scale
) -> str:
    """The text alternative of the chart."""
    values = [point["value"] for point in points]
    low, high = fmt.plain(min(values)), fmt.plain(max(values))
    curves = f" in {fmt.count(len(series), 'curve')}" if len(series) < len(points) else ""
    doubted = sum(point["doubt"] for point in points)
    doubt = f", {'all' if doubted == len(points) else doubted} of them in doubt"
    if len(points) == 1:
        doubt = ", in doubt"
    return (
        f"{title}: {fmt.count(len(points), 'cell')}{curves}{doubt if doubted else ''}, "
        f"from {fmt.with_unit(low, scale.symbol)} to {fmt.with_unit(high, scale.symbol)}. "
        f"{TABLE_BELOW}"
    )


def capital(text: str) -> str:
    """The text as a title begins."""
    text = fmt.clean(text)
    return text[:1].upper() + text[1:]


def file_name(text: str) -> str:
    """The text in characters that every file system accepts."""
    return "".join(char if char.isalnum() and char.isascii() else "-" for char in text).strip("-")
