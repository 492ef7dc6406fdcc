"""The charts of a run: findings in, Altair charts out, and those as SVG and PNG.

With a numeric work factor: the primary indicator, the speed-up with its ideal line, the
efficiency and the CPU time, each against the work factor, one curve per combination of levels
of the other factors. Where scaling models were fitted, the curves are theirs, on to twice the
greatest level. Without a numeric work factor: a row a cell, with its interval. Every trial is a
dot; rejected ones are hollow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concurve.findings import CellFindings, Dot, Factor, Findings
from concurve.report import format as fmt
from concurve.report.curves import Fitted, curve_layers, curve_rows, key, legend_labels

# Okabe and Ito's colours, those that stand out on white first, with shapes as a second sign.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#56b4e9", "#882255", "#6b6b6b")
# The same on a dark ground.
PALETTE_DARK = (
    "#5db3ee",
    "#ff8f4d",
    "#3fd3a8",
    "#e08ad6",
    "#e3b341",
    "#a5d8f7",
    "#e07aa5",
    "#b5b5b5",
)
_SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "stroke",
    "wedge",
)
INK, SOFT, GRID = "#222428", "#5f6470", "#e3e5ea"

_SERIES_MAX = len(PALETTE)
_PANELS_MAX = 24
_PANEL_COLUMNS = 3
# Dots drawn of one cell at most; a chart of more is a smear, and its file large.
_DOTS_PER_CELL_MAX = 60
_DOTS_MAX = 6000
# A span of values beyond this needs a logarithmic axis to be read.
_LOG_SPAN = 30.0
_LOG2_SPAN = 8.0
# A logarithmic axis begins at this share of the least figure, and ends as far above the greatest.
_LOG_ROOM = 0.8
# An interval may reach so many times as far as the greatest figure.
_INTERVAL_REACH = 2.0
_LABEL_LENGTH_MAX = 44
_CHART_SIZE = {"width": 560, "height": 300}
_PANEL_SIZE = {"width": 190, "height": 160}


@dataclass(frozen=True)
class Chart:
    """A chart with its file name, title, alternative text and remarks on what it leaves out.

    ``wide`` charts hold several panels, or rows with long names, and want a line to themselves.
    """

    name: str
    title: str
    alternative: str
    remarks: tuple[str, ...]
    wide: bool
    spec: Any

    def to_svg(self) -> str:
        """Static SVG, on its own or inline."""
        import vl_convert

        return str(vl_convert.vegalite_to_svg(self.spec.to_dict()))

    def to_png(self, scale: float = 2.0) -> bytes:
        """PNG on white at ``scale`` pixels per point."""
        import vl_convert

        spec = self.spec.properties(background="white").to_dict()
        return bytes(vl_convert.vegalite_to_png(spec, scale=scale))


@dataclass(frozen=True)
class _Series:
    label: str
    panel: str
    cells: tuple[CellFindings, ...]


@dataclass(frozen=True)
class _WorkAxis:
    """The axis of the work factor: binary logarithm for powers of two and wide spans."""

    levels: tuple[float, ...]
    log2: bool
    end: float

    @classmethod
    def of(cls, work: Factor, ahead: float | None = None) -> _WorkAxis:
        """The axis of the levels, on to ``ahead`` if that lies further."""
        levels = tuple(sorted(float(level) for level in work.levels))
        powers = len(levels) > 2 and all(
            level > 0 and math.log2(level).is_integer() for level in levels
        )
        wide = levels[0] > 0 and levels[-1] / levels[0] > _LOG2_SPAN
        return cls(levels, powers or wide, max(levels[-1], ahead or levels[-1]))

    def at(self, level: float, lane: float, jitter: float | None = None) -> float:
        """Where a mark goes: each curve in a lane of its own, so that no bar hides another.

        Dots, which have a jitter, stand a little right of their curve's bar.
        """
        shift = 0.006 * lane + (0.0 if jitter is None else 0.018 + 0.005 * jitter)
        shift *= min(1.0, 10 / len(self.levels))
        if self.log2:
            return level * float((self.levels[-1] / self.levels[0]) ** shift)
        return level + (self.levels[-1] - self.levels[0]) * shift

    def scale(self, alt: Any) -> Any:
        """Room on both sides for the dots; the levels lie inside."""
        low, high = self.levels[0], self.end
        if self.log2:
            room = (high / low) ** 0.02
            return alt.Scale(type="log", base=2, domain=[low / room, high * room**2], nice=False)
        room = (high - low) * 0.02
        return alt.Scale(domain=[low - room, high + 2 * room], nice=False)

    def axis(self, alt: Any) -> Any:
        """Ticks at the levels themselves, as far as there is room."""
        return alt.Axis(
            values=[*self.levels, *([self.end] if self.end > self.levels[-1] else [])],
            labelOverlap="greedy",
            labelExpr="format(datum.value, datum.value >= 10000 ? '~s' : '~r')",
        )


def charts(findings: Findings) -> list[Chart]:
    """All charts that the findings bear; none if no cell has the primary indicator."""
    work = findings.work
    if work is not None and len(work.levels) > 1 and _numeric(work):
        wanted = dict.fromkeys(_wanted(findings))
        drawn = (_against_work(findings, work, name) for name in wanted)
    else:
        drawn = (_per_cell(findings, name) for name in dict.fromkeys((findings.primary,)))
    found = [chart for chart in drawn if chart is not None]
    if findings.shares is not None:
        from concurve.report.worker_chart import bars

        found.append(bars(findings.shares))
    return found


def _wanted(findings: Findings) -> Iterator[str]:
    """The indicators to draw; where the time of an operation counts, its CPU time, since runs of a
    given length all take as long, and how slow the slow ones are."""
    yield from (findings.primary, *_of_models(findings), "speedup", "efficiency")
    if findings.primary == "seconds_per_operation":
        yield "cpu_seconds_per_operation"
        yield from (name for name in findings.asked if name.endswith("latency_ns_p99"))
    else:
        yield "cpu_seconds"


def _of_models(findings: Findings) -> tuple[str, ...]:
    """The throughput that was fitted, where no other chart shows its curves."""
    shown = (findings.primary, "speedup")
    fitted = [item for item in findings.scaling if item.fit is not None]
    told = any(name in item.curves for item in fitted for name in shown)
    return (fitted[0].indicator,) if fitted and not told else ()


def write_static(
    findings: Findings, folder: Path, formats: Sequence[str] = ("svg", "png")
) -> list[Path]:
    """Write each chart of a run into the folder in each format; the paths written."""
    return write_charts(charts(findings), folder, formats)


def write_charts(
    drawn: Iterable[Chart], folder: Path, formats: Sequence[str] = ("svg", "png")
) -> list[Path]:
    """Write charts into the folder in each format; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in drawn:
        for kind in formats:
            path = folder / f"{chart.name}.{kind}"
            if kind == "svg":
                path.write_text(chart.to_svg(), encoding="utf-8")
            elif kind == "png":
                path.write_bytes(chart.to_png())
            else:
                raise ValueError(f"charts are written as svg or png, not {kind!r}")
            written.append(path)
    return written


