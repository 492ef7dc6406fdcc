"""A stored run → its findings."""

from __future__ import annotations

from concurve.analysis.run.findings import StoredRun, analyse, findings_of, stored_run

__all__ = ["StoredRun", "analyse", "findings_of", "stored_run"]
