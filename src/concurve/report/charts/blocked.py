"""Flame graphs of blocked time: which places in the program waited, for how long, and who called
them; and how that differs from the base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.findings.stacks import Frame, flames
from concurve.report import format as fmt
from concurve.report.charts.style import GRID, INK, PALETTE, styled
from concurve.report.document import Chart

#: A frame narrower than this share of its cell is merged with its neighbours.
_SHARE_MIN = 0.01
_DEPTH_MAX = 10
#: The cells with most blocked time are drawn.
_CELLS_MAX = 4
#: Below this share of a cell's thread time, blocked time is not drawn.
_BLOCKED_MIN = 0.02
_WIDTH, _ROW_HEIGHT = 620, 19
_CHARACTER_WIDTH = 6.4
#: A frame has changed if its time is more than this part of the whole away from that of the base.
_CHANGED_MIN = 0.02
_SAME, _MORE, _LESS = "as in the base", "more than in the base", "less than in the base"


def blocked(explanation: Explanation) -> list[Chart]:
    """A flame graph of each cell that waited most, coloured by what its frames took in the base;
    none if no place is known at which a cell waited."""
    cells = [
        cell
        for cell in explanation.cells
        if cell.blocked_share >= _BLOCKED_MIN and any(len(it.frames) > 1 for it in cell.stacks)
    ]
    cells.sort(key=lambda cell: -_whole(cell))
    drawn = sorted(cells[:_CELLS_MAX], key=lambda cell: cell.index)
    return [_chart(cell, explanation, number) for number, cell in enumerate(drawn, start=1)]


def _whole(cell: CellExplanation) -> float:
    return sum(stack.ns for stack in cell.stacks)


def _chart(cell: CellExplanation, explanation: Explanation, number: int) -> Chart:
    bases = [it for it in explanation.cells if cell.base is not None and it.parameters == cell.base]
    base = bases[0].stacks if bases and bases[0].stacks else None
    frames = flames(cell.stacks, base, _SHARE_MIN, _DEPTH_MAX)
    where = fmt.setting({name: cell.parameters[name] for name in explanation.factors})
    compared = base is not None
    return Chart(
        name=f"blocked-time-{number}",
        title=f"Where blocked time goes{f', {where}' if where else ''}",
        alternative=_alternative(frames, _whole(cell), compared),
        remarks=(
            "Each row is called by the one below it; the width is blocked time of an operation.",
            *(("A colour shows frames that take more or less than in the base.",) * compared),
        ),
        wide=True,
        draw=lambda: _drawn(frames, _whole(cell), compared),
    )


def _alternative(frames: Sequence[Frame], whole: float, compared: bool) -> str:
    """The frames that nothing stands on, the largest first, in words."""
    ends = [
        frame
        for frame in frames
        if not any(it.path[:-1] == frame.path for it in frames) and not frame.is_merged
    ]
    ends.sort(key=lambda frame: -frame.ns)
    said = "; ".join(
        f"{' → '.join(map(fmt.clean, frame.path))}: {fmt.percent(frame.ns / whole)}"
        for frame in ends[:5]
    )
    more = f", and {fmt.count(len(ends) - 5, 'more place')}" if len(ends) > 5 else ""
    than = ", and how that differs from the base" if compared else ""
    return f"Blocked time by the place that waited{than}. {said}{more}."


def _drawn(frames: Sequence[Frame], whole: float, compared: bool) -> Any:
    import altair as alt

    scale = fmt.scale_for([whole], "ns")
    rows = list(_rows(frames, whole, scale, compared))
    depth = max((frame.depth for frame in frames), default=0) + 1
    names = [_SAME, _MORE, _LESS] if compared else [""]
    colours = [PALETTE[4], PALETTE[1], PALETTE[0]] if compared else [PALETTE[4]]
    data: Any = {"values": rows}
    base: Any = alt.Chart(data)
    x = alt.X(
        "start:Q",
        title=f"blocked time per operation ({scale.symbol})",
        scale=alt.Scale(domain=[0, whole / scale.divisor], nice=False),
    )
    y = alt.Y("low:Q", title=None, axis=None, scale=alt.Scale(domain=[0, depth], nice=False))
    legend = alt.Legend(orient="top", title=None, columns=3) if compared else None
    boxes = base.mark_rect(stroke=GRID, strokeWidth=0.8, opacity=0.75).encode(
        x=x,
        x2="end:Q",
        y=y,
        y2="high:Q",
        color=alt.Color(
            "change:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend
        ),
        tooltip=alt.Tooltip("text:N"),
        description=alt.Description("text:N"),
    )
    labels = base.mark_text(
        align="left", baseline="middle", dx=3, fontSize=11, color=INK, aria=False
    ).encode(x="start:Q", y=alt.Y("middle:Q", axis=None), text="label:N")
    chart: Any = alt.layer(boxes, labels).properties(width=_WIDTH, height=_ROW_HEIGHT * depth)
    return styled(chart)


def _rows(
    frames: Sequence[Frame], whole: float, scale: fmt.Scale, compared: bool
) -> Iterator[dict[str, Any]]:
    for frame in frames:
        time = fmt.with_unit(fmt.plain(frame.ns / scale.divisor), scale.symbol)
        name = fmt.clean(frame.name)
        text = f"{name}: {time}, {fmt.percent(frame.ns / whole)}"
        if frame.before_ns is not None:
            before = fmt.with_unit(fmt.plain(frame.before_ns / scale.divisor), scale.symbol)
            text += f"; in the base {before}"
        yield {
            "start": frame.start_ns / scale.divisor,
            "end": (frame.start_ns + frame.ns) / scale.divisor,
            "low": frame.depth + 0.04,
            "high": frame.depth + 0.96,
            "middle": frame.depth + 0.5,
            "label": _fitting(name, _WIDTH * frame.ns / whole),
            "change": _change(frame, whole) if compared else "",
            "text": text,
        }


def _change(frame: Frame, whole: float) -> str:
    more = frame.ns - (frame.before_ns or 0.0)
    if abs(more) < _CHANGED_MIN * whole:
        return _SAME
    return _MORE if more > 0 else _LESS


def _fitting(name: str, width: float) -> str:
    """As much of a name as fits into a frame."""
    room = int((width - 6) / _CHARACTER_WIDTH)
    if room >= len(name):
        return name
    return f"{name[: room - 1]}…" if room >= 4 else ""