def _against_work(findings: Findings, work: Factor, name: str) -> Chart | None:
    """An indicator against the work factor, one curve a combination of the other levels."""
    import altair as alt

    cells = [cell for cell in findings.cells if name in cell.indicators]
    if not cells:
        return None
    series, remarks = _series(findings, work, cells)
    info = findings.indicator(name)
    scale = _scale(findings, name, cells)
    fitted = _fitted(findings, series, name)
    ahead = max((item.curves[name][-1].n for item in fitted.values()), default=None)
    axis = _WorkAxis.of(work, ahead)
    domain = list(dict.fromkeys(item.label for item in series))
    lanes = {label: lane - (len(domain) - 1) / 2 for lane, label in enumerate(domain)}
    points = [
        _point(cell, name, scale, item)
        | {"x": axis.at(float(cell.parameters[work.name]), lanes[item.label])}
        | {"joined": (item.panel, item.label) not in fitted}
        for item in series
        for cell in item.cells
    ]
    dots, thinned = _dots(findings, series, name, scale)
    for dot in dots:
        level, jitter = float(dot.pop("level")), float(dot.pop("jitter"))
        dot["x"] = axis.at(level, lanes[dot["series"]], jitter)

    bottom = min(point["value"] for point in points)
    cut = _cut_intervals(points, dots)
    top = max(row.get("high", row["value"]) for row in [*points, *dots])
    relative = name in ("speedup", "efficiency")
    log_y = not relative and bottom > 0 and top / bottom > _LOG_SPAN
    bottom = _end_above_0(points, dots) if log_y else bottom
    curves = curve_rows(fitted, name, scale)
    if curves:
        # What is expected has room, but does not press the measured part together.
        bottom = max(min(bottom, *(row["value"] for row in curves)), bottom / 2)
        top = min(max(top, *(row["value"] for row in curves)), 1.6 * top)
    # A speed-up leaves room above, where its ideal line begins to run ahead.
    top = top * (1.25 if name == "speedup" else 1.08) if top > 0 else 1.0
    panels = list(dict.fromkeys(item.panel for item in series))
    ideal = _ideal(name, work, cells, findings, top, axis.end) if relative else []
    rows = [
        *curves,
        *({"kind": "point", **row} for row in points),
        *({"kind": "point", **row} for row in _gaps(series, work)),
        *({"kind": "dot", **row} for row in dots),
        *({"kind": "ideal", "panel": panel, **row} for panel in panels for row in ideal),
    ]

    y_scale = _value_scale(alt, bottom, top, log_y)
    title = _axis_title(info.label or name, scale, log_y)
    x = alt.X("x:Q", title=fmt.clean(work.name), scale=axis.scale(alt), axis=axis.axis(alt))
    y = alt.Y("value:Q", title=title, scale=y_scale, axis=alt.Axis(tickCount=6))
    low = alt.Y("low:Q", title=title, scale=y_scale)
    color, shape = _signs(domain, legend_labels(domain, fitted))
    told = {"description": alt.Description("text:N"), "tooltip": alt.Tooltip("text:N")}

    def rows_where(condition: str) -> Any:
        return alt.Chart().transform_filter(condition).encode(x=x)

    guides = [
        rows_where("datum.kind == 'ideal'")
        .mark_line(strokeDash=[5, 4], strokeWidth=1.4, color=SOFT, clip=True, aria=False)
        .encode(y=y),
        rows_where("datum.kind == 'ideal' && datum.end")
        .mark_text(text="ideal", align="left", dx=6, dy=8, fontSize=12, color=SOFT, aria=False)
        .encode(y=y),
    ]
    layers = [
        *(curve_layers(rows_where, y, low, color, len(domain)) if curves else []),
        *(guides if ideal else []),
        rows_where("datum.kind == 'dot' && datum.used")
        .mark_circle(size=15, opacity=0.6, clip=True, aria=False)
        .encode(y=y, color=color),
        rows_where("datum.kind == 'dot' && !datum.used")
        .mark_point(size=26, opacity=0.9, filled=False, strokeWidth=1.2, clip=True)
        .encode(y=y, color=color, **told),
        rows_where("datum.kind == 'point' && datum.joined")
        .mark_line(strokeWidth=1.8, clip=True, aria=False)
        .encode(y=y, color=color),
        rows_where("datum.kind == 'point' && isValid(datum.low)")
        .mark_rule(strokeWidth=2.2, clip=True, aria=False)
        .encode(y=low, y2="high:Q", color=color),
        rows_where("datum.kind == 'point' && isValid(datum.value)")
        .mark_point(filled=True, size=38, opacity=1, clip=True)
        .encode(y=y, color=color, shape=shape, **told),
    ]
    chart: Any = alt.layer(*layers).properties(**(_PANEL_SIZE if len(panels) > 1 else _CHART_SIZE))
    data: Any = {"values": rows}
    if len(panels) > 1:
        facet = alt.Facet("panel:N", sort=panels, title=None)
        chart = chart.facet(facet=facet, columns=_columns(len(panels)), data=data)
    else:
        chart = chart.properties(data=data)
    if curves:
        chart = chart.properties(title=key(fitted, SOFT))
    heading = f"{_capital(info.label or name)} against {fmt.clean(work.name)}"
    return Chart(
        name=_file_name(f"{name}-by-{work.name}"),
        title=heading,
        alternative=_alternative(heading, points, series, scale),
        remarks=(*remarks, *filter(None, (thinned, cut))),
        wide=len(panels) > 1,
        spec=styled(chart),
    )


