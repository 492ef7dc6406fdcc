"""All models on many curves: fitted, judged, weighed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from concurve.estimate import Estimate
from concurve.models import amdahl, amdahl_cap, knee, linear, select, usl, usl_log, usl_sqrt
from concurve.models.batch import stack
from concurve.models.curve import Curve
from concurve.models.fit import Fitted, fit, interval, levels_on_cap
from concurve.models.model import Floats, Model
from concurve.models.result import FitResult, ModelFit, PeakEstimate
from concurve.models.sentences import answers, warnings

MODELS: dict[str, Model] = {
    module.MODEL.name: module.MODEL
    for module in (linear, amdahl, amdahl_cap, usl, usl_log, usl_sqrt, knee)
}
"""The models by name, simplest first within each kind."""

#: Levels that are fitted at once, those of all curves of a batch together: fewer pay for more
#: calls, more leave the processor's caches.
_BATCH_LEVELS = 10_000


@dataclass(frozen=True)
class _Columns:
    """What a model says of every curve it was fitted to, column by column (B)."""

    fitted: Fitted
    rows: list[int]
    values: dict[str, Floats]
    low: dict[str, Floats]
    high: dict[str, Floats]
    peak: tuple[Floats, ...] | None
    on_cap: Floats
    misfit: Floats
    last_left_out: Floats
    durbin_watson: Floats
    chance_of_order: Floats


def fit_curves(
    curves: Sequence[Curve], confidence: float = 0.95, unit: str = ""
) -> list[FitResult]:
    """Every model on every curve. All curves must have the same kind of error.

    ``unit`` is that of throughput.
    """
    results: list[FitResult] = []
    batch = max(1, _BATCH_LEVELS // max(len(curve.levels) for curve in curves))
    for begin in range(0, len(curves), batch):
        some = curves[begin : begin + batch]
        columns = [_columns(model, some, confidence) for model in MODELS.values()]
        results += _results(some, [c for c in columns if c], confidence, unit)
    return results


def _columns(model: Model, curves: Sequence[Curve], confidence: float) -> _Columns | None:
    """One model on those of the curves that have more levels than it has parameters."""
    rows = [i for i, curve in enumerate(curves) if len(curve.levels) > model.size]
    if not rows:
        return None
    fitted = fit(model, stack([curves[i] for i in rows]))
    values, low, high = {}, {}, {}
    for quantity in model.parameters:
        values[quantity.name] = quantity.of(fitted.u)
        low[quantity.name], high[quantity.name] = interval(fitted, quantity, confidence)
    on_cap = levels_on_cap(fitted)
    if model.capped:
        unreached = on_cap == 0
        values["cap"] = np.where(unreached, np.inf, values["cap"])
        high["cap"] = np.where(unreached, np.inf, high["cap"])
    statistic, chance = select.durbin_watson(fitted)
    return _Columns(
        fitted,
        rows,
        values,
        low,
        high,
        _peak(fitted, confidence),
        on_cap,
        fitted.batch.chance_of_misfit(fitted.squares, model.size),
        select.last_left_out(model, fitted.batch),
        statistic,
        chance,
    )


@np.errstate(all="ignore")
def _peak(fitted: Fitted, confidence: float) -> tuple[Floats, ...] | None:
    """Position and throughput of the peak with their ends; NaN where there is none."""
    peak = fitted.model.peak
    if peak is None:
        return None
    kappa = peak.inverse.of(fitted.u)
    has = (fitted.u[:, 2] > 0) & np.isfinite(kappa)
    has &= (fitted.relaxed == fitted.u).all(axis=1)
    throughput = np.full(len(has), np.nan)
    throughput[has] = peak.throughput.of(fitted.u[has])
    # A superlinear fit may grow beyond all bounds before its coherency tells.
    has &= np.isfinite(throughput)
    position = np.where(has, peak.position(np.where(has, kappa, 1.0)), np.nan)
    kappa_low, kappa_high = interval(fitted, peak.inverse, confidence, has)
    ends = [np.full(len(has), np.nan), np.full(len(has), np.nan)]
    ends[0][has], ends[1][has] = peak.position(kappa_high[has]), peak.position(kappa_low[has])
    return (
        position, ends[0], ends[1], throughput,
        *interval(fitted, peak.throughput, confidence, has),
    )  # fmt: skip


def _results(
    curves: Sequence[Curve], columns: Sequence[_Columns], confidence: float, unit: str
) -> list[FitResult]:
    misfits = [np.ones(len(curves)) for _ in columns]
    for misfit, column in zip(misfits, columns, strict=True):
        misfit[column.rows] = column.misfit
        # A model that could not be fitted cannot vouch for a curve.
        misfit[[i for i in range(len(curves)) if i not in set(column.rows)]] = 0.0
    levels_only = select.counts_levels(misfits)
    by_curve: list[list[ModelFit]] = [[] for _ in curves]
    criteria: list[list[float | None]] = [[] for _ in curves]
    for column in columns:
        only = levels_only[column.rows]
        size = column.fitted.model.size
        likelihood, n = select.log_likelihood(column.fitted.batch, column.fitted.squares, only)
        akaike = select.aicc(likelihood, n, size)
        cross = select.gcv(likelihood, n, size)
        for at, row in enumerate(column.rows):
            fits = _model_fit(
                column, at, curves[row], float(likelihood[at]), akaike[at], confidence, unit
            )
            by_curve[row].append(fits)
            # Of few levels, one on a cap is the level that the cap was made for.
            criteria[row].append(None if column.on_cap[at] == 1 else _number(cross[at]))
    return [
        _result(curve, fits, cross, bool(only), confidence)
        for curve, fits, cross, only in zip(curves, by_curve, criteria, levels_only, strict=True)
    ]


def _result(
    curve: Curve,
    fits: list[ModelFit],
    cross: list[float | None],
    levels_only: bool,
    confidence: float,
) -> FitResult:
    by_aicc = all(item.aicc is not None for item in fits)
    weights = select.weights([item.aicc for item in fits] if by_aicc else cross)
    weighed = tuple(_with_weight(item, weight) for item, weight in zip(fits, weights, strict=True))
    chosen = _chosen(weighed)
    fitted_names = {item.name for item in fits}
    left_out = {
        model.name: f"{len(curve.levels)} levels are too few for its {model.size} parameters: "
        f"it needs {model.size + 1}"
        for model in MODELS.values()
        if model.name not in fitted_names
    }
    result = FitResult(
        levels=tuple(curve.levels.tolist()),
        throughput=tuple(curve.throughput.tolist()),
        trials=curve.trials,
        absolute=curve.absolute,
        error_model=curve.error_model,
        confidence=confidence,
        models=weighed,
        chosen=chosen.name,
        criterion="aicc" if by_aicc else "gcv",
        observations="levels" if levels_only and curve.within_df else "trials",
        left_out=left_out,
        answers=(),
        warnings=(),
    )
    return _with_sentences(result)


def _chosen(models: Sequence[ModelFit]) -> ModelFit:
    """The best by its weight; of equally good ones the simplest. A plateau needs two levels."""
    shown = [item for item in models if item.levels_on_cap != 1]
    most = max(item.weight for item in shown)
    best = (item for item in shown if item.weight >= most * (1 - 1e-6))
    return min(best, key=lambda item: len(item.parameters))


def _with_weight(item: ModelFit, weight: float) -> ModelFit:
    return msgspec.structs.replace(item, weight=weight)


def _with_sentences(result: FitResult) -> FitResult:
    return msgspec.structs.replace(result, answers=answers(result), warnings=warnings(result))


def _model_fit(
    column: _Columns,
    at: int,
    curve: Curve,
    log_likelihood: float,
    aicc: float,
    confidence: float,
    unit: str,
) -> ModelFit:
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
    peak = _peak_estimate(column, at, curve.trials, confidence, unit)
    replicated = curve.within_df > 0
    return ModelFit(
        name=model.name,
        parameters=parameters,
        standard_errors=errors,
        peak=peak,
        residual_deviation=float(np.sqrt(fitted.variance[at])),
        df=int(fitted.df[at]),
        log_likelihood=log_likelihood,
        aicc=_number(aicc),
        weight=0.0,
        last_left_out=_number(column.last_left_out[at]),
        durbin_watson=_number(column.durbin_watson[at]),
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
        notes.append("one level alone lies on the cap: no plateau is shown")
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
    """Ends that could not be found are absent; those that do not exist are infinite."""
    return Estimate(
        value=float(value),
        low=None if math.isnan(low) else min(float(low), float(value)),
        high=None if math.isnan(high) else max(float(high), float(value)),
        n=n,
        unit=unit,
        confidence=confidence,
    )


def _standard_error(column: _Columns, at: int, name: str) -> float | None:
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
    column: _Columns, at: int, n: int, confidence: float, unit: str
) -> PeakEstimate | None:
    if column.peak is None or math.isnan(column.peak[0][at]):
        return None
    position, low, high, top, top_low, top_high = (float(item[at]) for item in column.peak)
    return PeakEstimate(
        n=_estimate(position, low, high, n, confidence, ""),
        throughput=_estimate(top, top_low, top_high, n, confidence, unit),
        established=math.isfinite(high),
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
