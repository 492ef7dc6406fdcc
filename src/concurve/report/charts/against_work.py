"""An indicator against the work factor, one curve a combination of the other levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from concurve.findings.cells import CellFindings
from concurve.findings.run import Report
from concurve.report import format as fmt
from concurve.report.charts.axes import LOG_SPAN, WorkAxis, axis_title, scale_of, value_scale
from concurve.report.charts.curves import Fitted, curve_layers, curve_rows, key, legend_labels
from concurve.report.charts.marks import (
    cut_intervals,
    dots_of,
    end_above_0,
    end_at,
    gaps,
    ideal_line,
    is_recommended,
    point_of,
)
from concurve.report.charts.series import Series, alternative, capital, divided, file_name
from concurve.report.charts.style import (
    CROSS,
    CUT,
    DOUBTS,
    RINGS,
    SOFT,
    arrows,
    recommended,
    signs,
    styled,
)
from concurve.report.document import Chart
from concurve.terms import Factor

_PANEL_COLUMNS = 3
_CHART_SIZE = {"width": 420, "height": 250}
_PANEL_SIZE = {"width": 190, "height": 160}


class _Subject(NamedTuple):
    """The subject of a chart: an indicator with its unit, and its curves over the work factor.
    ``log`` says whether its values have a logarithmic axis; ``None``: where their span asks for it.
    """

    name: str
    label: str
    work: Factor
    axis: WorkAxis
    scale: fmt.Scale
    cells: Sequence[CellFindings]
    series: Sequence[Series]
    fitted: Fitted
    marks_best: bool = False
    log: bool | None = None

    @property
    def labels(self) -> list[str]:
        """The curves' labels, each once."""
        return list(dict.fromkeys(item.label for item in self.series))

    @property
    def panels(self) -> list[str]:
        """The panels, each once."""
        return list(dict.fromkeys(item.panel for item in self.series))


class _Marks(NamedTuple):
    """The marks of a chart: all rows, the span of the values, and a remark on what is left out."""

    points: list[dict[str, Any]]
    curves: list[dict[str, Any]]
    ideal: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    bottom: float
    top: float
    log: bool
    remarks: tuple[str, ...]

    @property
    def best(self) -> int:
        """How many recommended settings are marked."""
        return sum(point["best"] for point in self.points)


def against_work(
    findings: Report, work: Factor, name: str, *, marks_best: bool = False
) -> Chart | None:
    """The chart; ``None`` if no cell has the indicator. ``marks_best``: recommended settings have a
    ring."""
    cells = [cell for cell in findings.cells if name in cell.indicators]
    if not cells:
        return None
    series, remarks = divided(findings, work, cells)
    subject = _subject(findings, work, name, cells, series)._replace(marks_best=marks_best)
    if marks_best:
        subject = subject._replace(fitted=_without_doubt(subject))
    marks = _marks(findings, subject)
    other = _with_other_axes(subject, marks)
    heading = f"{capital(subject.label)} against {fmt.clean(work.name)}"
    rings = (RINGS,) if marks.best > 1 else ()
    return Chart(
        name=file_name(f"{name}-by-{work.name}"),
        title=heading,
        alternative=alternative(heading, marks.points, series, subject.scale),
        in_table=True,
        remarks=(*rings, *remarks, *marks.remarks),
        wide=len(subject.panels) > 1,
        draw=lambda: styled(_drawn(subject, marks)),
        curves=tuple(subject.labels) if len(subject.labels) > 1 else (),
        draw_other=(lambda: styled(_drawn(other, _marks(findings, other)))) if other else None,
        other_axes="linear axes" if marks.log else "logarithmic axes",
    )


def _with_other_axes(subject: _Subject, marks: _Marks) -> _Subject | None:
    """The chart with logarithmic axes, or with linear ones if it has them; ``None`` where a value
    is not above 0."""
    values = [row["value"] for row in marks.rows if row.get("value") is not None]
    if min(values) <= 0 or not subject.axis.can_be_log():
        return None
    axis = replace(subject.axis, log2=not marks.log)
    return subject._replace(axis=axis, log=not marks.log)


