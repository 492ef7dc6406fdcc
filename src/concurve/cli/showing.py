"""A stored run on the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from concurve.analysis.run import findings_of
from concurve.findings.run import Findings
from concurve.report import terminal
from concurve.store import Store


def note(text: str) -> None:
    """A line for people, apart from what is printed as a result."""
    print(f"concurve: {text}", file=sys.stderr)


def show_run(
    store: Store, run: str, report: Path | None = None, best_by: str = "", models: bool = False
) -> None:
    """Print a stored run; ``best_by`` names an indicator by which settings are the best,
    ``models`` asks for scaling models."""
    findings = findings_to_show(store, run, best_by, models)
    terminal.show(findings, sys.stdout, str(report) if report else None)


def findings_to_show(store: Store, run: str, best_by: str, models: bool) -> Findings:
    """A run's findings for views of its cells; fitting models needs every trial, and time."""
    findings = findings_of(store, store.find_run(run), best_by, dots=models)
    if models:
        from concurve.analysis.scaling import with_models

        findings = with_models(findings)
    return findings
