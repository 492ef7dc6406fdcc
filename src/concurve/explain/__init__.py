"""Records → what limits each cell of a run."""

from __future__ import annotations

from concurve.explain.explanation import (
    AccountReader,
    explain_run,
    explained,
    explained_limits,
    may_explain,
    with_experiments,
)
from concurve.explain.timelines import ThreadTimelineReader

__all__ = [
    "AccountReader",
    "ThreadTimelineReader",
    "explain_run",
    "explained",
    "explained_limits",
    "may_explain",
    "with_experiments",
]
