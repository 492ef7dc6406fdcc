"""The look that all charts share: colours, shapes, type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

# Okabe and Ito's colours, those that stand out on white first, with shapes as a second sign.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#56b4e9", "#882255", "#6b6b6b")
# The same colours for a dark background.
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

SHAPES = (
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

#: The shape of a rejected trial: points in doubt are hollow, this is a cross.
CROSS = "M-0.7,-0.7L0.7,0.7M0.7,-0.7L-0.7,0.7"

#: What the rings of a chart are, said below it where no word stands beside them.
RINGS = "A ring marks each recommended setting."
#: The same of points in doubt.
DOUBTS = "Hollow points are in doubt: the machine was not quiet."
#: The same of intervals that are cut.
CUT = "An arrow marks an interval that goes on beyond all figures."


def styled(chart: Any) -> Any:
    """Give a chart, in place, the look that all charts share."""
    import altair as alt

    # In one step, and on the chart itself: each configure_… would copy all of its layers.
    chart.config = alt.Config(
        font="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
        background="transparent",
        padding=6,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=SOFT,
            titleColor=INK,
            gridColor=GRID,
            domainColor=SOFT,
            tickColor=SOFT,
            labelFontSize=12,
            titleFontSize=12.5,
            titleFontWeight=500,
            titlePadding=8,
        ),
        axisX=alt.AxisConfig(grid=False),
        axisY=alt.AxisConfig(domain=False, ticks=False),
        legend=alt.LegendConfig(
            labelColor=INK, labelFontSize=12.5, symbolStrokeWidth=2, labelLimit=260
        ),
        header=alt.HeaderConfig(labelColor=INK, labelFontSize=12.5, labelFontWeight=600),
    )
    return chart


def signs(domain: list[str], labels: dict[str, Any]) -> tuple[Any, Any]:
    """Colour and shape of each curve, with a legend where there are several."""
    import altair as alt

    legend = (
        alt.Legend(orient="top", title=None, columns=4, symbolSize=70, symbolOpacity=1, **labels)
        if len(domain) > 1
        else None
    )
    colours, shapes = _taken(PALETTE, domain), _taken(SHAPES, domain)
    color = alt.Color(
        "series:N", sort=domain, scale=alt.Scale(domain=domain, range=colours), legend=legend
    )
    shape = alt.Shape(
        "series:N", sort=domain, scale=alt.Scale(domain=domain, range=shapes), legend=legend
    )
    return color, shape


def recommended(rows: Any, place: Any, *, is_named: bool) -> list[Any]:
    """A ring around each recommended setting; ``place`` is its other position. ``is_named``: the
    word stands beside it. Several words would cover each other and the curves: :data:`RINGS` says
    below the chart what the rings are."""
    rings = rows.mark_point(
        filled=False, size=230, strokeWidth=1.6, opacity=1, stroke=INK, shape="circle", aria=False
    ).encode(y=place)
    if not is_named:
        return [rings]
    # Right below: the ideal line rises beyond, and beside the best setting curves are level.
    word = rows.mark_text(
        text="recommended", align="left", baseline="top", dx=9, dy=8, fontSize=12,
        fontWeight=600, color=INK, aria=False,
    ).encode(y=place)  # fmt: skip
    return [rings, word]


def arrows(
    rows_where: Callable[[str], Any], channel: str, ends: dict[str, Any], **look: Any
) -> list[Any]:
    """An arrow at each end of an interval that is cut there. ``ends`` are the positions of both."""
    shapes = {"x": ("triangle-left", "triangle-right"), "y": ("triangle-down", "triangle-up")}
    return [
        rows_where(f"datum.cut_{end}")
        .mark_point(filled=True, size=50, opacity=1, shape=shape, aria=False)
        .encode(**{channel: ends[end]}, **look)
        for end, shape in zip(("low", "high"), shapes[channel], strict=True)
    ]


def _taken(values: Sequence[str], domain: Sequence[str]) -> list[str]:
    return [values[number % len(values)] for number in range(len(domain))]
