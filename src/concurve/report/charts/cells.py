"""An indicator where no work factor is numeric: a row a cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from concurve.findings.cells import CellFindings
from concurve.findings.run import TrialFindings
from concurve.report import format as fmt
from concurve.report.charts.axes import LOG_SPAN, axis_title, scale_of
from concurve.report.charts.marks import (
    cut_intervals,
    dots_of,
    end_above_0,
    is_recommended,
    point_of,
)
from concurve.report.charts.series import Series, alternative, capital, file_name, row_labels
from concurve.report.charts.style import CROSS, CUT, DOUBTS, INK, PALETTE, RINGS, arrows, styled
from concurve.report.document import Chart


class _Rows(NamedTuple):
    """The rows of a chart: points and trials by row, the names of the rows, and remarks on what is
    left out. ``log``: their axis is logarithmic."""

    series: list[Series]
    heading: str
    points: list[dict[str, Any]]
    dots: list[dict[str, Any]]
    remarks: tuple[str, ...]
    log: bool


def of_cells(findings: TrialFindings, name: str, *, marks_best: bool = False) -> Chart | None:
    """A row a cell in level order: the value, its interval, and every trial. ``None`` if no cell
    has the indicator. ``marks_best``: recommended settings have a ring."""
    cells = tuple(cell for cell in findings.cells if name in cell.indicators)
    if not cells:
        return None
    label = findings.indicator(name).label or name
    scale = scale_of(findings, name, cells)
    rows = _rows(findings, name, cells, scale)
    for cell, point in zip(cells, rows.points, strict=True):
        point["best"] = marks_best and is_recommended(findings, cell)
    title = f"{capital(label)} of each cell" if len(cells) > 1 else capital(label)
    rings = (RINGS,) if any(point["best"] for point in rows.points) else ()
    return Chart(
        name=file_name(f"{name}-by-cell"),
        title=title,
        alternative=alternative(title, rows.points, rows.series, scale),
        in_table=True,
        remarks=(*rings, *rows.remarks),
        wide=True,
        draw=lambda: styled(_drawn(rows, label, scale)),
    )


def _rows(
    findings: TrialFindings, name: str, cells: Sequence[CellFindings], scale: fmt.Scale
) -> _Rows:
    varying = {factor.name for factor in findings.factors if len(factor.levels) > 1}
    labels, heading = row_labels(cells, [name for name in cells[0].parameters if name in varying])
    series = [Series(labels[cell.index], "", (cell,)) for cell in cells]
    points = [point_of(item.cells[0], name, scale, item) for item in series]
    dots, thinned = dots_of(findings, series, name, scale)
    for dot in dots:
        dot["offset"] = dot.pop("jitter")
        dot.pop("level", None)
    cut = cut_intervals(points, dots)
    values = [row["value"] for row in [*points, *dots]]
    log = min(values) > 0 and max(values) / min(values) > LOG_SPAN
    if log:
        end_above_0(points, dots)
    cut = CUT if any(point.get("cut_low") for point in points) else cut
    doubts = DOUBTS if any(point["doubt"] for point in points) else ""
    return _Rows(series, heading, points, dots, tuple(filter(None, (doubts, thinned, cut))), log)


def _drawn(rows: _Rows, label: str, scale: fmt.Scale) -> Any:
    """From the back: trials, intervals, points."""
    import altair as alt

    log = rows.log
    x_scale = alt.Scale(type="log") if log else alt.Scale(zero=True, nice=True)
    x = alt.X("value:Q", title=axis_title(label, scale, log), scale=x_scale)
    data: Any = {
        "values": [
            *({"kind": "point", **row} for row in rows.points),
            *({"kind": "dot", **row} for row in rows.dots),
        ]
    }
    base = alt.Chart(data).encode(y=_names(rows))
    of_points = base.transform_filter("datum.kind == 'point'")
    blue = alt.value(PALETTE[0])
    ends = {end: alt.X(f"{end}:Q", scale=x_scale) for end in ("low", "high")}
    offset = alt.YOffset("offset:Q", scale=alt.Scale(domain=[-3, 3]))
    layers = [
        base.transform_filter("datum.kind == 'dot' && datum.used")
        .mark_circle(size=16, opacity=0.6, color=PALETTE[0], aria=False)
        .encode(x=x, yOffset=offset),
        base.transform_filter("datum.kind == 'dot' && !datum.used")
        .mark_point(shape=CROSS, size=26, filled=False, strokeWidth=1.2, color=PALETTE[0])
        .encode(x=x, yOffset=offset, description="text:N", tooltip="text:N"),
        of_points.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2.2, color=PALETTE[0], aria=False)
        .encode(x=alt.X("low:Q", scale=x_scale), x2="high:Q"),
        *(arrows(of_points.transform_filter, "x", ends, color=blue) if CUT in rows.remarks else []),
        of_points.transform_filter("!datum.doubt")
        .mark_point(filled=True, size=60, opacity=1, color=PALETTE[0])
        .encode(x=x, description="text:N", tooltip="text:N"),
        of_points.transform_filter("datum.doubt")
        .mark_point(filled=False, size=70, strokeWidth=1.8, opacity=1, color=PALETTE[0])
        .encode(x=x, description="text:N", tooltip="text:N"),
        of_points.transform_filter("datum.best")
        .mark_point(filled=False, size=230, strokeWidth=1.6, stroke=INK, aria=False)
        .encode(x=x),
    ]
    step = 26 if len(rows.series) <= 40 else 18
    return alt.layer(*layers, width=480, height={"step": step})


def _names(rows: _Rows) -> Any:
    """The axis of the rows' names."""
    import altair as alt

    order = [item.label for item in rows.series]
    return alt.Y(
        "series:N",
        sort=order,
        title=rows.heading or None,
        axis=alt.Axis(
            titleAngle=0,
            titleAlign="right",
            titleAnchor="end",
            titleX=-8,
            titleY=-12,
            labelLimit=280,
            grid=True,
            ticks=False,
            labels=len(order) > 1 or order[0] != "",
        ),
    )
