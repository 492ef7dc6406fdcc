"""The report of a fit of measured numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.fit import Fit, ModelFit
from concurve.report import format as fmt
from concurve.report.charts.fit import fit_chart
from concurve.report.document import (
    Block,
    Column,
    Detail,
    Document,
    List,
    Paragraph,
    Role,
    Section,
    Table,
    Tone,
    at_detail,
)


def fit_document(fit: Fit, detail: Detail = Detail.BRIEF) -> Document:
    """What to expect and the answers; then what is doubtful, the models, and how to read them."""
    result = fit.result
    what = f"1/{fit.x_name}" if fit.is_time else fit.x_name
    counted = fmt.count(len(result.levels), "level")
    if result.trials > len(result.levels):
        counted += f", {fmt.count(result.trials, 'trial')}"
    document = Document(
        title=f"{what} against {fit.n_name}: {counted}",
        blocks=(
            *(Paragraph(text, Tone.WARNING) for text in fit.told),
            *_expected(fit),
            Section("What they say", (List(tuple(map(Paragraph, result.answers))),),
                    brief_title=""),
            *_warnings(fit),
            Section("Models", tuple(_models(fit)), brief_title=""),
            Section("Chart", (fit_chart(fit),)),
            Section("How to read it", tuple(_notes(fit)), brief_title=""),
        ),
    )  # fmt: skip
    return at_detail(document, detail)


def _models(fit: Fit) -> Iterator[Block]:
    """A row a parameter, the models in the order of their weights."""
    result = fit.result
    models = sorted(result.models, key=lambda m: (m.name != result.chosen, -m.weight))
    rows: list[tuple[str, ...]] = []
    tones: list[Tone] = []
    for item in models:
        peak = item.peak if result.misfit is None else None
        figures = {**item.parameters, **({"peak N": peak.n} if peak else {})}
        standing = (_name(fit, item), *_standing(item))
        for number, (name, figure) in enumerate(figures.items()):
            model, *rest = ("", "", "", "") if number else standing
            rows.append((model, name, *_parameter(name, figure), *rest))
            tones.append(Tone.PLAIN if item.name == result.chosen else Tone.SOFT)
    aicc = "AICc" if result.criterion == "aicc" else "AICc (none)"
    # What fits beside the parameters is shown in the order of the numbers.
    headings = (
        ("model", Role.NAME, 0), ("parameter", Role.NAME, 0), ("value", Role.NUMBER, 0),
        ("given the model", Role.TEXT, 0), (aicc, Role.NUMBER, 3), ("weight", Role.NUMBER, 1),
        ("last left out", Role.NUMBER, 2),
    )  # fmt: skip
    columns = (
        Column(
            title,
            [row[number] for row in rows],
            role,
            name=title,
            wanted=wanted,
            is_filled=title != "AICc (none)",
        )
        for number, (title, role, wanted) in enumerate(headings)
    )
    title = "One row a parameter."
    chosen = "chosen" if result.misfit is None else "the best of them, none describes the curve"
    yield Table(tuple(columns), tuple(tones), title=title, more="--json")
    yield Paragraph(f"* {chosen}: {result.best.formula}", Tone.SOFT)


def _name(fit: Fit, item: ModelFit) -> str:
    return f"{item.name} *" if item.name == fit.result.chosen else item.name


def _standing(item: ModelFit) -> tuple[str, str, str]:
    last = item.last_left_out
    return (
        fmt.MISSING if item.aicc is None else f"{item.aicc:.1f}",
        f"{100 * item.weight:.0f} %",
        fmt.MISSING if last is None else f"{100 * last:+.1f} %",
    )


def _parameter(name: str, figure: Estimate) -> tuple[str, str]:
    """Those without a unit have no exponents: no ``0e-8``."""
    shown = _figure(figure)
    if name not in ("alpha", "beta") or "e-" not in "".join(shown):
        return shown
    ends = (figure.value, figure.low or 0.0, figure.high or 0.0)
    value, low, high = (
        words.in_decimals(end, 4) if math.isfinite(end) else _end(end) for end in ends
    )
    return value, "" if low == high else f"{low} to {high}"


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


def _expected(fit: Fit) -> Iterator[Section]:
    if fit.expectations:
        figures = [_figure(item.figure) for item in fit.expectations]
        columns = (
            Column(fit.n_name, [f"{item.n:g}" for item in fit.expectations], Role.NAME),
            Column(f"expected {fit.x_name}", [value for value, _ in figures], Role.NUMBER),
            Column("band", [band for _, band in figures]),
        )
        yield Section("What to expect", (Table(columns),), brief_title="")


def _warnings(fit: Fit) -> Iterator[Section]:
    said = [*fit.result.warnings, *(item.warning for item in fit.expectations if item.warning)]
    if said:
        warnings = tuple(Paragraph(sentence, Tone.WARNING) for sentence in said)
        yield Section("Warnings", warnings, brief_title="")


def _notes(fit: Fit) -> Iterator[Paragraph]:
    level = f"{100 * fit.result.confidence:g} %"
    read = (
        f"Intervals in the table are {level} profile-likelihood intervals given the model of their "
        "row, as if it were known to be true"
    )
    if fit.result.misfit is None:
        read += (
            ". Those in the sentences hold under every model that the measurements do not "
            f"contradict: {', '.join(fit.result.stated.models)}"
        )
    else:
        read += ", which none of them is"
    yield Paragraph(f"{read}.", Tone.SOFT)
    for note in fit.notes:
        yield Paragraph(note, Tone.SOFT)
