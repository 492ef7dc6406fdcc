"""Throughput at numbers of workers that were not measured, with a band that covers model error.

Within the measured levels the band is that of the measurements (:mod:`concurve.models.centres`).
No model is true, and beyond the measured levels the choice of the model matters more than the
noise. So the prediction is the geometric mean over the models, weighed by AICc, and its band has
three parts, added as variances of log X: each model's own (parameters and measurement), the
spread between the models, and a model error that all of them share and that grows with the distance
from the measured levels. docs/method/models.md has the measured coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from concurve import words
from concurve.errors import ConcurveError
from concurve.estimate import Estimate
from concurve.findings.fit import FitResult, ModelFit, Prediction
from concurve.models.all_models import MODELS
from concurve.models.centres import within_levels
from concurve.models.model import Floats

#: Beyond this multiple of the greatest level measured, a prediction is no more than a guess.
FAR = 2.0

#: How often bands beyond the levels held in simulations (docs/method/coverage.md), in words.
HELD = (
    "a band that holds in about 95 % of the curves that go on as they began, and in about 80 % of "
    "those where something new sets in"
)

#: Residuals of scaling curves come in runs: an observation is worth about half of an independent
#: one, so differences of AICc count half.
_EVIDENCE = 0.5

#: Standard deviation of log X from errors of all models, per unit of the distance from the nearest
#: level in log N.
_MODEL_ERROR = 0.1

#: A grid of so many numbers, and how often it is laid anew about its least value, each time 32
#: times as fine: one that is missed is narrower than rounding.
_GRID = 65
_ROUNDS = 8


def predict(result: FitResult, n: Sequence[float] | Floats) -> list[Prediction]:
    """Throughput at each number of workers: within the measured levels what the measurements say,
    beyond them what is expected of a measurement there.

    Raises:
        ConcurveError: a number of workers that is not finite or not above 0, or one that lies
            :func:`beyond_the_curve`.
    """
    numbers = np.asarray(n, float).ravel()
    if not np.all(np.isfinite(numbers) & (numbers > 0)):
        raise ConcurveError(
            f"no prediction for {', '.join(f'{value:g}' for value in numbers)} workers",
            "finite numbers above 0",
        )
    if not len(numbers):
        return []
    if lost := beyond_the_curve(result, numbers):
        raise ConcurveError(no_value(result, lost), "numbers closer to the measured levels")
    logs, variances = zip(
        *(_of_model(item, result, numbers) for item in result.models), strict=True
    )
    centres, spreads = _mixed(result, np.stack(logs), np.stack(variances), numbers)
    low, high = centres - spreads, centres + spreads
    inside = (numbers >= min(result.levels)) & (numbers <= max(result.levels))
    if inside.any():
        low[inside], high[inside] = _measured(result, numbers[inside])
        centres[inside] = np.clip(centres[inside], low[inside], high[inside])
    return [
        Prediction(
            n=float(number),
            throughput=Estimate(
                value=math.exp(centre),
                low=math.exp(bottom),
                high=math.exp(top),
                n=result.trials,
                unit=result.best.parameters["gamma"].unit,
                confidence=result.confidence,
            ),
            warning=_warning(float(number), result),
        )
        for number, centre, bottom, top in zip(numbers, centres, low, high, strict=True)
    ]


def beyond_the_curve(result: FitResult, n: Sequence[float] | Floats) -> list[float]:
    """The numbers of workers outside of the measured levels at which nothing is predicted: there,
    or on the way there from the nearest level, the chosen model has no value (a superlinear one
    beyond its pole; with a cost of coherency it may have values again further out, beyond a second
    one). The mean over the others would be one over models that the data prefer it to."""
    numbers = np.asarray(n, float).ravel()
    is_known = np.isfinite(numbers) & (numbers > 0)
    is_lost = np.zeros(numbers.shape, bool)
    for edge, sign in ((max(result.levels), 1), (min(result.levels), -1)):
        is_outside = is_known & (sign * numbers > sign * edge)
        if not is_outside.any():
            continue
        furthest = sign * float(np.max(sign * numbers[is_outside]))
        gap = _gap(result.best, edge, furthest)
        if gap is not None:
            is_past = ~np.isfinite(curve_of(result.best, numbers)) | (sign * numbers > sign * gap)
            is_lost |= is_outside & is_past
    return [float(value) for value in numbers[is_lost]]


def _gap(item: ModelFit, near: float, far: float) -> float | None:
    """A number of workers between these two at which the model has no value; ``None`` without one.

    In all models N/X is convex in N, as β is never below 0. So where it is not above 0 it is so in
    one interval, about its least value; and that lies beside the least of a grid.
    """
    for _ in range(_ROUNDS):
        n = np.geomspace(near, far, _GRID)
        x = curve_of(item, n)
        if not np.isfinite(x).all():
            return float(n[~np.isfinite(x)][0])
        least = int(np.argmin(n / x))
        near, far = float(n[max(least - 1, 0)]), float(n[min(least + 1, _GRID - 1)])
    return None


def no_value(result: FitResult, n: Sequence[float]) -> str:
    """That nothing is predicted at these numbers of workers, and why."""
    named = words.listed([f"{value:g}" for value in n])
    return (
        f"nothing is predicted at N = {named}: by {result.best.title}, the model that is chosen, "
        "throughput would grow beyond all bounds on the way"
    )


def curve_of(item: ModelFit, n: Sequence[float] | Floats) -> Floats:
    """The model's own curve; NaN where it has no value (a superlinear one beyond its pole)."""
    levels = np.asarray(n, float).reshape(1, -1)
    with np.errstate(all="ignore"):
        log_x, _ = MODELS[item.name].log_curve(levels, np.array([item.coordinates]))
    return np.asarray(np.exp(log_x[0]))


