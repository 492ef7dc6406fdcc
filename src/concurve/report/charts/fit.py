"""A fit as a chart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from concurve.findings.fit import Fit
from concurve.report import format as fmt
from concurve.report.charts.axes import LOG2_SPAN
from concurve.report.charts.style import INK, PALETTE, SOFT, styled
from concurve.report.document import Chart


def fit_chart(fit: Fit) -> Chart:
    """Trials, the chosen model's curve, and what is expected with its band."""
    title = f"{fit.x_name} against {fit.n_name}"
    chosen = fit.result.chosen
    return Chart(
        name="fit",
        title=title,
        alternative=f"{title}: trials, {chosen} as chosen, and what is expected "
        "over all models with its band.",
        remarks=(f"solid: {chosen}; dashed with band: expected over all models",),
        wide=False,
        draw=lambda: _drawn(fit, title),
    )


def _drawn(fit: Fit, title: str) -> Any:
    import altair as alt

    data: Any = alt.Data
    measured, first = max(fit.result.levels), min(fit.result.levels)
    top = max(item.n for item in fit.expected)
    log = first > 0 and top / first > LOG2_SPAN
    x = alt.X("n:Q", title=fmt.clean(fit.n_name), scale=_scale(alt, log, first, top))
    y = alt.Y("value:Q", title=fmt.clean(fit.x_name), axis=alt.Axis(tickCount=6))
    base = alt.Chart(data(values=_rows(fit))).encode(x=x)

    def of(kind: str) -> Any:
        return base.transform_filter(f"datum.kind == '{kind}'")

    layers = [
        of("expected").mark_area(opacity=0.16, color=PALETTE[1]).encode(y="low:Q", y2="high:Q"),
        of("expected").mark_line(strokeWidth=1.4, strokeDash=[5, 4], color=PALETTE[1]).encode(y=y),
        of("chosen").mark_line(strokeWidth=2, color=PALETTE[0]).encode(y=y, detail="piece:N"),
        of("trial").mark_circle(size=34, opacity=0.75, color=INK).encode(y=y),
    ]
    if top > measured:
        line = alt.Chart(data(values=[{"n": measured}])).encode(x=alt.X("n:Q"))
        layers.insert(0, line.mark_rule(color=SOFT, strokeDash=[2, 3]))
    return styled(
        alt.layer(*layers).properties(
            width=560,
            height=320,
            title=alt.TitleParams(
                fmt.clean(title),
                subtitle=[
                    f"solid: {fit.result.chosen}; dashed: expected over all models, with its "
                    f"{100 * fit.result.confidence:g} % band"
                ],
                anchor="start",
                color=INK,
                subtitleColor=SOFT,
            ),
        )
    )


def _scale(alt: Any, log: bool, first: float, top: float) -> Any:
    if log:
        return alt.Scale(type="log", base=2, domain=[first / 1.06, top * 1.06], nice=False)
    return alt.Scale(domain=[0, top * 1.03], nice=False)


def _rows(fit: Fit) -> list[dict[str, Any]]:
    trials = zip(fit.n, fit.values, strict=True)
    return [
        *({"kind": "trial", "n": n, "value": value} for n, value in trials),
        *_pieces(fit.chosen),
        *(
            {"kind": "expected", "n": item.n, "value": item.figure.value,
             "low": item.figure.low, "high": item.figure.high}
            for item in fit.expected
        ),
    ]  # fmt: skip


def _pieces(curve: Sequence[tuple[float, float]]) -> Iterator[dict[str, Any]]:
    """The rows of a curve, which is drawn as a line for each piece: none crosses a gap in which the
    model has no value."""
    piece = 0
    for n, value in curve:
        if math.isnan(value):
            piece += 1
        else:
            yield {"kind": "chosen", "piece": piece, "n": n, "value": value}
