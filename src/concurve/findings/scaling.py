"""Scaling models fitted to a run, as curves and in words."""

from __future__ import annotations

import msgspec

from concurve.findings.fit import FitResult, Prediction
from concurve.terms import Level


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted curve at ``n`` workers: the chosen model's ``value`` up to the greatest level
    measured, ``beyond`` it the value expected over all models; with the band of a prediction."""

    n: float
    value: float
    low: float
    high: float
    beyond: bool = False


class ScalingFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Scaling models fitted to a throughput over the work factor, among the cells of a group.

    ``group`` has the levels that these cells share (empty: all cells of the run), ``indicator``
    the name of the throughput. ``fit`` is ``None`` where nothing could be fitted, for ``reason``.
    ``expected`` is a prediction at twice the greatest level. ``curves`` are those to draw, by the
    indicator that the chart is of. ``answers`` begin with the chosen model's parameters in words.
    """

    indicator: str
    label: str
    work: str
    group: dict[str, Level]
    fit: FitResult | None = None
    reason: str = ""
    expected: Prediction | None = None
    curves: dict[str, tuple[CurvePoint, ...]] = {}
    answers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
