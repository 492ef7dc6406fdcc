"""What limits a run, as a chart: the thread time of an operation, stacked by where it goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.report import format as fmt
from concurve.report.charts.series import unique_labels
from concurve.report.charts.style import PALETTE, styled
from concurve.report.document import Chart
from concurve.terms import Level

#: The kinds of thread time of each part, from the bottom up; the last one holds those that rarely
#: limit a program.
_PARTS = {
    "on a CPU": ("cpu",),
    "waiting for a CPU": ("run_queue",),
    "futex": ("futex",),
    "disk": ("disk",),
    "network": ("network",),
    "events": ("poll",),
    "pipe": ("pipe",),
    "blocked otherwise": ("sleep", "child", "file_lock", "memory", "wake_up", "other", "blocked"),
}
#: What thread time is divided into in charts, from the bottom up.
PART_NAMES = tuple(_PARTS)
_DRAWN_MIN = 0.005
_CELLS_MAX = 120
_PANEL_COLUMNS = 3
_LABEL_LENGTH_MAX = 44


def composition(explanation: Explanation) -> Chart | None:
    """The chart; ``None`` if no cell has a time."""
    cells = [cell for cell in explanation.cells if cell.shares]
    shown = cells[:_CELLS_MAX]
    if not shown:
        return None
    scale = fmt.scale_for([cell.per_operation["total"].value for cell in shown], "ns")
    settings = [fmt.setting(_beside_work(cell, explanation)) for cell in shown]
    panel_of = unique_labels((setting, _cut(setting)) for setting in settings)
    rows = [
        row
        for cell, setting in zip(shown, settings, strict=True)
        for row in _rows(cell, panel_of[setting], explanation, scale)
    ]
    parts = _parts(rows)
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    left_out = len(cells) - len(shown)
    return Chart(
        name="time-per-operation",
        title="Where the thread time of an operation goes",
        alternative="The thread time of an operation in each cell, divided into "
        f"{', '.join(parts)}. The table has the same figures.",
        in_table=True,
        remarks=(f"The first {_CELLS_MAX} of {len(cells)} cells.",) if left_out else (),
        wide=len(panels) > 1 or not explanation.work,
        draw=lambda: _drawn(explanation, scale, rows),
    )


def part_of(kind: str) -> str:
    """The part that a kind of thread time belongs to; where a thread was blocked and no sample saw
    at what, the kind is empty."""
    return next((part for part, kinds in _PARTS.items() if kind in kinds), PART_NAMES[-1])


def part_colour(part: str) -> str:
    """The colour of a part in all charts."""
    return PALETTE[PART_NAMES.index(part)]


def _drawn(explanation: Explanation, scale: fmt.Scale, rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    parts = _parts(rows)
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    levels = list(dict.fromkeys(row["level"] for row in rows))
    colours = [part_colour(part) for part in parts]
    axis = explanation.work or ""
    title = f"time per operation ({scale.symbol})"
    data: Any = {"values": rows}
    chart: Any = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X("level:N", sort=levels, title=fmt.clean(axis), axis=alt.Axis(labelAngle=0)),
            y=alt.Y("time:Q", title=title, axis=alt.Axis(tickCount=6)),
            color=alt.Color(
                "part:N",
                sort=parts,
                scale=alt.Scale(domain=parts, range=colours),
                legend=alt.Legend(orient="top", title=None, columns=4),
            ),
            order=alt.Order("order:Q"),
            tooltip=alt.Tooltip("text:N"),
            description=alt.Description("text:N"),
        )
    )
    if not axis:
        y = alt.Y("level:N", sort=levels, title=None, axis=alt.Axis(labelLimit=280))
        chart = chart.encode(x=alt.X("time:Q", title=title), y=y)
        chart = chart.properties(width=480, height={"step": 26})
    elif len(panels) > 1:
        chart = chart.properties(width=190, height=160).facet(
            facet=alt.Facet("panel:N", sort=panels, title=None), columns=_PANEL_COLUMNS
        )
    else:
        chart = chart.properties(width=max(240, min(560, 70 * len(levels))), height=280)
    return styled(chart)


def _parts(rows: list[dict[str, Any]]) -> list[str]:
    return [part for part in _PARTS if any(row["part"] == part for row in rows)]


def _beside_work(cell: CellExplanation, explanation: Explanation) -> dict[str, Level]:
    """The levels of the other factors than the one that counts as concurrency."""
    names = (name for name in explanation.factors if name != explanation.work)
    return {name: cell.parameters[name] for name in names}


def _rows(
    cell: CellExplanation, panel: str, explanation: Explanation, scale: fmt.Scale
) -> Iterator[dict[str, Any]]:
    """A row for each part of a cell's bar."""
    total = cell.per_operation["total"].value
    level = cell.parameters.get(explanation.work) if explanation.work else None
    for order, (part, names) in enumerate(_PARTS.items()):
        share = cell.share_of(*names)
        if share >= _DRAWN_MIN:
            time = share * total / scale.divisor
            shown = fmt.with_unit(fmt.plain(time), scale.symbol)
            where = fmt.setting(cell.parameters)
            yield {
                "level": panel or explanation.study if level is None else fmt.level(level),
                "panel": "" if level is None else panel,
                "part": part,
                "order": order,
                "time": time,
                "text": f"{where}: {part} {shown}, {fmt.percent(share)}".lstrip(": "),
            }


def _cut(text: str) -> str:
    return text if len(text) <= _LABEL_LENGTH_MAX else text[: _LABEL_LENGTH_MAX - 1] + "…"