def _columns(panels: int) -> int:
    """How many panels stand side by side; four make a square."""
    return 2 if panels == 4 else _PANEL_COLUMNS


def _fitted(findings: Findings, series: Sequence[_Series], name: str) -> Fitted:
    """The models whose curves a chart of this indicator shows."""
    return {
        (one.panel, one.label): item
        for one in series
        for item in findings.scaling
        if name in item.curves and item.group.items() <= one.cells[0].parameters.items()
    }


def _signs(domain: list[str], labels: dict[str, Any]) -> tuple[Any, Any]:
    """Colour and shape of each curve, with a legend where there are several."""
    import altair as alt

    legend = (
        alt.Legend(orient="top", title=None, columns=4, symbolSize=70, symbolOpacity=1, **labels)
        if len(domain) > 1
        else None
    )
    colours, shapes = _taken(PALETTE, domain), _taken(_SHAPES, domain)
    color = alt.Color(
        "series:N", sort=domain, scale=alt.Scale(domain=domain, range=colours), legend=legend
    )
    shape = alt.Shape(
        "series:N", sort=domain, scale=alt.Scale(domain=domain, range=shapes), legend=legend
    )
    return color, shape


def _end_above_0(points: list[dict[str, Any]], dots: Sequence[dict[str, Any]]) -> float:
    """Let no interval reach below the least figure's neighbourhood: on a logarithmic axis 0 is
    infinitely far. The least figure above 0."""
    bottom: float = min(row["value"] for row in [*points, *dots] if row["value"] > 0)
    for point in points:
        if point.get("low") is not None:
            point["low"] = max(point["low"], bottom * _LOG_ROOM)
    return bottom


