"""One model on one curve: its parameters and its peak with their intervals."""

from __future__ import annotations

import math

import numpy as np

from concurve.estimate import Estimate
from concurve.findings.fit import ModelFit, PeakEstimate
from concurve.models.columns import Columns
from concurve.models.curve import Curve

#: A peak above the lowest level by less than this factor lies at it.
_BY_ROUNDING = 1 + 1e-6


def model_fit(
    column: Columns,
    at: int,
    curve: Curve,
    log_likelihood: float,
    aicc: float,
    confidence: float,
    unit: str,
) -> ModelFit:
    """The fit of the model to the curve ``at``; its weight is not known yet."""
    fitted, model = column.fitted, column.fitted.model
    parameters, errors = {}, {}
    for quantity in model.parameters:
        parameters[quantity.name] = _estimate(
            column.values[quantity.name][at],
            column.low[quantity.name][at],
            column.high[quantity.name][at],
            curve.trials,
            confidence,
            unit if quantity.unit == "X" else "",
        )
        errors[quantity.name] = _standard_error(column, at, quantity.name)
    alpha = parameters.get("alpha")
    covariance, u = fitted.covariance[at], fitted.u[at].copy()
    if model.capped and math.isinf(parameters["cap"].value):
        u[-1] = np.inf
    peak = _peak_estimate(column, at, curve, confidence, unit)
    replicated = curve.within_df > 0
    return ModelFit(
        name=model.name,
        title=model.title,
        formula=model.formula,
        parameters=parameters,
        standard_errors=errors,
        peak=peak,
        residual_deviation=float(np.sqrt(fitted.variance[at])),
        df=int(fitted.df[at]),
        log_likelihood=log_likelihood,
        aicc=finite(aicc),
        weight=0.0,
        last_left_out=finite(column.last_left_out[at]),
        durbin_watson=finite(column.durbin_watson[at]),
        chance_of_order=float(column.chance_of_order[at]),
        chance_of_misfit=float(column.misfit[at]) if replicated else None,
        levels_on_cap=None if math.isinf(column.on_cap[at]) else int(column.on_cap[at]),
        superlinear=alpha is not None and alpha.high is not None and alpha.high < 0,
        notes=_notes(parameters, column.on_cap[at], peak is not None),
        coordinates=tuple(u.tolist()),
        covariance=tuple(covariance.ravel().tolist()),
    )


def _notes(parameters: dict[str, Estimate], on_cap: float, has_peak: bool) -> tuple[str, ...]:
    notes = []
    if on_cap == 0:
        notes.append("no level reaches the cap: the same curve as without it")
    if on_cap == 1:
        notes.append("only one level lies on the cap: this does not establish a plateau")
    if "beta" in parameters and parameters["beta"].value == 0:
        notes.append("β is at its bound 0: the same curve as Amdahl's")
    elif "beta" in parameters and not has_peak:
        notes.append("superlinear beyond all bounds: no peak, and no value at some N")
    if "alpha" in parameters and parameters["alpha"].value >= 1:
        notes.append("α is at its bound 1")
    return tuple(notes)


def _estimate(
    value: float, low: float, high: float, n: int, confidence: float, unit: str
) -> Estimate:
    """An end that was not found is absent; one that does not exist is infinite."""
    return Estimate(
        value=float(value),
        low=None if math.isnan(low) else min(float(low), float(value)),
        high=None if math.isnan(high) else max(float(high), float(value)),
        n=n,
        unit=unit,
        confidence=confidence,
    )


def _standard_error(column: Columns, at: int, name: str) -> float | None:
    """From the Jacobian at the optimum; a logarithm's error times the value."""
    fitted = column.fitted
    model = fitted.model
    quantity = next(item for item in model.parameters if item.name == name)
    u = fitted.u[at : at + 1]
    _, slopes = quantity.chart(quantity.unchart(u))
    row = np.linalg.inv(slopes[0])[quantity.index]
    used = np.abs(row) > 0
    if not fitted.known[at][used].all():
        return None
    variance = float(row @ fitted.covariance[at] @ row)
    scale = float(column.values[name][at]) if quantity.log else 1.0
    return math.sqrt(variance) * scale


def _peak_estimate(
    column: Columns, at: int, curve: Curve, confidence: float, unit: str
) -> PeakEstimate | None:
    """The greatest throughput from the lowest level measured on: below it nothing was measured.

    The throughput has no interval where that of the position reaches below the lowest level.
    """
    if column.peak is None or math.isnan(column.peak[0][at]):
        return None
    position, low, high, top, top_low, top_high = (float(item[at]) for item in column.peak)
    lowest = float(curve.levels[0])
    if not low > lowest:
        top_low = top_high = math.nan
    if position <= lowest * _BY_ROUNDING:
        position = lowest
    if position == lowest or math.isnan(top):
        log_x, _ = column.fitted.model.log_curve(
            np.array([[position]]), column.fitted.u[at : at + 1]
        )
        top = math.exp(float(log_x[0, 0]))
    position, low, high = (max(end, lowest) for end in (position, low, high))
    return PeakEstimate(
        n=_estimate(position, low, high, curve.trials, confidence, ""),
        throughput=_estimate(top, top_low, top_high, curve.trials, confidence, unit),
        established=math.isfinite(high),
    )


def finite(value: float) -> float | None:
    """The value, or ``None`` if it is not finite."""
    return float(value) if math.isfinite(value) else None
