"""A stored run on the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from concurve.analysis import findings_of
from concurve.report import terminal
from concurve.store import Store


def note(text: str) -> None:
    """A line for people, apart from what is printed as a result."""
    print(f"concurve: {text}", file=sys.stderr)


def show_run(store: Store, run: str, report: Path | None = None, best_by: str = "") -> None:
    """Print a stored run; ``best_by`` names an indicator by which settings are the best."""
    findings = findings_of(store, store.find_run(run), best_by, dots=False)
    terminal.show(findings, sys.stdout, str(report) if report else None)
