"""What each client or worker did, a bar for each, as document 001 draws it."""

from __future__ import annotations

from typing import Any

from concurve.findings.workers import WorkerShares
from concurve.report import format as fmt
from concurve.report.charts.style import PALETTE, styled
from concurve.report.document import Chart

_PANEL_COLUMNS = 2


def bars(shares: WorkerShares) -> Chart:
    """A panel for each cell, all on one scale, with the mean as a line."""
    panels = [_panel(shares, index) for index in range(len(shares.cells))]
    rows = [
        {"panel": panel, "worker": number + 1, "share": share, "mean": cell.mean}
        for panel, cell in zip(panels, shares.cells, strict=True)
        for number, share in enumerate(cell.shares)
    ]
    remarks = ["Each panel is the trial of its cell whose spread is the middle one.",
               "The broken line is the mean."]  # fmt: skip
    return Chart(
        name="each-worker",
        title="What each client did",
        alternative=f"{shares.label} of each client, a bar for each: "
        + "; ".join(_span(cell.shares, panel)
                    for panel, cell in zip(panels, shares.cells, strict=True)),
        remarks=(*remarks, *([shares.remark] if shares.remark else [])),
        wide=True,
        draw=lambda: _drawn(shares, panels, rows),
    )  # fmt: skip


def _panel(shares: WorkerShares, index: int) -> str:
    cell = shares.cells[index]
    return fmt.setting({name: cell.parameters[name] for name in shares.factors})


def _span(shares: tuple[float, ...], panel: str) -> str:
    return f"{panel}: {fmt.plain(min(shares))} to {fmt.plain(max(shares))}".removeprefix(": ")


def _drawn(shares: WorkerShares, panels: list[str], rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    base: Any = alt.Chart()
    data: Any = {"values": rows}
    bar = base.mark_bar(color=PALETTE[0]).encode(
        x=alt.X("worker:O", title="client", axis=alt.Axis(labelOverlap=True, labelAngle=0)),
        y=alt.Y("share:Q", title=shares.label),
    )
    mean = (
        base.transform_filter("datum.worker == 1")  # once a panel
        .mark_rule(color=PALETTE[1], strokeDash=[4, 3])
        .encode(y="mean:Q")
    )
    chart: Any = (
        alt.layer(bar, mean, data=data)
        .properties(width=270, height=150)
        .facet(facet=alt.Facet("panel:N", sort=panels, title=None), columns=_PANEL_COLUMNS)
    )
    return styled(chart)
