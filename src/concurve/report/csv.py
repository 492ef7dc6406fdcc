"""A run as rectangular data, for CSV and data frames: one row a cell, or one row a trial. Figures
in full, units in the names."""

from __future__ import annotations

import csv
import io
import math
from typing import NamedTuple

from concurve.findings.run import Findings, TrialFindings
from concurve.report.format import clean_lines

_RESERVED_CELL = {"cell", "status", "trials", "set_aside", "in_doubt", "load_failed"}
_RESERVED_TRIAL = {
    "cell", "block", "attempt", "used", "set_aside", "in_doubt", "load_failed", "cause"
}  # fmt: skip

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
    factors = _factors(findings, _RESERVED_CELL, names)
    heading = ["cell", *factors.values(), "status", "trials"]
    heading += ["set_aside", "in_doubt", "load_failed"]
    for name in names:
        heading += [name, f"{name}_low", f"{name}_high"]
    rows: list[list[object]] = []
    for cell in findings.cells:
        row: list[object] = [cell.index]
        row += [cell.parameters.get(factor) for factor in factors]
        shown = cell.indicators.get(findings.primary)
        aside = 0 if cell.including_doubtful is None else cell.trials - (shown.n if shown else 0)
        in_doubt = any(cell.indicators[name].in_doubt for name in names if name in cell.indicators)
        row += [cell.status, cell.trials, aside, in_doubt, bool(cell.load_failed)]
        for name in names:
            figure = cell.indicators.get(name)
            bounds = (figure.value, figure.low, figure.high) if figure else (None, None, None)
            row += [_finite(bound) for bound in bounds]
        rows.append(row)
    return Rows(heading, rows)


def trial_rows(findings: TrialFindings) -> Rows:
    """One row a trial that gave a figure: parameters, block, attempt, whether it is used, whether
    it is set aside for quieter ones in the primary figure, whether it is in doubt, whether the load
    of its cell failed, the cause of a doubt, figures."""
    names = list(dict.fromkeys(name for dot in findings.dots for name in dot.values))
    factors = _factors(findings, _RESERVED_TRIAL, names)
    causes = {(item.cell, item.block, item.attempt): item.cause for item in findings.rejects}
    parameters = {cell.index: cell.parameters for cell in findings.cells}
    doubted = {(item.cell, item.block, item.attempt) for item in findings.rejects if item.used}
    failed = {cell.index for cell in findings.cells if cell.load_failed}
    of_trial = ["block", "attempt", "used", "set_aside", "in_doubt", "load_failed", "cause"]
    heading = ["cell", *factors.values(), *of_trial, *names]
    rows: list[list[object]] = []
    for dot in findings.dots:
        levels = parameters.get(dot.cell, {})
        row: list[object] = [dot.cell, *(levels.get(factor) for factor in factors)]
        key = (dot.cell, dot.block, dot.attempt)
        aside = findings.primary in dot.set_aside
        row += [dot.block, dot.attempt, dot.used, aside, key in doubted, dot.cell in failed]
        row += [causes.get(key, "")]
        row += [_finite(dot.values.get(name)) for name in names]
        rows.append(row)
    return Rows(heading, rows)


def _factors(findings: Findings, reserved: set[str], indicators: list[str]) -> dict[str, str]:
    """Factors and their column names; a name that is already taken gets a mark."""
    names = [factor.name for factor in findings.factors]
    for cell in findings.cells:
        names += cell.parameters
    taken = reserved | set(indicators)
    return {name: f"parameter_{name}" if name in taken else name for name in dict.fromkeys(names)}


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
    """A text that neither steers a terminal nor is computed by a spreadsheet: an apostrophe makes a
    formula text. A number stays one, signs included."""
    text = clean_lines(text)
    if text.lstrip().startswith(_FORMULA) and not _is_number(text):
        return f"'{text}"
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