def _value_scale(alt: Any, bottom: float, top: float, log: bool) -> Any:
    """The axis of the values; bands do not stretch it."""
    if log:
        domain = [bottom * _LOG_ROOM, top / _LOG_ROOM]
        return alt.Scale(type="log", domain=domain, nice=False)
    return alt.Scale(domain=[min(0.0, bottom), top], nice=False)


def _gaps(series: Sequence[_Series], work: Factor) -> list[dict[str, Any]]:
    """Rows without a value where a curve has no figure: the line breaks there."""
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


def _ideal(
    name: str,
    work: Factor,
    cells: Iterable[CellFindings],
    findings: Findings,
    top: float,
    end: float,
) -> list[dict[str, Any]]:
    """The line of a program that uses every further worker in full, up to the chart's top."""
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
    if base <= 0:
        return []
    first, last = max(levels[0], base / 10), min(end, top * 0.97 * base)
    # A line is straight on linear axes only: many short ones serve both.
    xs = [first * (last / first) ** (step / 40) for step in range(41)]
    return [{"x": x, "value": x / base, "end": step == 40} for step, x in enumerate(xs)]


def _per_cell(findings: Findings, name: str) -> Chart | None:
    """A row a cell in level order: the value, its interval, and every trial."""
    import altair as alt

    cells = tuple(cell for cell in findings.cells if name in cell.indicators)
    if not cells:
        return None
    info = findings.indicator(name)
    scale = _scale(findings, name, cells)
    varying = {factor.name for factor in findings.factors if len(factor.levels) > 1}
    labels, axis_title = _labels(cells, [name for name in cells[0].parameters if name in varying])
    series = [_Series(labels[cell.index], "", (cell,)) for cell in cells]
    points = [_point(item.cells[0], name, scale, item) for item in series]
    dots, thinned = _dots(findings, series, name, scale)
    for dot in dots:
        dot["offset"] = dot.pop("jitter")
        dot.pop("level", None)
    cut = _cut_intervals(points, dots)
    order = [item.label for item in series]
    values = [p["value"] for p in points] + [d["value"] for d in dots]
    log_x = min(values) > 0 and max(values) / min(values) > _LOG_SPAN
    x_scale = alt.Scale(type="log") if log_x else alt.Scale(zero=True, nice=True)
    x = alt.X("value:Q", title=_axis_title(info.label or name, scale, log_x), scale=x_scale)
    y = alt.Y(
        "series:N",
        sort=order,
        title=axis_title or None,
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
    data: Any = {
        "values": [{"kind": "point", **p} for p in points] + [{"kind": "dot", **d} for d in dots]
    }
    base = alt.Chart(data).encode(y=y)
    of_points = base.transform_filter("datum.kind == 'point'")
    offset = alt.YOffset("offset:Q", scale=alt.Scale(domain=[-3, 3]))
    layers = [
        base.transform_filter("datum.kind == 'dot' && datum.used")
        .mark_circle(size=16, opacity=0.6, color=PALETTE[0], aria=False)
        .encode(x=x, yOffset=offset),
        base.transform_filter("datum.kind == 'dot' && !datum.used")
        .mark_point(size=26, filled=False, strokeWidth=1.2, color=PALETTE[0])
        .encode(x=x, yOffset=offset, description="text:N", tooltip="text:N"),
        of_points.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2.2, color=PALETTE[0], aria=False)
        .encode(x=alt.X("low:Q", scale=x_scale), x2="high:Q"),
        of_points.mark_point(filled=True, size=60, opacity=1, color=PALETTE[0]).encode(
            x=x, description="text:N", tooltip="text:N"
        ),
    ]
    title = (
        f"{_capital(info.label or name)} of each cell"
        if len(cells) > 1
        else _capital(info.label or name)
    )
    step = 26 if len(cells) <= 40 else 18
    return Chart(
        name=_file_name(f"{name}-by-cell"),
        title=title,
        alternative=_alternative(title, points, series, scale),
        remarks=tuple(filter(None, (thinned, cut))),
        wide=True,
        spec=styled(alt.layer(*layers).properties(width=480, height={"step": step})),
    )


