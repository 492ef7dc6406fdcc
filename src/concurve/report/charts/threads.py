"""What each thread did in the course of a trial: a panel for each cell, a lane for each thread."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from concurve.findings.timelines import ThreadLane, ThreadState, ThreadTimelines, TrialThreads
from concurve.report import format as fmt
from concurve.report.charts.composition import PART_NAMES, part_colour, part_of
from concurve.report.charts.style import GRID, styled
from concurve.report.document import Chart

#: Lanes of a panel, and intervals of a lane: where there are more, neighbours are drawn as one.
_LANES_MAX = 10
_INTERVALS_MAX = 64
#: Neighbours whose shares differ by less are said as one.
_SAME = 0.1
#: Of the distance between two lanes: a lane is so high.
_LANE = 0.84
_WIDTH, _LANE_HEIGHT = 560, 26
_LABEL_LENGTH_MAX = 24
#: So many threads of a cell are said in words.
_SAID_MAX = 4


class _Piece(NamedTuple):
    """A part of what a thread did in an interval, from the bottom of its lane up."""

    part: str
    low: float
    top: float


def threads(found: ThreadTimelines) -> Chart:
    """The chart of these cells."""
    cells = [_shown(cell) for cell in found.cells]
    panels = [_panel(found, cell) for cell in found.cells]
    said = "; ".join(_said(cell, panel) for cell, panel in zip(found.cells, panels, strict=True))
    return Chart(
        name="threads-over-time",
        title="What each thread did in the course of a trial",
        alternative=f"Shares of the life of each thread: {said}.",
        remarks=tuple(_remarks(found)),
        wide=True,
        zooms=True,
        draw=lambda: _drawn(panels, cells),
    )


def _remarks(found: ThreadTimelines) -> Iterator[str]:
    yield (
        "Each panel is the first trial of its cell that counts. A lane is a thread: from its "
        "bottom up, how much of the time it ran, waited for a CPU, and was blocked."
    )
    for cell in found.cells:
        shown = min(len(cell.lanes), _LANES_MAX)
        if shown < cell.threads:
            where = fmt.setting({name: cell.parameters[name] for name in found.factors})
            yield f"{where or 'Shown'}: the {shown} busiest of {cell.threads:,} threads."
    if found.remark:
        yield found.remark


def _shown(cell: TrialThreads) -> list[ThreadLane]:
    """The busiest threads, in their order."""
    lanes = cell.lanes
    busy = [lane.running + lane.runnable for lane in lanes]
    places = sorted(range(len(lanes)), key=lambda place: -busy[place])[:_LANES_MAX]
    return [lanes[place] for place in sorted(places)]


def _panel(found: ThreadTimelines, cell: TrialThreads) -> str:
    return fmt.setting({name: cell.parameters[name] for name in found.factors})


def _said(cell: TrialThreads, panel: str) -> str:
    lanes = _shown(cell)
    told = ", ".join(
        f"{_name(lane, lanes)} {fmt.percent(lane.running)} running, "
        f"{fmt.percent(lane.runnable)} waiting for a CPU, "
        f"{fmt.percent(lane.blocked)} blocked"
        for lane in lanes[:_SAID_MAX]
    )
    more = f", and {len(lanes) - _SAID_MAX} more" if len(lanes) > _SAID_MAX else ""
    return f"{panel}: {told}{more}" if panel else f"{told}{more}"


def _name(lane: ThreadLane, lanes: Sequence[ThreadLane]) -> str:
    """The role where there are several, and the thread's name and number."""
    role = f"{lane.role}: " if len({it.role for it in lanes}) > 1 else ""
    name = fmt.clean(f"{role}{lane.name}".strip()) or "thread"
    if len(name) > _LABEL_LENGTH_MAX:
        name = name[: _LABEL_LENGTH_MAX - 1] + "…"
    return f"{name} {lane.tid}"


def _drawn(panels: Sequence[str], cells: Sequence[Sequence[ThreadLane]]) -> Any:
    import altair as alt

    parts = [
        part
        for part in PART_NAMES
        if any(piece.part == part for lanes in cells for lane in lanes for state in lane.states
               for piece in _pieces(state))
    ]  # fmt: skip
    end = max(lane.states[-1].end for lanes in cells for lane in lanes)
    drawn = [_one(panel, lanes, parts, end) for panel, lanes in zip(panels, cells, strict=True)]
    return styled(alt.vconcat(*drawn) if len(drawn) > 1 else drawn[0])


