"""A fit as a table on the terminal, with what it says."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.text import Text

from concurve.estimate import Estimate
from concurve.models import MODELS, FitResult, ModelFit, Prediction
from concurve.report import format as fmt
from concurve.report.console import console
from concurve.report.fit.subject import Subject
from concurve.report.letters import fit_encoding

_GAP = "  "
_HEADING = ("model", "parameter", "value", "interval", "AICc", "weight", "last left out")
_RIGHT = (False, False, True, False, True, True, True)


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
