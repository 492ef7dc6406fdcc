"""A fit as a table on the terminal, as JSON, and as a chart."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import msgspec
from rich.text import Text

from concurve.estimate import Estimate
from concurve.models import MODELS, FitResult, ModelFit, Prediction
from concurve.report import format as fmt
from concurve.report.charts.chart import Chart
from concurve.report.charts.style import INK, PALETTE, SOFT, styled
from concurve.report.letters import fit_encoding
from concurve.report.terminal import console

FORMAT = 1

_GAP = "  "
_HEADING = ("model", "parameter", "value", "interval", "AICc", "weight", "last left out")
_RIGHT = (False, False, True, False, True, True, True)
#: Points of a drawn curve.
_STEPS = 80


@dataclass(frozen=True)
class Subject:
    """What was fitted: workers and throughput of each trial, and what the columns are called.

    ``time`` tells that the column has the times of a fixed piece of work, of which throughput is
    the inverse. ``derived`` is N, X or R if Little's law gave it.
    """

    n: Sequence[float]
    x: Sequence[float]
    n_name: str
    x_name: str
    time: bool = False
    derived: str = ""

    def values(self, figure: Estimate) -> tuple[float, float | None, float | None]:
        """A throughput with its ends, as a time where the column has times."""
        if not self.time:
            return figure.value, figure.low, figure.high
        return 1 / figure.value, _inverse(figure.high), _inverse(figure.low)

    def notes(self, result: FitResult) -> list[str]:
        """How the numbers were read."""
        notes = [f"Error model: {result.error_model}."]
        if result.trials > len(result.levels):
            notes.append(
                f"Rows of the same {self.n_name} are replicates: {result.trials} trials at "
                f"{len(result.levels)} levels."
            )
        if self.time:
            notes.append(f"{self.x_name} is a time: throughput is 1/{self.x_name}.")
        if self.derived in ("N", "X"):
            notes.append(f"{self.derived} was not measured but follows from Little's law.")
        notes += [f"{name} is left out: {why}." for name, why in result.left_out.items()]
        return notes


def show(
    result: FitResult,
    predictions: Sequence[Prediction],
    subject: Subject,
    file: TextIO | None = None,
) -> None:
    """Print a fit."""
    out = console(file or sys.stdout)
    for line in lines(result, predictions, subject, out.width):
        fitted = Text(fit_encoding(line.plain, out.file), line.style)
        out.print(fitted, soft_wrap=True, highlight=False)


def lines(
    result: FitResult, predictions: Sequence[Prediction], subject: Subject, width: int
) -> Iterator[Text]:
    """The lines of a fit: models, what they say, predictions, and how to read them."""
    what = f"1/{subject.x_name}" if subject.time else subject.x_name
    counted = fmt.count(len(result.levels), "level")
    if result.trials > len(result.levels):
        counted += f", {fmt.count(result.trials, 'trial')}"
    yield Text(fmt.clean(f"{what} against {subject.n_name}: {counted}"), "bold")
    yield Text()
    yield from _models(result)
    yield Text(f"* chosen: {MODELS[result.chosen].formula}", "dim")
    yield Text()
    for sentence in result.answers:
        yield from _wrapped(sentence, width)
    if predictions:
        yield Text()
        yield from _predictions(predictions, subject)
    if result.warnings or any(item.warning for item in predictions):
        yield Text()
    for sentence in (*result.warnings, *(p.warning for p in predictions if p.warning)):
        yield from _wrapped(f"! {sentence}", width, "yellow")
    yield Text()
    level = f"{100 * result.confidence:g} %"
    yield from _wrapped(f"Intervals are {level} profile-likelihood intervals.", width, "dim")
    for note in subject.notes(result):
        yield from _wrapped(note, width, "dim")


def _models(result: FitResult) -> Iterator[Text]:
    """A row a parameter, the models in the order of their weights."""
    criterion = "AICc" if result.criterion == "aicc" else "AICc (none)"
    rows: list[tuple[str, ...]] = [
        tuple(criterion if name == "AICc" else name for name in _HEADING)
    ]
    styles = ["bold"]
    for item in sorted(result.models, key=lambda m: (m.name != result.chosen, -m.weight)):
        figures = {**item.parameters, **({"peak N": item.peak.n} if item.peak else {})}
        for number, (name, figure) in enumerate(figures.items()):
            first = number == 0
            rows.append(
                (
                    (f"{item.name}{' *' if item.name == result.chosen else ''}" if first else ""),
                    name,
                    *_figure(figure),
                    *(_standing(item) if first else ("", "", "")),
                )
            )
            styles.append("" if item.name == result.chosen else "dim")
    yield from _aligned(rows, styles, _RIGHT)


def _standing(item: ModelFit) -> tuple[str, str, str]:
    last = item.last_left_out
    return (
        fmt.MISSING if item.aicc is None else f"{item.aicc:.1f}",
        f"{100 * item.weight:.0f} %",
        fmt.MISSING if last is None else f"{100 * last:+.1f} %",
    )


def _figure(figure: Estimate) -> tuple[str, str]:
    """Value and interval with the digits that the interval justifies."""
    if math.isinf(figure.value):
        return "∞", f"{_end(figure.low)} to ∞"
    shown = fmt.estimate(figure)
    if shown.half:
        return shown.value, shown.span
    return f"{figure.value:.4g}", f"{_end(figure.low)} to {_end(figure.high)}"


def _end(value: float | None) -> str:
    if value is None:
        return fmt.MISSING
    return ("∞" if value > 0 else "-∞") if math.isinf(value) else f"{value:.4g}"


def _predictions(predictions: Sequence[Prediction], subject: Subject) -> Iterator[Text]:
    rows = [(subject.n_name, "expected " + subject.x_name, "band")]
    for item in predictions:
        value, low, high = subject.values(item.throughput)
        rows.append((f"{item.n:g}", *_figure(Estimate(value=value, low=low, high=high))))
    clean = [tuple(fmt.clean(cell) for cell in row) for row in rows]
    yield from _aligned(clean, ["bold"] + [""] * len(predictions), (True, True, False))


def _aligned(
    rows: Sequence[tuple[str, ...]], styles: Sequence[str], right: Sequence[bool]
) -> Iterator[Text]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, style in zip(rows, styles, strict=True):
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        yield Text(_GAP.join(cells).rstrip(), style)


def _wrapped(sentence: str, width: int, style: str = "") -> Iterator[Text]:
    for line in textwrap.wrap(fmt.clean(sentence), max(width, 20), subsequent_indent="  "):
        yield Text(line, style)


def to_json(result: FitResult, predictions: Sequence[Prediction], subject: Subject) -> bytes:
    """The fit as JSON; what is infinite or unknown is ``null``."""
    return msgspec.json.encode(as_dict(result, predictions, subject))


def as_dict(
    result: FitResult, predictions: Sequence[Prediction], subject: Subject
) -> dict[str, Any]:
    """The fit in the form of its JSON."""
    return {
        "format": FORMAT,
        "of": "time" if subject.time else "throughput",
        "columns": {"n": subject.n_name, "x": subject.x_name},
        "levels": result.levels,
        "throughput": result.throughput,
        "trials": result.trials,
        "error_model": result.error_model,
        "absolute": result.absolute,
        "confidence": result.confidence,
        "criterion": result.criterion,
        "observations": result.observations,
        "models": [_model(item) for item in result.models],
        "left_out": [{"name": k, "reason": v} for k, v in result.left_out.items()],
        "chosen": result.chosen,
        "predictions": [_prediction(item, subject) for item in predictions],
        "answers": result.answers,
        "warnings": result.warnings,
        "notes": subject.notes(result),
    }


def _model(item: ModelFit) -> dict[str, Any]:
    peak = item.peak and {
        "n": _interval(item.peak.n),
        "throughput": _interval(item.peak.throughput),
        "established": item.peak.established,
    }
    return {
        "name": item.name,
        "formula": MODELS[item.name].formula,
        "parameters": {name: _interval(figure) for name, figure in item.parameters.items()},
        "standard_errors": item.standard_errors,
        "peak": peak,
        "aicc": item.aicc,
        "weight": item.weight,
        "residual_deviation": item.residual_deviation,
        "df": item.df,
        "last_left_out": item.last_left_out,
        "durbin_watson": item.durbin_watson,
        "chance_of_order": item.chance_of_order,
        "chance_of_misfit": item.chance_of_misfit,
        "superlinear": item.superlinear,
        "notes": item.notes,
    }


def _interval(figure: Estimate) -> dict[str, float | None]:
    return {
        "value": _finite(figure.value),
        "low": _finite(figure.low),
        "high": _finite(figure.high),
    }


def _prediction(item: Prediction, subject: Subject) -> dict[str, Any]:
    value, low, high = subject.values(item.throughput)
    entry: dict[str, Any] = {"n": item.n}
    entry |= {"value": _finite(value), "low": _finite(low), "high": _finite(high)}
    return entry | ({"warning": item.warning} if item.warning else {})


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _inverse(value: float | None) -> float | None:
    return None if value is None else 1 / value


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