def _one(panel: str, lanes: Sequence[ThreadLane], parts: Sequence[str], end: float) -> Any:
    import altair as alt

    floors = [len(lanes) - 1 - place for place in range(len(lanes))]
    names = {str(floor): _name(lane, lanes) for floor, lane in zip(floors, lanes, strict=True)}
    areas: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    for floor, lane in zip(floors, lanes, strict=True):
        states = _merged(lane.states)
        areas += _areas(floor, states)
        said += _texts(floor, states, names[str(floor)])
    y_axis = alt.Axis(
        values=[floor + _LANE / 2 for floor in floors],
        labelExpr=f"{json.dumps(names)}[format(floor(datum.value), 'd')]",
        labelLimit=220,
        grid=False,
    )
    scale = alt.Scale(domain=[0, len(lanes)], nice=False)
    x_scale = alt.Scale(domain=[0, end], nice=False)
    y = alt.Y("top:Q", title=None, axis=y_axis, scale=scale)
    x = alt.X("seconds:Q", title="time in the trial (s)", scale=x_scale)
    colours = [part_colour(part) for part in parts]
    legend = alt.Legend(orient="top", title=None, columns=4)
    areas_data: Any = {"values": areas}
    area = (
        alt.Chart(areas_data)
        .mark_area(interpolate="step-after", aria=False)
        .encode(
            x=x,
            y=y,
            y2="low:Q",
            detail="floor:N",
            color=alt.Color(
                "part:N", sort=parts, scale=alt.Scale(domain=parts, range=colours), legend=legend
            ),
        )
    )
    said_data: Any = {"values": said}
    texts = (
        alt.Chart(said_data)
        .mark_rect(opacity=0, fill=GRID)
        .encode(x=x, x2="until:Q", y=y, y2="floor:Q", description=alt.Description("text:N"))
    )
    drawn = alt.layer(area, texts).properties(
        width=_WIDTH, height=max(2, len(lanes)) * _LANE_HEIGHT
    )
    if not panel:  # the only cell
        return drawn
    return drawn.properties(title=alt.TitleParams(panel, anchor="start", fontSize=12.5))


def _pieces(state: ThreadState) -> Iterator[_Piece]:
    low = 0.0
    shares = (("cpu", state.running), ("run_queue", state.runnable), (state.wait, state.blocked))
    for kind, share in shares:
        if share > 0:
            yield _Piece(part_of(kind), low, low + share)
        low += share


def _areas(floor: int, states: Sequence[ThreadState]) -> Iterator[dict[str, Any]]:
    """For each part of a lane, its height from each begin of a state on."""
    pieces = [{piece.part: piece for piece in _pieces(state)} for state in states]
    for part in dict.fromkeys(part for one in pieces for part in one):
        for number, state in enumerate(states):
            piece = pieces[number].get(part)
            if piece is None:
                # A line without height, where it ended: only neighbours need it.
                near = pieces[max(0, number - 1) : number + 2]
                if not any(part in one for one in near):
                    continue
                piece = _Piece(part, 1.0, 1.0)
            yield _area(floor, state.begin, piece)
            if number == len(states) - 1 or not _follow(state, states[number + 1]):
                yield _area(floor, state.end, piece)


def _follow(state: ThreadState, after: ThreadState) -> bool:
    return after.begin <= state.end


def _area(floor: int, seconds: float, piece: _Piece) -> dict[str, Any]:
    return {
        "floor": floor,
        "part": piece.part,
        "seconds": round(seconds, 4),
        "low": round(floor + _LANE * piece.low, 3),
        "top": round(floor + _LANE * piece.top, 3),
    }


def _texts(floor: int, states: Sequence[ThreadState], name: str) -> Iterator[dict[str, Any]]:
    for state in _alike(states):
        yield {
            "floor": floor,
            "top": floor + _LANE,
            "seconds": round(state.begin, 4),
            "until": round(state.end, 4),
            "text": f"{name}, {state.begin:.2f} to {state.end:.2f} s: {_doing(state)}",
        }


def _doing(state: ThreadState) -> str:
    told = [
        (state.running, "running"),
        (state.runnable, "waiting for a CPU"),
        (state.blocked, "blocked"),
    ]
    text = ", ".join(f"{fmt.percent(share)} {what}" for share, what in told if share >= 0.005)
    if state.blocked < 0.005:
        return text
    at = part_of(state.wait) if state.wait else ""
    where = " in ".join(filter(None, (at, fmt.clean(state.place))))
    return f"{text} ({where})" if where else text


def _merged(states: Sequence[ThreadState]) -> list[ThreadState]:
    """No more states than are drawn: neighbours become one."""
    found = list(states)
    while len(found) > _INTERVALS_MAX:
        found = [_joined(found[at : at + 2]) for at in range(0, len(found), 2)]
    return found


def _alike(states: Sequence[ThreadState]) -> Iterator[ThreadState]:
    """Neighbours that say the same become one."""
    group: list[ThreadState] = []
    for state in states:
        if group and not _is_alike(group[0], state):
            yield _joined(group)
            group = []
        group.append(state)
    if group:
        yield _joined(group)


def _is_alike(one: ThreadState, other: ThreadState) -> bool:
    near = all(
        abs(getattr(one, part) - getattr(other, part)) < _SAME for part in ("running", "runnable")
    )
    return near and (one.wait, one.place) == (other.wait, other.place)


def _joined(states: Sequence[ThreadState]) -> ThreadState:
    """One state of several that follow each other: what was seen of it is what the longest blocked
    one says."""
    if len(states) == 1:
        return states[0]
    spent = [it.end - it.begin for it in states]
    whole = sum(spent)
    longest = max(states, key=lambda it: (it.end - it.begin) * it.blocked)
    return ThreadState(
        begin=states[0].begin,
        end=states[-1].end,
        running=sum(time * it.running for time, it in zip(spent, states, strict=True)) / whole,
        runnable=sum(time * it.runnable for time, it in zip(spent, states, strict=True)) / whole,
        wait=longest.wait,
        place=longest.place,
    )