def _measured(result: FitResult, n: Floats) -> Floats:
    """Bounds (2, n) of log X within the measured levels, over the models that are left."""
    left = [item for item in result.models if item.name in result.stated.models]
    curves = [(np.log(curve_of(item, n)), np.log(curve_of(item, result.levels))) for item in left]
    usable = [both for both in curves if all(np.isfinite(log_x).all() for log_x in both)]
    if not usable:
        flat = np.zeros(len(n)), np.zeros(len(result.levels))
        usable = [flat]
    logs, at_levels = (np.stack(column) for column in zip(*usable, strict=True))
    return within_levels(result, logs, at_levels, n)


def _of_model(item: ModelFit, result: FitResult, n: Floats) -> tuple[Floats, Floats]:
    """log X at each number, and its variance for a measurement like that of the nearest level."""
    model = MODELS[item.name]
    with np.errstate(all="ignore"):
        log_x, slopes = model.log_curve(n.reshape(1, -1), np.array([item.coordinates]))
        covariance = np.array(item.covariance).reshape(model.size, model.size)
        slopes = np.where(np.isfinite(slopes), slopes, 0.0)
        own = np.einsum("np,pq,nq->n", slopes[0], covariance, slopes[0])
        unit = np.exp(log_x[0]) if result.absolute else 1.0
        noise = (item.residual_deviation / unit) ** 2 / _nearest_weights(result, n)
    return log_x[0], own + noise


def _nearest_weights(result: FitResult, n: Floats) -> Floats:
    """The weight of the level that is nearest to each number, on the logarithm."""
    distances = np.abs(np.log(n)[:, None] - np.log(result.levels))
    return np.asarray(np.array(result.weights)[distances.argmin(axis=1)])


def _mixed(result: FitResult, logs: Floats, variances: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Centres and half-widths (n) of log X over the models (models, n)."""
    usable = np.isfinite(logs) & np.isfinite(variances)
    weights = np.array([[item.weight] for item in result.models]) ** _EVIDENCE * usable
    weights = weights / weights.sum(axis=0)
    logs, variances = np.where(usable, logs, 0.0), np.where(usable, variances, 0.0)
    centre = (weights * logs).sum(axis=0)
    inside = (weights * (variances + (logs - centre) ** 2)).sum(axis=0)
    beyond = np.maximum(n / max(result.levels), min(result.levels) / n)
    distance = np.log(np.maximum(beyond, 1.0))
    total = inside + (_MODEL_ERROR * distance) ** 2
    factor = stdtrit(max(result.best.df, 2), (1 + result.confidence) / 2)
    # A very wide band is cut so that exp does not overflow.
    return centre, np.minimum(factor * np.sqrt(total), 300.0)


def _warning(n: float, result: FitResult) -> str | None:
    top, bottom = max(result.levels), min(result.levels)
    if n > FAR * top:
        return (
            f"N = {n:g} is {n / top:.3g} times the greatest level measured ({top:g}): beyond "
            f"{FAR:g} times a prediction is a guess; measure there"
        )
    if n < bottom:
        return f"N = {n:g} is below the least level measured ({bottom:g})"
    return None
