"""What is lost of a speed-up, as a chart: from what was measured, at the bottom, to the ideal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.report import format as fmt
from concurve.report.charts.style import PALETTE, styled
from concurve.report.document import Chart
from concurve.report.losses import LOSSES, LOST_MIN, losses_of

_MEASURED = "speed-up"
_CELLS_MAX = 60
#: One colour for each part; what was measured is darkest.
_COLOURS = (PALETTE[0], *PALETTE[1:], "#c9a0dc", "#9bbf85")


def waterfall(explanation: Explanation) -> Chart | None:
    """The chart; ``None`` if no cell has a speed-up whose loss is known."""
    cells = [cell for cell in explanation.cells if cell.speedup_lost]
    shown = cells[:_CELLS_MAX]
    parts = losses_of(explanation)
    if not shown or not parts:
        return None
    rows = [row for cell in shown for row in _rows(cell, explanation, parts)]
    left_out = len(cells) - len(shown)
    named = ", ".join(LOSSES[part] for part in parts)
    return Chart(
        name="lost-speedup",
        title="From the ideal speed-up to the measured one",
        alternative=f"The measured speed-up of each cell over its base, and what was lost of the "
        f"ideal one to {named}. The table has the same figures.",
        in_table=True,
        remarks=(f"The first {_CELLS_MAX} of {len(cells)} cells.",) if left_out else (),
        wide=False,
        draw=lambda: _drawn(rows, parts),
    )


def _drawn(rows: list[dict[str, Any]], parts: list[str]) -> Any:
    import altair as alt

    names = [_MEASURED, *(LOSSES[part] for part in parts)]
    cells = list(dict.fromkeys(row["cell"] for row in rows))
    data: Any = {"values": rows}
    chart: Any = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            y=alt.Y("cell:N", sort=cells, title=None, axis=alt.Axis(labelLimit=280)),
            x=alt.X("amount:Q", title="speed-up over the base", stack="zero"),
            color=alt.Color(
                "part:N",
                sort=names,
                scale=alt.Scale(domain=names, range=list(_COLOURS[: len(names)])),
                legend=alt.Legend(orient="top", title=None, columns=4),
            ),
            order=alt.Order("order:Q"),
            tooltip=alt.Tooltip("text:N"),
            description=alt.Description("text:N"),
        )
        .properties(width=480, height={"step": 26})
    )
    return styled(chart)


def _rows(
    cell: CellExplanation, explanation: Explanation, parts: list[str]
) -> Iterator[dict[str, Any]]:
    """A row for what was measured, and one for each part that was lost. What was gained (a part
    below 0) shortens no bar: the measured speed-up holds it."""
    where = fmt.setting({name: cell.parameters[name] for name in explanation.factors})
    amounts = [(_MEASURED, cell.speedup or 0.0)]
    amounts += [(LOSSES[part], cell.speedup_lost.get(part, 0.0)) for part in parts]
    for order, (part, amount) in enumerate(amounts):
        if amount >= LOST_MIN:
            yield {
                "cell": where or explanation.study,
                "part": part,
                "order": order,
                "amount": amount,
                "text": f"{where}: {part} {amount:.2f}".lstrip(": "),
            }
