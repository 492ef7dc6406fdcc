"""The findings of one run; :mod:`~concurve.analysis.run.findings` is the table of contents."""

from __future__ import annotations

from concurve.analysis.run.findings import (
    StoredRun,
    analyse,
    findings_of,
    first_record,
    stored_run,
    trial_findings_of,
    with_trials,
)

__all__ = [
    "StoredRun",
    "analyse",
    "findings_of",
    "first_record",
    "stored_run",
    "trial_findings_of",
    "with_trials",
]
