"""Findings of two runs, of several and a base, or of two levels of a factor → a comparison."""

from __future__ import annotations

from concurve.analysis.comparison.compare import (
    compare_levels,
    compare_runs,
    compare_with_base,
)
from concurve.analysis.comparison.several import compare_several

__all__ = ["compare_levels", "compare_runs", "compare_several", "compare_with_base"]
