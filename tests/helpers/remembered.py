"""Fits of the same numbers, computed once for all tests of a process that ask for it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

from concurve.findings.fit import FitResult
from concurve.models.all_models import MODELS
from concurve.models.curve import Curve

Fit = Callable[[Sequence[Curve], float, str], list[FitResult]]

_FITS: dict[bytes, list[FitResult]] = {}


def remembering(fit: Fit) -> Fit:
    """The same function, which looks up what it has computed before. The models are part of what is
    asked: a test may add one."""

    def remembered(
        curves: Sequence[Curve], confidence: float = 0.95, unit: str = ""
    ) -> list[FitResult]:
        asked = pickle.dumps((list(curves), confidence, unit, list(MODELS)))
        if asked not in _FITS:
            _FITS[asked] = fit(curves, confidence, unit)
        return list(_FITS[asked])

    return remembered
