"""A fit as a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from concurve.models import FitResult, Prediction
from concurve.report import format as fmt
from concurve.report.charts.chart import Chart
from concurve.report.charts.style import INK, PALETTE, SOFT, styled
from concurve.report.fit.subject import Subject

#: Points of a drawn curve.
_STEPS = 80


def chart(result: FitResult, predictions: Sequence[Prediction], subject: Subject) -> Chart:
    """Trials, the chosen model's curve, and the expected throughput with its band."""
    import altair as alt

    data: Any = alt.Data
    top = max([*result.levels, *(item.n for item in predictions)])
    first = min(result.levels)
    log = first > 0 and top / first > 8
    rows = [*_trials(subject), *_curves(result, first, top, log, subject)]
    what = subject.x_name
    x = alt.X("n:Q", title=fmt.clean(subject.n_name), scale=_scale(alt, log, first, top))
    y = alt.Y("value:Q", title=fmt.clean(what), axis=alt.Axis(tickCount=6))
    base = alt.Chart(data(values=rows)).encode(x=x)

    def of(kind: str) -> Any:
        return base.transform_filter(f"datum.kind == '{kind}'")

    measured = max(result.levels)
    layers = [
        of("expected").mark_area(opacity=0.16, color=PALETTE[1]).encode(y="low:Q", y2="high:Q"),
        of("expected").mark_line(strokeWidth=1.4, strokeDash=[5, 4], color=PALETTE[1]).encode(y=y),
        of("chosen").mark_line(strokeWidth=2, color=PALETTE[0]).encode(y=y),
        of("trial").mark_circle(size=34, opacity=0.75, color=INK).encode(y=y),
    ]
    if top > measured:
        line = alt.Chart(data(values=[{"n": measured}])).encode(x=alt.X("n:Q"))
        layers.insert(0, line.mark_rule(color=SOFT, strokeDash=[2, 3]))
    title = f"{what} against {subject.n_name}"
    return Chart(
        name="fit",
        title=title,
        alternative=f"{title}: trials, {result.chosen} as chosen, and what is expected "
        "over all models with its band.",
        remarks=(f"solid: {result.chosen}; dashed with band: expected over all models",),
        wide=False,
        spec=styled(
            alt.layer(*layers).properties(
                width=560,
                height=320,
                title=alt.TitleParams(
                    fmt.clean(title),
                    subtitle=[
                        f"solid: {result.chosen}; dashed: expected over all models, with its "
                        f"{100 * result.confidence:g} % band"
                    ],
                    anchor="start",
                    color=INK,
                    subtitleColor=SOFT,
                ),
            )
        ),
    )


def _scale(alt: Any, log: bool, first: float, top: float) -> Any:
    if log:
        return alt.Scale(type="log", base=2, domain=[first / 1.06, top * 1.06], nice=False)
    return alt.Scale(domain=[0, top * 1.03], nice=False)


def _trials(subject: Subject) -> list[dict[str, Any]]:
    return [
        {"kind": "trial", "n": n, "value": 1 / x if subject.time else x}
        for n, x in zip(subject.n, subject.x, strict=True)
    ]


def _curves(
    result: FitResult, first: float, top: float, log: bool, subject: Subject
) -> list[dict[str, Any]]:
    """The chosen model and the expectation over all, at even steps of the axis."""
    from concurve.models import predict
    from concurve.models.predict import curve_of

    steps = [i / _STEPS for i in range(_STEPS + 1)]
    levels = [first * (top / first) ** s if log else first + (top - first) * s for s in steps]
    rows: list[dict[str, Any]] = []
    for n, x in zip(levels, curve_of(result.best, levels).tolist(), strict=True):
        if math.isfinite(x):
            rows.append({"kind": "chosen", "n": n, "value": 1 / x if subject.time else x})
    for item in predict(result, levels):
        value, low, high = subject.values(item.throughput)
        rows.append({"kind": "expected", "n": item.n, "value": value, "low": low, "high": high})
    return rows
