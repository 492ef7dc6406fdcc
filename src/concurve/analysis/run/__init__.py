"""The findings of one run; :mod:`~concurve.analysis.run.findings` is the table of contents."""

from __future__ import annotations

from concurve.analysis.run.findings import (
    RecordWarnings,
    StoredRun,
    analyse,
    findings_of,
    first_record,
    newest_in_use,
    stored_run,
    trial_findings_of,
    warned_of,
    with_trials,
)

__all__ = [
    "RecordWarnings",
    "StoredRun",
    "analyse",
    "findings_of",
    "first_record",
    "newest_in_use",
    "stored_run",
    "trial_findings_of",
    "warned_of",
    "with_trials",
]
