"""Flame graphs of blocked time: which places in the program waited, for how long, and who called
them; and how that differs from the base, be it a cell of the run or the same cell of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.findings.several import BlockedDifference
from concurve.findings.stacks import BlockedStack, Frame, flames
from concurve.report import format as fmt
from concurve.report.charts.style import GRID, INK, PALETTE, styled
from concurve.report.document import Chart
from concurve.terms import Level

#: A frame narrower than this share of its chart is merged with its neighbours.
_SHARE_MIN = 0.01
_DEPTH_MAX = 10
#: The cells of a run with most blocked time are drawn.
_CELLS_MAX = 4
#: So many places are named in the text of a chart.
_NAMED_MAX = 5
_WIDTH, _ROW_HEIGHT = 620, 19
_CHARACTER_WIDTH = 6.8
#: How two graphs are read, said once.
HOW_TO_READ = (
    "The upper graph of a cell is the run's, the lower one the base's, on one scale. Each row is "
    "called by the one below it; the width is blocked time of an operation. A colour shows frames "
    "that take more or less than in the base; what waits no more stands in the lower graph alone."
)
#: A frame has changed if its time is more than this part of the chart away from that of the base.
_CHANGED_MIN = 0.02
_SAME, _MORE, _LESS = "as in the base", "more than in the base", "less than in the base"


class _Panel(NamedTuple):
    """A flame graph: its frames, their whole, and what else is said of it. ``other`` names the cell
    whose times the frames carry as well, empty where there is none; ``is_base``: the frames are
    those of the base, and the other cell is the one that is compared with it."""

    frames: list[Frame]
    whole_ns: float
    title: str = ""
    other: str = ""
    is_base: bool = False


def blocked(explanation: Explanation) -> list[Chart]:
    """A flame graph of each cell that waited most, coloured by what its frames took in the base;
    none if no place is known at which a cell waited."""
    cells = [cell for cell in explanation.cells if cell.is_blocked and cell.has_places]
    cells.sort(key=lambda cell: -cell.blocked_ns)
    drawn = sorted(cells[:_CELLS_MAX], key=lambda cell: cell.index)
    widest = max((cell.blocked_ns for cell in drawn), default=0.0)
    charts = [_chart(it, explanation, number, widest) for number, it in enumerate(drawn, start=1)]
    # How to read them is said below the first.
    return charts[:1] + [msgspec.structs.replace(chart, remarks=()) for chart in charts[1:]]


def _chart(cell: CellExplanation, explanation: Explanation, number: int, widest_ns: float) -> Chart:
    """The graph of a cell, on the scale of all that are drawn: as wide as the widest needs."""
    bases = [it for it in explanation.cells if cell.base is not None and it.parameters == cell.base]
    base = bases[0].stacks if bases and bases[0].stacks else None
    frames = flames(cell.stacks, base, _SHARE_MIN, _DEPTH_MAX)
    compared = base is not None
    seen = _frames(cell.stacks, base, cell.blocked_ns, widest_ns)
    panel = _Panel(seen, cell.blocked_ns, other="the base" if compared else "")
    return Chart(
        name=f"blocked-time-{number}",
        title=_title({name: cell.parameters[name] for name in explanation.factors}),
        alternative=_alternative(frames, cell.blocked_ns, compared),
        remarks=(
            "Each row is called by the one below it; the width is blocked time of an operation, on "
            "the same scale for each cell.",
            *(("A colour shows frames that take more or less than in the base.",) * compared),
        ),
        wide=True,
        draw=lambda: _drawn([panel], widest_ns),
    )


def _title(parameters: Mapping[str, Level]) -> str:
    where = fmt.setting(parameters)
    return f"Where blocked time goes{f', {where}' if where else ''}"


def _alternative(frames: Sequence[Frame], whole: float, compared: bool) -> str:
    """The frames that nothing stands on, the largest first, in words."""
    ends = [
        frame
        for frame in frames
        if not any(it.path[:-1] == frame.path for it in frames) and not frame.is_merged
    ]
    ends.sort(key=lambda frame: -frame.ns)
    said = "; ".join(
        f"{_place(frame.path)}: {fmt.percent(frame.ns / whole)}" for frame in ends[:_NAMED_MAX]
    )
    than = ", and how that differs from the base" if compared else ""
    return f"Blocked time by the place that waited{than}. {said}{_and_more(len(ends))}."


def _place(path: Sequence[str]) -> str:
    return " → ".join(map(fmt.clean, path))


def _and_more(places: int) -> str:
    left = places - _NAMED_MAX
    return f", and {fmt.count(left, 'more place')}" if left > 0 else ""


# -- two runs ---------------------------------------------------------------------------------


def blocked_differences(pairs: Sequence[BlockedDifference]) -> list[Chart]:
    """Two flame graphs of each cell on one scale, of a run and of the base below it: what waits no
    more stands in the base alone."""
    return [_pair_chart(pair, number) for number, pair in enumerate(pairs, start=1)]


def _pair_chart(pair: BlockedDifference, number: int) -> Chart:
    new, base = pair.of_new, pair.of_base
    scale = fmt.scale_for([max(new.blocked_ns, base.blocked_ns)], "ns")
    wholes = [_whole(pair.new, new, scale), _whole(f"{pair.base}, the base", base, scale)]
    return Chart(
        name=f"blocked-difference-{number}",
        title=f"{_title(pair.parameters)}: {pair.new}",
        alternative=f"Blocked time by the place that waited: {'; '.join(wholes)}. "
        f"The greatest differences: {_changes(pair, scale)}.",
        remarks=tuple(_pair_remarks(pair)),
        wide=True,
        draw=lambda: _drawn(_pair_panels(pair, wholes)),
    )


def _whole(name: str, cell: CellExplanation, scale: fmt.Scale) -> str:
    """A run, and how long an operation of the cell was blocked in it."""
    figure = cell.per_operation.get("blocked")
    shown = fmt.estimate(figure, scale) if figure is not None else None
    if shown is None or not shown.half:
        time = _time(cell.blocked_ns, scale)
    else:
        time = fmt.with_unit(f"{shown.value} {shown.spread}", scale.symbol)
    return f"{name}: {time} blocked"


def _changes(pair: BlockedDifference, scale: fmt.Scale) -> str:
    """The stacks that differ most, the greatest difference first, in words."""
    new, base = ({it.frames: it.ns for it in cell.stacks} for cell in (pair.of_new, pair.of_base))
    changes = {path: new.get(path, 0.0) - base.get(path, 0.0) for path in {**new, **base}}
    paths = sorted((path for path in changes if changes[path]), key=lambda it: -abs(changes[it]))
    said = "; ".join(
        f"{_place(path)}: {_time(new.get(path, 0.0), scale)}, "
        f"in the base {_time(base.get(path, 0.0), scale)}"
        for path in paths[:_NAMED_MAX]
    )
    return f"{said or 'none'}{_and_more(len(paths))}"


def _pair_remarks(pair: BlockedDifference) -> Iterator[str]:
    sampled = ((pair.new, pair.of_new), (pair.base, pair.of_base))
    readings = " and ".join(f"{_readings(cell)} in {name}" for name, cell in sampled)
    yield f"Places are known by sampled waits, {readings}: small differences may be chance."
    doubted = " and ".join(name for name, cell in sampled if cell.doubt)
    if doubted:
        yield f"The machine was not quiet in {doubted}: in this cell, or the base cell of the run."


def _readings(cell: CellExplanation) -> str:
    return f"{sum(site.readings for site in cell.sites):,}"


def _pair_panels(pair: BlockedDifference, titles: Sequence[str]) -> list[_Panel]:
    stacks = (pair.of_new.stacks, pair.of_base.stacks)
    wholes = (pair.of_new.blocked_ns, pair.of_base.blocked_ns)
    return [
        _Panel(
            _frames(stacks[place], stacks[1 - place], wholes[place], max(wholes)),
            wholes[place],
            titles[place],
            ("the base", pair.new)[place],
            bool(place),
        )
        for place in (0, 1)
    ]


def _frames(
    own: Sequence[BlockedStack],
    other: Sequence[BlockedStack] | None,
    whole: float,
    widest: float,
) -> list[Frame]:
    """The frames of one of several graphs on one scale, as wide as the greatest of them needs."""
    share_min = min(1.0, _SHARE_MIN * widest / whole) if whole > 0 else 1.0
    return flames(own, other, share_min, _DEPTH_MAX)


# -- the picture ------------------------------------------------------------------------------


def _drawn(panels: Sequence[_Panel], widest_ns: float = 0.0) -> Any:
    """The flame graphs one below another, on one scale, which holds ``widest_ns`` as well."""
    import altair as alt

    widest = max(widest_ns, *(panel.whole_ns for panel in panels))
    scale = fmt.scale_for([widest], "ns")
    graphs = [_graph(panel, widest, scale, is_last=panel is panels[-1]) for panel in panels]
    if len(graphs) == 1:
        return styled(graphs[0])
    return styled(alt.vconcat(*graphs, spacing=14).resolve_scale(color="shared"))


def _graph(panel: _Panel, widest: float, scale: fmt.Scale, *, is_last: bool) -> Any:
    import altair as alt

    depth = max((frame.depth for frame in panel.frames), default=0) + 1
    names = [_SAME, _MORE, _LESS] if panel.other else [""]
    colours = [PALETTE[4], PALETTE[1], PALETTE[0]] if panel.other else [PALETTE[4]]
    data: Any = {"values": list(_rows(panel, widest, scale))}
    base: Any = alt.Chart(data)
    axis: Any = alt.Axis(tickCount=8) if is_last else None
    x = alt.X(
        "start:Q",
        title=f"blocked time per operation ({scale.symbol})",
        scale=alt.Scale(domain=[0, widest / scale.divisor], nice=False),
        axis=axis,
    )
    y = alt.Y("low:Q", title=None, axis=None, scale=alt.Scale(domain=[0, depth], nice=False))
    legend = alt.Legend(orient="top", title=None, columns=3) if panel.other else None
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
    if not panel.title:
        return chart
    said = alt.TitleParams(
        fmt.clean(panel.title), anchor="start", color=INK, fontSize=12.5, fontWeight=600
    )
    return chart.properties(title=said)


def _rows(panel: _Panel, widest: float, scale: fmt.Scale) -> Iterator[dict[str, Any]]:
    for frame in panel.frames:
        name = fmt.clean(frame.name)
        text = f"{name}: {_time(frame.ns, scale)}, {fmt.percent(frame.ns / panel.whole_ns)}"
        if frame.before_ns is not None:
            text += f"; in {panel.other} {_time(frame.before_ns, scale)}"
        yield {
            "start": frame.start_ns / scale.divisor,
            "end": (frame.start_ns + frame.ns) / scale.divisor,
            "low": frame.depth + 0.04,
            "high": frame.depth + 0.96,
            "middle": frame.depth + 0.5,
            "label": _fitting(name, _WIDTH * frame.ns / widest),
            "change": _change(frame, widest, panel.is_base) if panel.other else "",
            "text": text,
        }


def _time(ns: float, scale: fmt.Scale) -> str:
    return fmt.with_unit(fmt.plain(ns / scale.divisor), scale.symbol)


def _change(frame: Frame, widest: float, is_base: bool) -> str:
    """How a frame compares with the base, or with a frame of the base."""
    more = frame.ns - (frame.before_ns or 0.0)
    if abs(more) < _CHANGED_MIN * widest:
        return _SAME
    return _MORE if (more > 0) is not is_base else _LESS


def _fitting(name: str, width: float) -> str:
    """As much of a name as fits into a frame."""
    room = int((width - 6) / _CHARACTER_WIDTH)
    if room >= len(name):
        return name
    return f"{name[: room - 1]}…" if room >= 4 else ""
