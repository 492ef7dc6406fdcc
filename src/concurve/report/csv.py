"""The table as CSV: one row a cell, or one row a trial. Figures in full, units in the names."""

from __future__ import annotations

import csv
import io

from concurve.findings.run import Findings
from concurve.report.rows import Rows, cell_rows, trial_rows


def cells(findings: Findings) -> str:
    """One row a cell; see :func:`concurve.report.rows.cell_rows`. What is missing is empty."""
    return _text(cell_rows(findings))


def trials(findings: Findings) -> str:
    """One row a trial; see :func:`concurve.report.rows.trial_rows`. What is missing is empty."""
    return _text(trial_rows(findings))


def _text(table: Rows) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.heading)
    writer.writerows([_field(value) for value in row] for row in table.rows)
    return out.getvalue()


def _field(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else value