def _subject(
    findings: Report,
    work: Factor,
    name: str,
    cells: Sequence[CellFindings],
    series: Sequence[Series],
) -> _Subject:
    fitted = _fitted(findings, series, name)
    ahead = max((item.curves[name][-1].n for item in fitted.values()), default=None)
    return _Subject(
        name=name,
        label=findings.indicator(name).label or name,
        work=work,
        axis=WorkAxis.of(work, ahead),
        scale=scale_of(findings, name, cells),
        cells=cells,
        series=series,
        fitted=fitted,
    )


def _fitted(findings: Report, series: Sequence[Series], name: str) -> Fitted:
    """The models whose curves a chart of this indicator shows."""
    return {
        (one.panel, one.label): item
        for one in series
        for item in findings.scaling
        if name in item.curves and item.group.items() <= one.cells[0].parameters.items()
    }


def _without_doubt(subject: _Subject) -> Fitted:
    """The models but those of curves whose points are all in doubt: beside an answer that is
    withheld, a model with its band would look like one."""
    doubted = {
        (one.panel, one.label) for one in subject.series if _is_in_doubt(one.cells, subject.name)
    }
    return {where: item for where, item in subject.fitted.items() if where not in doubted}


def _is_in_doubt(cells: Sequence[CellFindings], name: str) -> bool:
    """Are all figures of a curve in doubt? The speed-up of a base cell is 1 by definition."""
    measured = [cell for cell in cells if name != "speedup" or cell.base not in (None, cell.index)]
    return bool(measured) and all(cell.indicators[name].in_doubt for cell in measured)


# -- what is drawn ----------------------------------------------------------------------------


def _marks(findings: Report, subject: _Subject) -> _Marks:
    """The rows of data, with intervals cut and curves moved apart so that the chart is readable."""
    name, work, series = subject.name, subject.work, subject.series
    points, dots, thinned = _placed(findings, subject)
    bottom = min(point["value"] for point in points)
    cut = cut_intervals(points, dots)
    top = max(row.get("high", row["value"]) for row in [*points, *dots])
    relative = name in ("speedup", "efficiency")
    log = not relative and bottom > 0 and top / bottom > LOG_SPAN
    # Over logarithmic levels the ideal line is straight where the speed-up is logarithmic, too.
    log = log or (name == "speedup" and bottom > 0 and subject.axis.log2)
    log = log if subject.log is None else subject.log
    if log:
        bottom = end_above_0(points, dots)
    else:
        end_at(points, min(0.0, bottom))
    curves = curve_rows(subject.fitted, name, subject.scale)
    if curves:
        # The predicted part must not compress the measured part.
        bottom = max(min(bottom, *(row["value"] for row in curves)), bottom / 2)
        top = min(max(top, *(row["value"] for row in curves)), 1.6 * top)
    # A speed-up has a margin above, where its ideal line rises beyond it.
    top = top * (1.25 if name == "speedup" else 1.08) if top > 0 else 1.0
    end = subject.axis.end
    ideal = ideal_line(name, work, subject.cells, findings, top, end) if relative else []
    rows = [
        *curves,
        *({"kind": "point", **row} for row in points),
        *({"kind": "point", **row} for row in gaps(series, work)),
        *({"kind": "dot", **row} for row in dots),
        *({"kind": "ideal", "panel": panel, **row} for panel in subject.panels for row in ideal),
    ]
    doubts = DOUBTS if any(point["doubt"] for point in points) else ""
    cut = CUT if any(point.get("cut_low") for point in points) else cut
    remarks = tuple(filter(None, (doubts, thinned, cut)))
    return _Marks(points, curves, ideal, rows, bottom, top, log, remarks)


