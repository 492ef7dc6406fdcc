"""Scaling models fitted to a run, as curves and in words."""

from __future__ import annotations

import msgspec

from concurve.findings.fit import CurvePoint, FitResult, Prediction
from concurve.terms import Level


class ScalingFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Scaling models fitted to a throughput over the work factor, among the cells of a group.

    ``group`` has the levels that these cells share (empty: all cells of the run), ``indicator``
    the name of the throughput. ``fit`` is ``None`` where nothing could be fitted, for ``reason``.
    ``expected`` is a prediction at twice the greatest level, ``None`` where nothing is predicted
    there: ``answers`` say why. ``curves`` are those to draw, by the indicator that the chart is of.
    ``parameters`` are the chosen model's, as ``answers`` begin with them in words; ``notes`` say
    how the numbers were read.
    """

    indicator: str
    label: str
    work: str
    group: dict[str, Level]
    fit: FitResult | None = None
    reason: str = ""
    expected: Prediction | None = None
    curves: dict[str, tuple[CurvePoint, ...]] = {}
    parameters: str = ""
    answers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
