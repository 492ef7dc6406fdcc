"""The chart of a published table: the source's figures and ours, both relative to their base."""

from __future__ import annotations

from typing import Any

from concurve.findings import PublishedComparison, PublishedTable
from concurve.report import format as fmt
from concurve.report.charts import PALETTE, SOFT, Chart, styled

_SERIES = ("published", "ours")
_PANEL_COLUMNS = 3
_LABEL_LONG = 10


def comparison_chart(table: PublishedTable) -> Chart | None:
    """A panel a row of the table; ``None`` where no row has two figures to draw."""
    import altair as alt

    rows = [row for row in table.rows if _drawn(table, row)]
    if not rows:
        return None
    points = [point for row in rows for point in _points(table, row)]
    panels = list(dict.fromkeys(point["panel"] for point in points))
    columns = [fmt.clean(column) for column in table.columns]
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
    told = {"description": alt.Description("text:N"), "tooltip": alt.Tooltip("text:N")}
    base = alt.Chart().encode(x=x)
    layers = [
        base.mark_line(strokeWidth=1.6, aria=False).encode(y=y, color=colour),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2.4, aria=False)
        .encode(y=alt.Y("low:Q", title=None), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            y=y, color=colour, shape=shape, **told
        ),
    ]
    data: Any = {"values": points}
    chart: Any = alt.layer(*layers)
    if len(panels) > 1:
        facet = alt.Facet("panel:N", sort=panels, title=None)
        chart = chart.properties(width=230, height=150)
        chart = chart.facet(facet=facet, columns=_PANEL_COLUMNS, data=data)
        chart = chart.resolve_scale(y="independent", x="independent")
    else:
        chart = chart.properties(width=480, height=240, data=data)
    name = f"table-{table.number}-published-and-ours"
    title = fmt.clean(f"{table.figure_title or table.title}: published and new".lstrip(": "))
    return Chart(
        name="".join(char if char.isalnum() else "-" for char in name),
        title=title,
        alternative=f"{title}. The table above has the same figures.",
        remarks=(),
        wide=len(panels) > 1,
        spec=styled(chart),
    )


def _drawn(table: PublishedTable, row: str) -> bool:
    """Is there a figure of ours to draw, and more than the base?"""
    figures = [figure for figure in table.figures if figure.row == row and figure.ours is not None]
    return any(figure.verdict != "base" for figure in figures)


def _points(table: PublishedTable, row: str) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = []
    for figure in table.figures:
        if figure.row == row:
            points += _pair(figure)
    return points


def _pair(figure: PublishedComparison) -> list[dict[str, Any]]:
    """The published figure and ours; on scales of their own where they are not comparable."""
    row, column = fmt.clean(figure.row), fmt.clean(figure.column)
    apart = figure.compare == "none"
    pair: list[dict[str, Any]] = []
    if figure.published is not None:
        text = f"{row}, {column}: published {fmt.plain(figure.published)}"
        pair.append({"series": "published", "value": figure.published, "text": text, "panel": row})
    if figure.ours is not None:
        shown = fmt.estimate(figure.ours).text
        ours: dict[str, Any] = {"series": "ours", "value": figure.ours.value}
        ours["text"] = f"{row}, {column}: ours {shown}"
        ours["panel"] = f"{row}: ours" if apart else row
        if figure.ours.low is not None and figure.ours.high is not None:
            ours |= {"low": figure.ours.low, "high": figure.ours.high}
        pair.append(ours)
    return [point | {"column": column} for point in pair]