def _series(
    findings: Findings, work: Factor, cells: Sequence[CellFindings]
) -> tuple[list[_Series], tuple[str, ...]]:
    """The curves, divided among panels where one would hold too many of them."""
    others = [f.name for f in findings.factors if not f.work and len(f.levels) > 1]
    panel_factors: list[str] = []
    curve_factors = list(others)
    lengths = {factor.name: len(factor.levels) for factor in findings.factors}
    while curve_factors and math.prod(lengths[name] for name in curve_factors) > _SERIES_MAX:
        # The factor whose levels are most goes to the panels: fewest curves remain in each.
        most = max(curve_factors, key=lambda name: lengths[name])
        curve_factors.remove(most)
        panel_factors.append(most)
    groups: dict[tuple[str, str], list[CellFindings]] = {}
    for cell in cells:
        key = (_label(cell, panel_factors), _label(cell, curve_factors))
        groups.setdefault(key, []).append(cell)
    panels = list(dict.fromkeys(panel for panel, _ in groups))
    remarks: tuple[str, ...] = ()
    if len(panels) > _PANELS_MAX:
        remarks = (f"The first {_PANELS_MAX} of {len(panels)} panels; the table has all cells.",)
        panels = panels[:_PANELS_MAX]
    series = [
        _Series(label, panel, tuple(sorted(group, key=lambda c: float(c.parameters[work.name]))))
        for (panel, label), group in groups.items()
        if panel in panels
    ]
    return series, remarks


def _scale(findings: Findings, name: str, cells: Iterable[CellFindings]) -> fmt.Scale:
    """The unit that an axis of these cells is drawn in."""
    figures = [cell.indicators[name] for cell in cells]
    unit = next((figure.unit for figure in figures if figure.unit), findings.indicator(name).unit)
    return fmt.scale_for([figure.value for figure in figures], unit)


