"""What a chart of an indicator draws, as rows of data: points with intervals, trials, gaps, the
ideal line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from concurve.findings.cells import CellFindings, Dot
from concurve.findings.run import Findings, TrialFindings
from concurve.report import format as fmt
from concurve.report.charts.axes import LOG_MARGIN
from concurve.report.charts.series import Series
from concurve.report.charts.style import CUT
from concurve.terms import Factor

# At most this many dots of a cell are drawn: more would overlap and make the file large.
_DOTS_PER_CELL_MAX = 60
_DOTS_MAX = 6000
# An interval is cut at this multiple of the greatest figure.
_INTERVAL_REACH = 2.0


def point_of(cell: CellFindings, name: str, scale: fmt.Scale, series: Series) -> dict[str, Any]:
    """A cell's value with its interval."""
    figure = cell.indicators[name]
    shown = fmt.estimate(figure, scale)
    where = fmt.setting(cell.parameters)
    span = f" [{shown.low}, {shown.high}]" if shown.span else ""
    value = fmt.with_unit(shown.value, shown.unit)
    text = f"{where}: {value}{span}, {fmt.count(figure.n, 'trial')}".lstrip(": ")
    if figure.in_doubt:
        text += ", in doubt"
    point: dict[str, Any] = {
        "value": figure.value / scale.divisor,
        "series": series.label,
        "panel": series.panel,
        "text": text,
        "doubt": figure.in_doubt,
    }
    if figure.low is not None and figure.high is not None:
        point |= {"low": figure.low / scale.divisor, "high": figure.high / scale.divisor}
    return point


def is_recommended(findings: Findings, cell: CellFindings) -> bool:
    """Is it the recommended setting, of all cells or under its conditions?"""
    known = [item for item in findings.best if item.recommended is not None]
    most = max((len(item.factors) for item in known), default=0)
    return any(
        {**item.group, **item.named}.items() <= cell.parameters.items()
        for item in known
        if len(item.factors) == most
    )


def dots_of(
    findings: TrialFindings, series: Sequence[Series], name: str, scale: fmt.Scale
) -> tuple[list[dict[str, Any]], str]:
    """The figure of each trial; if there are very many, an even selection and a remark."""
    work = findings.work
    where = {cell.index: (item, cell) for item in series for cell in item.cells}
    by_cell: dict[int, list[Dot]] = {}
    for dot in findings.dots:
        if dot.cell in where and math.isfinite(dot.values.get(name, math.nan)):
            by_cell.setdefault(dot.cell, []).append(dot)
    causes = {(item.cell, item.block, item.attempt): item.cause for item in findings.rejects}
    allowed = max(3, min(_DOTS_PER_CELL_MAX, _DOTS_MAX // max(len(by_cell), 1)))
    drawn: list[dict[str, Any]] = []
    thinned = False
    for index, dots in by_cell.items():
        item, cell = where[index]
        step = math.ceil(len(dots) / allowed)
        thinned = thinned or step > 1
        chosen = [dot for number, dot in enumerate(dots) if number % step == 0 or not dot.used]
        for number, dot in enumerate(chosen):
            entry: dict[str, Any] = {
                "value": dot.values[name] / scale.divisor,
                "series": item.label,
                "panel": item.panel,
                "used": dot.used,
                "jitter": (number % 5 - 2) / 2,
            }
            if work is not None:
                entry["level"] = cell.parameters[work.name]
            if not dot.used:
                cause = causes.get((dot.cell, dot.block, dot.attempt), "rejected")
                figure = fmt.with_unit(fmt.plain(dot.values[name], scale), scale.symbol)
                entry["text"] = f"{fmt.setting(cell.parameters)}: {figure}, {cause}"
            drawn.append(entry)
    remark = f"Of cells with many trials about {allowed} are drawn." if thinned else ""
    return drawn, remark


def cut_intervals(points: list[dict[str, Any]], dots: Sequence[dict[str, Any]]) -> str:
    """Cut intervals that would compress all figures; return a remark if one was cut."""
    most = _INTERVAL_REACH * max(row["value"] for row in [*points, *dots])
    wild = [point for point in points if point.get("high", most) > most > 0]
    for point in wild:
        point |= {"high": most, "cut_high": True}
    return CUT if wild else ""


def end_above_0(points: list[dict[str, Any]], dots: list[dict[str, Any]]) -> float:
    """Cut intervals close to the least figure, because a logarithmic axis never reaches 0, and
    leave trials at or below 0 out. Return the least figure above 0."""
    dots[:] = [dot for dot in dots if dot["value"] > 0]
    bottom: float = min(row["value"] for row in [*points, *dots] if row["value"] > 0)
    end_at(points, bottom * LOG_MARGIN)
    return bottom


def end_at(points: Sequence[dict[str, Any]], least: float) -> None:
    """Cut intervals at the end of the axis."""
    for point in points:
        if point.get("low", least) < least:
            point |= {"low": least, "cut_low": True}


def gaps(series: Sequence[Series], work: Factor) -> list[dict[str, Any]]:
    """Rows without a value, where a curve has no figure and its line must break."""
    return [
        {
            "series": item.label,
            "panel": item.panel,
            "x": float(level),
            "value": None,
            "joined": True,
        }
        for item in series
        for level in work.levels
        if all(cell.parameters[work.name] != level for cell in item.cells)
    ]


def ideal_line(
    name: str,
    work: Factor,
    cells: Iterable[CellFindings],
    findings: Findings,
    top: float,
    end: float,
) -> list[dict[str, Any]]:
    """The line of ideal scaling, up to the chart's top; none if each level has a base of its own,
    because the concurrency does not grow from such a base."""
    levels = sorted(float(level) for level in work.levels)
    if name == "efficiency":
        return [{"x": levels[0], "value": 1.0}, {"x": levels[-1], "value": 1.0}]
    by_index = {cell.index: cell for cell in findings.cells}
    bases = {
        float(by_index[cell.base].parameters[work.name])
        for cell in cells
        if cell.base is not None and cell.base in by_index
    }
    base = min(bases, default=levels[0])
    if base <= 0 or len(bases) > 1:
        return []
    first, last = max(levels[0], base / 10), min(end, top * 0.97 * base)
    # A straight line on linear axes is a curve on logarithmic ones: many short lines suit both.
    xs = [first * (last / first) ** (step / 40) for step in range(41)]
    return [{"x": x, "value": x / base, "end": step == 40} for step, x in enumerate(xs)]