def _placed(
    findings: Report, subject: _Subject
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """Points and dots at their positions on the axis, each curve with an offset; and a remark."""
    name, scale, axis = subject.name, subject.scale, subject.axis
    labels = subject.labels
    offsets = {label: at - (len(labels) - 1) / 2 for at, label in enumerate(labels)}
    points = [
        point_of(cell, name, scale, item)
        | {"x": axis.at(float(cell.parameters[subject.work.name]), offsets[item.label])}
        | {
            "joined": (item.panel, item.label) not in subject.fitted,
            "best": subject.marks_best and is_recommended(findings, cell),
        }
        for item in subject.series
        for cell in item.cells
    ]
    dots, thinned = dots_of(findings, subject.series, name, scale)
    for dot in dots:
        level, jitter = float(dot.pop("level")), float(dot.pop("jitter"))
        dot["x"] = axis.at(level, offsets[dot["series"]], jitter)
    return points, dots, thinned


# -- how it is drawn --------------------------------------------------------------------------


def _drawn(subject: _Subject, marks: _Marks) -> Any:
    """The layers, in panels where there are several."""
    import altair as alt

    panels = subject.panels
    size = _PANEL_SIZE if len(panels) > 1 else _CHART_SIZE
    # Given as the layers are joined, or in place: each method of a chart copies all of its layers.
    chart: Any = alt.layer(*_layers(subject, marks), **size)
    if len(panels) > 1:
        facet = alt.Facet("panel:N", sort=panels, title=None)
        chart = alt.FacetChart(spec=chart, facet=facet, columns=_columns(len(panels)))
    chart.data = {"values": marks.rows}
    if marks.curves:
        chart.title = key(subject.fitted, SOFT)
    return chart


def _columns(panels: int) -> int:
    """How many panels stand side by side; four make a square."""
    return 2 if panels == 4 else _PANEL_COLUMNS


def _layers(subject: _Subject, marks: _Marks) -> list[Any]:
    """From the back: models, ideal line, trials, curves, intervals, points."""
    import altair as alt

    axis, labels = subject.axis, subject.labels
    y_scale = value_scale(alt, marks.bottom, marks.top, marks.log)
    title = axis_title(subject.label, subject.scale, marks.log)
    x = alt.X("x:Q", title=fmt.clean(subject.work.name), scale=axis.scale(alt), axis=axis.axis(alt))
    y = alt.Y("value:Q", title=title, scale=y_scale, axis=alt.Axis(tickCount=6))
    low = alt.Y("low:Q", title=title, scale=y_scale)
    ends = {"low": low, "high": alt.Y("high:Q", title=title, scale=y_scale)}
    color, shape = signs(labels, legend_labels(labels, subject.fitted))
    texts = {"description": alt.Description("text:N"), "tooltip": alt.Tooltip("text:N")}

    def rows_where(condition: str) -> Any:
        return alt.Chart().transform_filter(condition).encode(x=x)

    guides = [
        rows_where("datum.kind == 'ideal'")
        .mark_line(strokeDash=[5, 4], strokeWidth=1.4, color=SOFT, clip=True, aria=False)
        .encode(y=y),
        rows_where("datum.kind == 'ideal' && datum.end")
        .mark_text(text="ideal", align="left", dx=10, dy=-8, fontSize=12, color=SOFT, aria=False)
        .encode(y=y),
    ]
    return [
        *(curve_layers(rows_where, y, low, color, len(labels)) if marks.curves else []),
        *(guides if marks.ideal else []),
        rows_where("datum.kind == 'dot' && datum.used")
        .mark_circle(size=15, opacity=0.6, clip=True, aria=False)
        .encode(y=y, color=color),
        rows_where("datum.kind == 'dot' && !datum.used")
        .mark_point(shape=CROSS, size=26, opacity=0.9, filled=False, strokeWidth=1.2, clip=True)
        .encode(y=y, color=color, **texts),
        rows_where("datum.kind == 'point' && datum.joined")
        .mark_line(strokeWidth=1.8, clip=True, aria=False)
        .encode(y=y, color=color),
        rows_where("datum.kind == 'point' && isValid(datum.low)")
        .mark_rule(strokeWidth=2.2, clip=True, aria=False)
        .encode(y=low, y2="high:Q", color=color),
        *(arrows(rows_where, "y", ends, color=color) if CUT in marks.remarks else []),
        rows_where("datum.kind == 'point' && isValid(datum.value) && !datum.doubt")
        .mark_point(filled=True, size=38, opacity=1, clip=True)
        .encode(y=y, color=color, shape=shape, **texts),
        rows_where("datum.kind == 'point' && isValid(datum.value) && datum.doubt")
        .mark_point(filled=False, size=46, strokeWidth=1.8, opacity=1, clip=True)
        .encode(y=y, color=color, shape=shape, **texts),
        *(recommended(rows_where("datum.best"), y, is_named=marks.best == 1) if marks.best else []),
    ]