def _label(cell: CellFindings, factors: Iterable[str]) -> str:
    parts = (f"{name} {cell.parameters[name]}" for name in factors if name in cell.parameters)
    return _shortened(fmt.clean(", ".join(parts)))


def _labels(cells: Sequence[CellFindings], factors: Sequence[str]) -> tuple[dict[int, str], str]:
    """A label a cell, no two alike: rows of one name would fall together. Where the names of the
    factors leave no room for their levels, they stand above all labels."""
    texts = [_label(cell, factors) for cell in cells]
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


def _point(cell: CellFindings, name: str, scale: fmt.Scale, series: _Series) -> dict[str, Any]:
    figure = cell.indicators[name]
    shown = fmt.estimate(figure, scale)
    where = fmt.setting(cell.parameters)
    span = f" ({shown.span})" if shown.span else ""
    text = f"{where}: {fmt.with_unit(shown.value, shown.unit)}{span}, n = {figure.n}".lstrip(": ")
    point: dict[str, Any] = {
        "value": figure.value / scale.divisor,
        "series": series.label,
        "panel": series.panel,
        "text": text,
    }
    if figure.low is not None and figure.high is not None:
        point |= {"low": figure.low / scale.divisor, "high": figure.high / scale.divisor}
    return point


def _dots(
    findings: Findings, series: Sequence[_Series], name: str, scale: fmt.Scale
) -> tuple[list[dict[str, Any]], str]:
    """Every trial's figure; of very many, evenly chosen ones, and a remark that says so."""
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


def _cut_intervals(points: list[dict[str, Any]], dots: Sequence[dict[str, Any]]) -> str:
    """Cut intervals that would press all figures together; a remark, if there was one."""
    most = _INTERVAL_REACH * max(row["value"] for row in [*points, *dots])
    wild = [point for point in points if point.get("high", most) > most > 0]
    for point in wild:
        point["high"] = most
    return "Intervals that reach far beyond all figures are cut." if wild else ""


def _alternative(
    title: str, points: Sequence[dict[str, Any]], series: Sequence[_Series], scale: fmt.Scale
) -> str:
    """What the chart shows, for those who do not see it."""
    values = [point["value"] for point in points]
    low, high = fmt.plain(min(values)), fmt.plain(max(values))
    curves = f" in {fmt.count(len(series), 'curve')}" if len(series) < len(points) else ""
    return (
        f"{title}: {fmt.count(len(points), 'cell')}{curves}, "
        f"from {fmt.with_unit(low, scale.symbol)} to {fmt.with_unit(high, scale.symbol)}. "
        "The table below has the same figures."
    )


def _numeric(factor: Factor) -> bool:
    return all(isinstance(level, (int, float)) and math.isfinite(level) for level in factor.levels)


def _axis_title(label: str, scale: fmt.Scale, log: bool) -> str:
    unit = "" if scale.symbol == "×" else scale.symbol
    notes = [note for note in (unit, "logarithmic" if log else "") if note]
    return f"{fmt.clean(label)} ({', '.join(notes)})" if notes else fmt.clean(label)


def _taken(values: Sequence[str], domain: Sequence[str]) -> list[str]:
    return [values[number % len(values)] for number in range(len(domain))]


def _capital(text: str) -> str:
    text = fmt.clean(text)
    return text[:1].upper() + text[1:]


def _file_name(text: str) -> str:
    return "".join(char if char.isalnum() and char.isascii() else "-" for char in text).strip("-")


def styled(chart: Any) -> Any:
    """The look that all charts share."""
    font = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
    return (
        chart.configure(font=font, background="transparent", padding=6)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=SOFT,
            titleColor=INK,
            gridColor=GRID,
            domainColor=SOFT,
            tickColor=SOFT,
            labelFontSize=12,
            titleFontSize=12.5,
            titleFontWeight=500,
            titlePadding=8,
        )
        .configure_axisX(grid=False)
        .configure_axisY(domain=False, ticks=False)
        .configure_legend(labelColor=INK, labelFontSize=12.5, symbolStrokeWidth=2, labelLimit=260)
        .configure_header(labelColor=INK, labelFontSize=12.5, labelFontWeight=600)
    )
