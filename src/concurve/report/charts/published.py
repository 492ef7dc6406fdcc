"""The chart of a published table: the source's figures and ours, both relative to their base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from concurve.findings.published import PublishedComparison, PublishedTable
from concurve.report import format as fmt
from concurve.report.charts.style import CUT, PALETTE, SOFT, arrows, styled
from concurve.report.document import Chart

_SERIES = ("published", "ours")
_PANEL_COLUMNS = 3
_LABEL_LONG = 10
# Intervals are cut beyond the figures by the span of these, or by this share of the greatest.
_MARGIN = 0.25


class _Layout(NamedTuple):
    """Which headings are the positions along the curves, and which have a panel each."""

    along: tuple[str, ...]
    panels: tuple[str, ...]
    transposed: bool

    def place(self, figure: PublishedComparison) -> tuple[str, str]:
        """Place along the curve, and panel."""
        pair = (figure.row, figure.column) if self.transposed else (figure.column, figure.row)
        return fmt.clean(pair[0]), fmt.clean(pair[1])


def comparison_chart(table: PublishedTable) -> Chart | None:
    """A panel a row of the table, or a column where that holds one kind of figure; ``None`` where
    there is nothing of ours to draw."""
    held = _held(table)
    layout = _layout(table, held)
    points = [
        point
        for panel in layout.panels
        for figures in [[f for f in held if layout.place(f)[1] == fmt.clean(panel)]]
        if _is_drawn(figures)
        for figure in figures
        for point in _pair(figure, *layout.place(figure))
    ]
    if not points:
        return None
    cut = _cut_intervals(points)
    name = f"table-{table.number}-published-and-ours"
    title = f"{table.figure_title or table.title}: published and new".lstrip(": ")
    return Chart(
        name="".join(char if char.isalnum() else "-" for char in name),
        title=title,
        alternative=f"{title}. The table above has the same figures.",
        in_table=True,
        remarks=(CUT,) if cut else (),
        wide=len(_panels(points)) > 1,
        draw=lambda: _drawn(table, layout, held, points),
        label=f"Figure {table.figure}" if table.figure else "",
    )


def _drawn(
    table: PublishedTable,
    layout: _Layout,
    held: Sequence[PublishedComparison],
    points: list[dict[str, Any]],
) -> Any:
    import altair as alt

    panels = _panels(points)
    columns = [fmt.clean(name) for name in layout.along]
    long = max(len(column) for column in columns) > _LABEL_LONG
    x = alt.X(
        "column:N",
        sort=columns,
        title=None,
        axis=alt.Axis(labelAngle=-35 if long else 0, labelLimit=150, labelOverlap=True),
    )
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    colour = alt.Color(
        "series:N",
        sort=_SERIES,
        scale=alt.Scale(domain=list(_SERIES), range=[SOFT, PALETTE[0]]),
        legend=alt.Legend(orient="top", title=None),
    )
    shape = alt.Shape(
        "series:N",
        sort=_SERIES,
        scale=alt.Scale(domain=list(_SERIES), range=["diamond", "circle"]),
        legend=alt.Legend(orient="top", title=None),
    )
    ends = {end: alt.Y(f"{end}:Q", title=None) for end in ("low", "high")}
    texts = {"description": alt.Description("text:N"), "tooltip": alt.Tooltip("text:N")}
    base = alt.Chart().encode(x=x)
    layers = [
        base.mark_line(strokeWidth=1.6, aria=False).encode(y=y, color=colour),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2.4, aria=False)
        .encode(y=alt.Y("low:Q", title=None), y2="high:Q", color=colour),
        *arrows(base.transform_filter, "y", ends, color=colour),
        # Hollow and larger, so that it is seen where both are the same.
        base.transform_filter("datum.series == 'published'")
        .mark_point(filled=False, size=110, strokeWidth=1.6, opacity=1)
        .encode(y=y, color=colour, shape=shape, **texts),
        base.transform_filter("datum.series == 'ours'")
        .mark_point(filled=True, size=60, opacity=1)
        .encode(y=y, color=colour, shape=shape, **texts),
    ]
    data: Any = {"values": points}
    chart: Any = alt.layer(*layers)
    if len(panels) > 1:
        facet = alt.Facet("panel:N", sort=panels, title=None)
        chart = chart.properties(width=230, height=150)
        # Scales of their own stand side by side, in pairs.
        pairs = any(figure.compare == "order" for figure in held)
        chart = chart.facet(facet=facet, columns=2 if pairs else _PANEL_COLUMNS, data=data)
        chart = chart.resolve_scale(y="independent", x="independent")
    else:
        chart = chart.properties(width=480, height=240, data=data)
    return styled(chart)


def _panels(points: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(point["panel"] for point in points))


def _cut_intervals(points: list[dict[str, Any]]) -> bool:
    """Cut intervals that would compress a panel's figures; ``True`` if there was one."""
    cut = False
    for panel in {point["panel"] for point in points}:
        here = [point for point in points if point["panel"] == panel]
        values = [point["value"] for point in here]
        margin = max(max(values) - min(values), _MARGIN * max(map(abs, values)))
        least, most = min(values) - margin, max(values) + margin
        for point in here:
            if point.get("low", least) < least:
                point |= {"low": least, "cut_low": True}
            if point.get("high", most) > most:
                point |= {"high": most, "cut_high": True}
            cut = cut or "cut_low" in point or "cut_high" in point
    return cut


def _held(table: PublishedTable) -> list[PublishedComparison]:
    """The figures that are compared with ours; if there are none, those shown side by side."""
    held = [figure for figure in table.figures if figure.compare != "none"]
    return held or [figure for figure in table.figures if figure.indicator]


def _layout(table: PublishedTable, held: Sequence[PublishedComparison]) -> _Layout:
    """Curves run along the columns, unless a row mixes indicators and a column does not."""
    if _mixed(held, "row") and not _mixed(held, "column"):
        return _Layout(table.rows, table.columns, True)
    return _Layout(table.columns, table.rows, False)


def _mixed(figures: Sequence[PublishedComparison], heading: str) -> bool:
    kinds: dict[str, set[tuple[str, str]]] = {}
    for figure in figures:
        kinds.setdefault(getattr(figure, heading), set()).add((figure.indicator, figure.compare))
    return any(len(found) > 1 for found in kinds.values())


def _is_drawn(figures: Sequence[PublishedComparison]) -> bool:
    """Is there more of ours than a base or a single figure?"""
    ours = [figure for figure in figures if figure.ours is not None]
    return len(figures) > 1 and any(figure.verdict != "base" for figure in ours)


def _pair(figure: PublishedComparison, place: str, panel: str) -> list[dict[str, Any]]:
    """The published figure and ours; on scales of their own where they are not comparable."""
    apart = figure.compare in ("order", "none")
    pair: list[dict[str, Any]] = []
    if figure.published is not None:
        text = f"{panel}, {place}: published {fmt.plain(figure.published)}"
        pair.append(
            {"series": "published", "value": figure.published, "text": text, "panel": panel}
        )
    if figure.ours is not None:
        shown = fmt.estimate(figure.ours).text
        ours: dict[str, Any] = {"series": "ours", "value": figure.ours.value}
        ours["text"] = f"{panel}, {place}: ours {shown}"
        ours["panel"] = f"{panel}: ours" if apart else panel
        if figure.ours.low is not None and figure.ours.high is not None:
            ours |= {"low": figure.ours.low, "high": figure.ours.high}
        pair.append(ours)
    return [point | {"column": place} for point in pair]
