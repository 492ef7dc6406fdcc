"""Findings of two runs, or of two levels of a factor → a comparison."""

from __future__ import annotations

from concurve.analysis.comparison.compare import compare_levels, compare_runs

__all__ = ["compare_levels", "compare_runs"]
