"""Every model on many curves: fitted, judged, weighed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from concurve.findings.fit import FitResult, ModelFit
from concurve.models import select
from concurve.models.all_models import MODELS
from concurve.models.centres import centres
from concurve.models.columns import Columns, columns_of
from concurve.models.curve import Curve
from concurve.models.misfit import misfit_of
from concurve.models.model_fit import finite, model_fit
from concurve.models.sentences import answers, warnings
from concurve.models.stated import stated

#: Levels that are fitted at once, those of all curves of a batch together: fewer pay for more
#: calls, more leave the processor's caches.
_BATCH_LEVELS = 10_000


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
        columns = [columns_of(model, some, confidence) for model in MODELS.values()]
        results += _results(some, [c for c in columns if c], confidence, unit)
    return results


def _results(
    curves: Sequence[Curve], columns: Sequence[Columns], confidence: float, unit: str
) -> list[FitResult]:
    misfits = [np.ones(len(curves)) for _ in columns]
    for misfit, column in zip(misfits, columns, strict=True):
        misfit[column.rows] = column.misfit
        # A model that could not be fitted is no evidence that the curve is described.
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
            fits = model_fit(
                column, at, curves[row], float(likelihood[at]), akaike[at], confidence, unit
            )
            by_curve[row].append(fits)
            # With few levels, a cap fits one level exactly.
            criteria[row].append(None if column.on_cap[at] == 1 else finite(cross[at]))
    return [
        _result(curve, fits, cross, bool(only), confidence, unit)
        for curve, fits, cross, only in zip(curves, by_curve, criteria, levels_only, strict=True)
    ]


def _result(
    curve: Curve,
    fits: list[ModelFit],
    cross: list[float | None],
    levels_only: bool,
    confidence: float,
    unit: str,
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
    misfit = misfit_of(curve, weighed, chosen, levels_only)
    printed = stated(
        weighed,
        chosen,
        len(curve.levels) if levels_only else curve.trials,
        curve.levels.tolist(),
    )
    result = FitResult(
        levels=tuple(curve.levels.tolist()),
        throughput=tuple(curve.throughput.tolist()),
        centres=centres(curve, chosen, confidence, unit),
        weights=tuple(curve.weights.tolist()),
        trials=curve.trials,
        absolute=curve.absolute,
        error_model=curve.error_model,
        confidence=confidence,
        models=weighed,
        chosen=chosen.name,
        criterion="aicc" if by_aicc else "gcv",
        observations="levels" if levels_only and curve.within_df else "trials",
        left_out=left_out,
        stated=printed if misfit is None else msgspec.structs.replace(printed, peak=None),
        answers=(),
        warnings=(),
        misfit=misfit,
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
