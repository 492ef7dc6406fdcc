"""A run as rectangular data, for CSV and data frames: one row a cell, or one row a trial. Figures
in full, units in the names."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.findings.best import BestFinding
from concurve.findings.comparison import Comparison
from concurve.findings.explanation import Explanation
from concurve.findings.fit import Expectation, FitResult
from concurve.findings.history import History
from concurve.findings.run import Findings, TrialFindings
from concurve.report.format import clean_lines
from concurve.secrets import KNOWN
from concurve.words import is_number

_RESERVED_CELL = {"cell", "status", "trials", "set_aside", "in_doubt", "load_failed"}
_RESERVED_TRIAL = {
    "cell", "status", "block", "attempt", "used", "set_aside", "in_doubt", "load_failed", "cause",
    "detail",
}  # fmt: skip
_RESERVED_COMPARED = {"indicator", "verdict", "in_doubt", "note"}
_COMPARED = ("ratio", "base", "new")
_RESERVED_HISTORY = {"run", "started", "version", "verdict"}
_RESERVED_EXPLAINED = {
    "cause", "limit", "evidence", "place", "doubt", "speedup", "speedup_possible",
}  # fmt: skip

#: A figure has a column for itself and one for each end of its interval.
_BOUNDS = ("", "_low", "_high")

#: A text that begins with one of these is a formula for spreadsheets.
_FORMULA = ("=", "+", "-", "@")


class Rows(NamedTuple):
    """Column names, and rows of the same length; ``None`` is a missing figure."""

    heading: list[str]
    rows: list[list[object]]


def cell_rows(findings: Findings) -> Rows:
    """One row a cell: parameters, status, trials in use, then each indicator with its interval
    as ``NAME_low`` and ``NAME_high``.

    ``set_aside`` is the number of its trials that do not count in the primary figure, because
    enough quiet ones do; ``in_doubt`` says whether any figure of the row has the mark of a doubt,
    ``load_failed`` whether so much of its load failed that it is not compared. A figure that is
    missing, and an interval with too few trials, are ``None``. The columns do not depend on how
    much is measured yet: what the laboratory measures of any program, what was asked for and what
    is extracted have theirs in any case.
    """
    known = (info.name for info in findings.indicators)
    names = [*findings.names_in_order(), findings.primary, *findings.asked, *findings.extracted]
    names = list(dict.fromkeys((*names, *known)))
    factors = _factors_of(findings)
    columns = _columns(_RESERVED_CELL, names, factors, _BOUNDS)
    heading = ["cell", *columns.factors, "status", "trials"]
    heading += ["set_aside", "in_doubt", "load_failed", *columns.figures]
    rows: list[list[object]] = []
    for cell in findings.cells:
        row: list[object] = [cell.index]
        row += [cell.parameters.get(factor) for factor in factors]
        in_doubt = any(cell.indicators[name].in_doubt for name in names if name in cell.indicators)
        row += [cell.status, cell.trials, cell.set_aside, in_doubt, bool(cell.load_failed)]
        for name in names:
            row += _bounds(cell.indicators.get(name))
        rows.append(row)
    return Rows(heading, rows)


def trial_rows(findings: TrialFindings) -> Rows:
    """One row a trial that gave a figure: parameters, the status of its cell, block, attempt,
    whether it is used, whether it is set aside for quieter ones in the primary figure, whether it
    is in doubt, whether the load of its cell failed, the cause of a doubt with its size, figures.
    """
    names = list(dict.fromkeys(name for dot in findings.dots for name in dot.values))
    factors = _factors_of(findings)
    columns = _columns(_RESERVED_TRIAL, names, factors)
    rejects = {(item.cell, item.block, item.attempt): item for item in findings.rejects}
    parameters = {cell.index: cell.parameters for cell in findings.cells}
    doubted = {(item.cell, item.block, item.attempt) for item in findings.rejects if item.used}
    failed = {cell.index for cell in findings.cells if cell.load_failed}
    status = {cell.index: cell.status for cell in findings.cells}
    of_trial = ["status", "block", "attempt", "used", "set_aside", "in_doubt", "load_failed"]
    of_trial += ["cause", "detail"]
    heading = ["cell", *columns.factors, *of_trial, *columns.figures]
    rows: list[list[object]] = []
    for dot in findings.dots:
        levels = parameters.get(dot.cell, {})
        row: list[object] = [dot.cell, *(levels.get(factor) for factor in factors)]
        key = (dot.cell, dot.block, dot.attempt)
        aside = findings.primary in dot.set_aside
        row += [status.get(dot.cell), dot.block, dot.attempt, dot.used, aside]
        row += [key in doubted, dot.cell in failed]
        reject = rejects.get(key)
        row += ["", ""] if reject is None else [reject.cause, reject.detail]
        row += [_finite(dot.values.get(name)) for name in names]
        rows.append(row)
    return Rows(heading, rows)


def best_rows(item: BestFinding, figures: Sequence[Estimate | None]) -> Rows:
    """One row a setting that cannot be told apart from the best: its levels, its figure with its
    interval, and whether it is the recommended one, and the one to use."""
    columns = _columns({"recommended", "use"}, [item.indicator], item.factors, _BOUNDS)
    rows: list[list[object]] = [
        [
            *(setting[name] for name in item.factors),
            *_bounds(figure),
            setting == item.recommended,
            setting == item.use,
        ]
        for setting, figure in zip(item.settings, figures, strict=True)
    ]
    return Rows([*columns.factors, *columns.figures, "recommended", "use"], rows)


def comparison_rows(comparison: Comparison) -> Rows:
    """One row a cell and indicator: parameters, verdict, the ratio and both sides, each with its
    interval, and why there is none."""
    factors, figures = _columns(_RESERVED_COMPARED, _COMPARED, comparison.factors, _BOUNDS)
    heading = [*factors, "indicator", "verdict", "in_doubt", *figures, "note"]
    rows: list[list[object]] = [
        [
            *(cell.parameters.get(name) for name in comparison.factors),
            *(cell.indicator, cell.verdict, cell.is_doubted),
            *(end for figure in (cell.ratio, cell.base, cell.new) for end in _bounds(figure)),
            cell.note,
        ]
        for cell in comparison.cells
    ]
    return Rows(heading, rows)


def history_rows(history: History) -> Rows:
    """One row a cell and run, the oldest first: parameters, run, its start, the figure with its
    interval; where it changed, how, and the new level over the former one."""
    reserved = {*_RESERVED_HISTORY, *_with_bounds("change")}
    columns = _columns(reserved, [history.indicator.name], history.factors, _BOUNDS)
    heading = [*columns.factors, "run", "started", "version", *columns.figures]
    heading += ["verdict", *_with_bounds("change")]
    rows: list[list[object]] = [
        [
            *(cell.parameters.get(name) for name in history.factors),
            *(point.run, point.started, point.version, *_bounds(point.figure)),
            *(point.verdict, *_bounds(point.change)),
        ]
        for cell in history.cells
        for point in cell.points
    ]
    return Rows(heading, rows)


def explanation_rows(explanation: Explanation) -> Rows:
    """One row a cell: parameters, the cause with the sentence that says why, its share of the loss,
    and the time of an operation in ns, as a whole and by its parts."""
    parts = dict.fromkeys(part for cell in explanation.cells for part in cell.per_operation)
    figures = ["share", *(f"{part}_ns" for part in parts)]
    columns = _columns(_RESERVED_EXPLAINED, figures, explanation.factors, _BOUNDS)
    heading = [*columns.factors, "cause", "limit", "evidence", "place", "doubt"]
    heading += [*columns.figures[: len(_BOUNDS)], "speedup", "speedup_possible"]
    heading += columns.figures[len(_BOUNDS) :]
    rows: list[list[object]] = [
        [
            *(cell.parameters.get(name) for name in explanation.factors),
            *(cell.cause, cell.limit, cell.evidence, cell.place, cell.doubt),
            *_bounds(cell.share),
            *(cell.speedup, cell.speedup_possible),
            *(end for part in parts for end in _bounds(cell.per_operation.get(part))),
        ]
        for cell in explanation.cells
    ]
    return Rows(heading, rows)


def fit_rows(result: FitResult | None) -> Rows:
    """One row a parameter of a model: whether the model is the chosen one, its weight, and the
    parameter with its interval given the model. None where nothing was fitted."""
    rows: list[list[object]] = []
    if result is not None:
        rows = [
            [model.name, model.name == result.chosen, model.weight, name, *_bounds(figure)]
            for model in result.models
            for name, figure in model.parameters.items()
        ]
    return Rows(["model", "chosen", "weight", "parameter", *_with_bounds("value")], rows)


def prediction_rows(expectations: Iterable[Expectation]) -> Rows:
    """One row a number of workers to predict at, with what to expect there and its interval."""
    rows: list[list[object]] = [[it.n, *_bounds(it.figure), it.warning] for it in expectations]
    return Rows(["n", *_with_bounds("value"), "warning"], rows)


def _with_bounds(name: str) -> list[str]:
    return [f"{name}{end}" for end in _BOUNDS]


def _bounds(figure: Estimate | None) -> list[float | None]:
    if figure is None:
        return [None, None, None]
    return [_finite(end) for end in (figure.value, figure.low, figure.high)]


class _Columns(NamedTuple):
    """The names of the columns of factors, and of figures with their ends."""

    factors: list[str]
    figures: list[str]


def _columns(
    reserved: set[str], figures: Sequence[str], factors: Iterable[str], ends: Sequence[str] = ("",)
) -> _Columns:
    """Column names that differ from each other and from the ``reserved`` ones. Each figure has a
    column for each of these ends. A name that is taken already gets a mark: figures come before
    factors."""
    taken = set(reserved)

    def free(name: str, mark: str, ends: Sequence[str]) -> list[str]:
        while not taken.isdisjoint(f"{name}{end}" for end in ends):
            name = f"{mark}_{name}"
        found = [f"{name}{end}" for end in ends]
        taken.update(found)
        return found

    of_figures = [name for figure in figures for name in free(figure, "indicator", ends)]
    of_factors = [name for factor in factors for name in free(factor, "parameter", ("",))]
    return _Columns(of_factors, of_figures)


def _factors_of(findings: Findings) -> list[str]:
    """The factors of a run, and what else its cells have as parameters."""
    names = [factor.name for factor in findings.factors]
    for cell in findings.cells:
        names += cell.parameters
    return list(dict.fromkeys(names))


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def cells(findings: Findings) -> str:
    """One row a cell; see :func:`cell_rows`. What is missing is empty."""
    return _text(cell_rows(findings))


def trials(findings: TrialFindings) -> str:
    """One row a trial; see :func:`trial_rows`. What is missing is empty."""
    return _text(trial_rows(findings))


def _text(table: Rows) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_field(name) for name in table.heading])
    writer.writerows([_field(value) for value in row] for row in table.rows)
    return out.getvalue()


def _field(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _text_field(value)
    return repr(value) if isinstance(value, float) else value


def _text_field(text: str) -> str:
    """A text without secrets, that neither steers a terminal nor is computed by a spreadsheet: an
    apostrophe makes a formula text. A number stays one, signs included."""
    # Here, where texts are still told from numbers: a secret may be the same as a number.
    text = clean_lines(KNOWN.hide(text))
    if text.lstrip().startswith(_FORMULA) and not is_number(text):
        return f"'{text}"
    return text
