"""Fitted scaling models in a chart: rows, layers, and labels that name the model of a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from concurve.findings.fit import CurvePoint
from concurve.findings.scaling import ScalingFinding
from concurve.report import format as fmt

Fitted = dict[tuple[str, str], ScalingFinding]
"""Scaling models by the panel and the label of their curve."""

# With more curves than this, bands overlap: then only those beyond the levels are drawn.
_BANDS_MAX = 3
# A very wide band is cut at this multiple, which lies outside of any chart.
_BAND_MAX = 1e3


def curve_rows(fitted: Fitted, name: str, scale: fmt.Scale) -> list[dict[str, Any]]:
    """The points of the curves that belong to a chart of the indicator ``name``."""
    return [
        {"kind": "curve", "panel": panel, "series": label, "x": point.n, "beyond": point.beyond}
        | _height(point, scale)
        for (panel, label), item in fitted.items()
        for point in item.curves[name]
    ]


def _height(point: CurvePoint, scale: fmt.Scale) -> dict[str, float]:
    value = point.value / scale.divisor
    low, high = point.low / scale.divisor, point.high / scale.divisor
    return {
        "value": value,
        "low": max(low, value / _BAND_MAX),
        "high": min(high, value * _BAND_MAX),
    }


def curve_layers(
    rows_where: Callable[[str], Any], y: Any, low: Any, color: Any, curves: int
) -> list[Any]:
    """Band, chosen model within the levels, and expectation beyond them."""
    few = curves <= _BANDS_MAX
    band = "datum.kind == 'curve'" if few else "datum.kind == 'curve' && datum.beyond"
    return [
        rows_where(band)
        .mark_area(opacity=0.16 if few else 0.07, clip=True, aria=False)
        .encode(y=low, y2="high:Q", color=color),
        rows_where("datum.kind == 'curve' && !datum.beyond")
        .mark_line(strokeWidth=1.8, clip=True, aria=False)
        .encode(y=y, color=color),
        rows_where("datum.kind == 'curve' && datum.beyond")
        .mark_line(strokeWidth=1.6, strokeDash=[6, 4], clip=True, aria=False)
        .encode(y=y, color=color),
    ]


def legend_labels(labels: Sequence[str], fitted: Fitted) -> dict[str, str]:
    """Legend labels that name the chosen models, if each curve appears once; else none."""
    titles: dict[str, list[str]] = {label: [] for label in labels}
    for (_, label), item in fitted.items():
        titles[label].append(_title(item))
    if not fitted or max(map(len, titles.values())) > 1:
        return {}
    texts = {label: ": ".join([label, *found]) for label, found in titles.items()}
    return {"labelExpr": f"{json.dumps(texts)}[datum.label]"}


def key(fitted: Fitted, colour: str) -> Any:
    """The key of the lines, shown above the chart."""
    import altair as alt

    chosen = {_title(item) for item in fitted.values()}
    model = chosen.pop() if len(chosen) == 1 else "the model chosen"
    text = f"line: {model}; dashed, with band: expected over all models, to twice the levels"
    return alt.TitleParams(
        text, anchor="start", color=colour, fontSize=12, fontWeight="normal", offset=6
    )


def _title(item: ScalingFinding) -> str:
    assert item.fit is not None
    return item.fit.best.title
