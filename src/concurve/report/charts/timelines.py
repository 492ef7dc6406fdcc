"""How busy each CPU was in the course of a trial: a panel for each cell, a lane for each CPU."""

from __future__ import annotations

import json
from typing import Any

from concurve.findings.timelines import CpuTimelines, TrialTimeline
from concurve.report import format as fmt
from concurve.report.charts.style import GRID, PALETTE, styled
from concurve.report.document import Chart

_PANEL_COLUMNS = 3
_PANEL_COLUMNS_IF_NAMES_ARE_LONG = 2
_LABEL_LENGTH_MAX = 32
_WIDTHS = {_PANEL_COLUMNS: 190, _PANEL_COLUMNS_IF_NAMES_ARE_LONG: 300}
#: Of the distance between two lanes: a CPU that is always busy fills so much.
_LANE = 0.86
_LANE_HEIGHT, _HEIGHT_MAX = 30, 360
#: With more CPUs only their number and range are said in words.
_CPUS_SAID_MAX = 8


def timelines(found: CpuTimelines) -> Chart:
    """The chart of these cells."""
    panels = [_panel(found, cell) for cell in found.cells]
    said = "; ".join(_said(cell, panel) for cell, panel in zip(found.cells, panels, strict=True))
    return Chart(
        name="cpus-over-time",
        title="How busy each CPU was in the course of a trial",
        alternative=f"Busy share of each CPU, over the whole trial: {said}",
        remarks=(
            "Each panel is the first trial of its cell that counts. A lane is a CPU, and is full "
            "where the CPU was busy all the time, by whatever process.",
            *([found.remark] if found.remark else []),
        ),
        wide=len(found.cells) > 1,
        draw=lambda: _drawn(found, panels),
    )


def _panel(found: CpuTimelines, cell: TrialTimeline) -> str:
    return fmt.setting({name: cell.parameters[name] for name in found.factors})


def _said(cell: TrialTimeline, panel: str) -> str:
    shares = {cpu: cell.mean(cpu) for cpu in cell.cpus}
    if len(shares) > _CPUS_SAID_MAX:
        least, most = min(shares.values()), max(shares.values())
        text = f"{len(shares)} CPUs, {fmt.percent(least)} to {fmt.percent(most)}"
    else:
        text = ", ".join(f"CPU {cpu} {fmt.percent(share)}" for cpu, share in shares.items())
    return f"{panel}: {text}" if panel else text


def _drawn(found: CpuTimelines, panels: list[str]) -> Any:
    import altair as alt

    cpus = sorted({cpu for cell in found.cells for cpu in cell.cpus})
    floors = {cpu: len(cpus) - 1 - place for place, cpu in enumerate(cpus)}
    rows: list[dict[str, Any]] = []
    for panel, cell in zip(panels, found.cells, strict=True):
        rows += _rows(cell, panel, floors)
    names = {str(floor): f"CPU {cpu}" for cpu, floor in floors.items()}
    y_axis = alt.Axis(
        values=[floor + _LANE / 2 for floor in floors.values()],
        labelExpr=f"{json.dumps(names)}[format(floor(datum.value), 'd')]",
        labelOverlap=True,
        grid=False,
    )
    y = alt.Y("top:Q", title=None, axis=y_axis, scale=alt.Scale(domain=[0, len(cpus)]))
    x = alt.X("seconds:Q", title="time in the trial (s)", axis=alt.Axis(tickCount=4))
    base: Any = alt.Chart()
    lane = (
        base.transform_filter("datum.kind == 'lane'")
        .mark_rect(color=GRID, opacity=0.6, aria=False)
        .encode(x=x, x2="until:Q", y=y, y2="floor:Q")
    )
    busy = (
        base.transform_filter("datum.kind == 'busy'")
        .mark_area(color=PALETTE[0], interpolate="step-after", opacity=0.85, aria=False)
        .encode(x=x, y=y, y2="floor:Q", detail="cpu:N")
    )
    many = len(panels) > 1
    long = max(map(len, panels)) > _LABEL_LENGTH_MAX
    columns = _PANEL_COLUMNS_IF_NAMES_ARE_LONG if long else _PANEL_COLUMNS
    data: Any = {"values": rows}
    chart: Any = alt.layer(lane, busy, data=data).properties(
        width=_WIDTHS[columns] if many else 420,
        height=min(_HEIGHT_MAX, max(2, len(cpus)) * _LANE_HEIGHT),
    )
    if many:
        chart = chart.facet(facet=alt.Facet("panel:N", sort=panels, title=None), columns=columns)
    return styled(chart)


def _rows(cell: TrialTimeline, panel: str, floors: dict[int, int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for cpu, shares in cell.cpus.items():
        floor = floors[cpu]
        own: dict[str, Any] = {"panel": panel, "cpu": cpu, "floor": floor}
        lane = {"kind": "lane", "seconds": 0.0, "until": cell.ends[-1], "top": floor + _LANE}
        rows.append(own | lane)
        # Each share holds from the begin of its interval on, and the last one to the end.
        begins = (0.0, *cell.ends)
        for seconds, share in zip(begins, (*shares, shares[-1]), strict=False):
            top = round(floor + _LANE * share, 4)
            rows.append(own | {"kind": "busy", "seconds": round(seconds, 4), "top": top})
    return rows
