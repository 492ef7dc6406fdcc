"""The ratios of a simulation over the levels of what it assumes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from concurve.findings.claims import AssumedRatio
from concurve.report import format as fmt
from concurve.report.charts.series import capital, file_name
from concurve.report.charts.style import INK, SOFT, signs, styled
from concurve.report.document import Chart

_SIZE = {"width": 520, "height": 280}
#: Curves stand so far apart at one level, in levels.
_APART = 0.05
#: The axis of ratios ends so far beyond the figures, as a factor.
_MARGIN = 1.02


def assumed(items: Sequence[AssumedRatio], label: str) -> Chart:
    """The ratios of one comparison over one assumption, a curve a level, with their intervals.
    Dashed lines are the source's ratios; in the grey band ratios decide no claim. ``label`` names
    the indicator."""
    first = items[0]
    curves = [fmt.clean(str(level)) for level in dict.fromkeys(item.level for item in items)]
    title = (
        f"{capital(label)} over that of {fmt.clean(first.factor)}={fmt.level(first.base)}, "
        f"by {fmt.clean(first.assumption)}"
    )
    rows = _rows(items, curves)
    texts = [row["text"] for row in rows if row["kind"] == "point"]
    remarks = [
        f"Geometric means over {fmt.count(first.settings, 'setting')} of the other assumptions; "
        "intervals at 95 %, each by itself."
    ]
    if any(row["kind"] == "published" for row in rows):
        remarks.append("Dashed: the source's ratio.")
    if first.alike_within is not None:
        remarks.append(
            f"Grey: within {first.alike_within * 100:g} % of 1. Where all figures lie so close "
            "together, claims cannot be decided."
        )
    return Chart(
        name=file_name(f"{first.indicator}-over-{first.factor}-{first.base}-by-{first.assumption}"),
        title=title,
        alternative=f"{title}: {'; '.join(texts)}.",
        remarks=tuple(remarks),
        wide=True,
        draw=lambda: styled(_drawn(rows, curves, items)),
    )


def _rows(items: Sequence[AssumedRatio], curves: Sequence[str]) -> list[dict[str, Any]]:
    """Points, and the lines of the source."""
    levels = list(dict.fromkeys(item.at for item in items))
    rows: list[dict[str, Any]] = []
    published: dict[str, float] = {}
    for item in items:
        curve = fmt.clean(str(item.level))
        place = levels.index(item.at) + _APART * (curves.index(curve) - (len(curves) - 1) / 2)
        shown = fmt.estimate(item.ratio).text
        text = f"{curve}, {fmt.clean(item.assumption)}={fmt.level(item.at)}: {shown}"
        row: dict[str, Any] = {"kind": "point", "series": curve, "x": place, "text": text}
        row["value"] = item.ratio.value
        row["joined"] = isinstance(item.at, (int, float))
        if item.ratio.low is not None and item.ratio.high is not None:
            row |= {"low": item.ratio.low, "high": item.ratio.high}
        rows.append(row)
        if item.published is not None:
            published[curve] = item.published
    for curve, value in published.items():
        said = f"source, {curve}: {value:g}"
        rows += [
            {"kind": "published", "series": curve, "x": place, "value": value, "text": said,
             "last": place > 0}
            for place in (-0.3, len(levels) - 0.7)
        ]  # fmt: skip
    return rows


def _drawn(rows: list[dict[str, Any]], curves: list[str], items: Sequence[AssumedRatio]) -> Any:
    """From the back: the band of ratios that decide nothing, 1, the source's lines, curves,
    intervals, points."""
    import altair as alt

    first = items[0]
    levels = [fmt.level(level) for level in dict.fromkeys(item.at for item in items)]
    band = 1 + (first.alike_within or 0.0)
    ends = [row[key] for row in rows for key in ("value", "low", "high") if key in row]
    domain = [min(*ends, 1 / band) / _MARGIN, max(*ends, band) * _MARGIN]
    y_scale = alt.Scale(type="log", domain=domain, nice=False)
    title = f"ratio to {fmt.clean(first.factor)}={fmt.level(first.base)} (logarithmic)"
    x = alt.X(
        "x:Q",
        title=fmt.clean(first.assumption),
        scale=alt.Scale(domain=[-0.3, len(levels) - 0.7], nice=False),
        axis=alt.Axis(
            values=list(range(len(levels))), labelExpr=f"{json.dumps(levels)}[datum.value]"
        ),
    )
    y = alt.Y("value:Q", title=title, scale=y_scale, axis=alt.Axis(format="~r", tickCount=8))
    low = alt.Y("low:Q", title=title, scale=y_scale)
    color, shape = signs(curves, {})
    texts = {"description": alt.Description("text:N"), "tooltip": alt.Tooltip("text:N")}
    base = alt.Chart({"values": rows})
    guide = alt.Chart({"values": [{"low": 1 / band, "high": band, "value": 1.0}]})

    def rows_where(condition: str) -> Any:
        return base.transform_filter(condition).encode(x=x)

    of_source = rows_where("datum.kind == 'published'")
    layers = [
        guide.mark_rect(color=SOFT, opacity=0.15, aria=False).encode(y=low, y2="high:Q"),
        guide.mark_rule(color=SOFT, aria=False).encode(y=y),
        of_source.mark_line(strokeDash=[6, 4], strokeWidth=1.3, aria=False)
        .encode(y=y, color=color),
        of_source.transform_filter("datum.last")
        .mark_text(align="right", baseline="bottom", dy=-3, fontSize=12, color=INK)
        .encode(y=y, text="text:N"),
        rows_where("datum.kind == 'point' && datum.joined")
        .mark_line(strokeWidth=1.8, aria=False).encode(y=y, color=color),
        rows_where("datum.kind == 'point' && isValid(datum.low)")
        .mark_rule(strokeWidth=2.2, aria=False).encode(y=low, y2="high:Q", color=color),
        rows_where("datum.kind == 'point'")
        .mark_point(filled=True, size=44, opacity=1)
        .encode(y=y, color=color, shape=shape, **texts),
    ]  # fmt: skip
    return alt.layer(*layers, **_SIZE)
