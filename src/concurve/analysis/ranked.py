"""The figure by which runs compare their settings, where nobody names one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from concurve.findings.run import Findings

RunT = TypeVar("RunT", bound=Findings)


def ranked_of(runs: Sequence[RunT], has: Callable[[RunT, str], bool]) -> str:
    """The primary one of the first run, unless a run has recognised that it compares nothing, and
    goes by another one, which all of them have: ``has`` tells."""
    primary = runs[0].primary
    found = (run.ranked for run in runs if run.ranked != run.primary == primary)
    return next((name for name in found if all(has(run, name) for run in runs)), primary)
