"""Which model describes a curve best, and whether it describes it at all.

All models are compared on one scale: the density of the measured throughputs, with the error
variance counted as a parameter (k = p+1), corrected for few observations (AICc; Hurvich and Tsai
1989). Residuals of scaling curves come in runs, not at random; Durbin and Watson's statistic is the
alarm for that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import betainc

from concurve.models.batch import MISFIT, Batch
from concurve.models.fit import Fitted, best_of
from concurve.models.model import Bools, Floats, Model
from concurve.models.solver import Points, residuals

#: AICc is not computed where n − k − 1 is less: with six observations it would charge a third
#: parameter 28 more, and call a curve Amdahl's whose β clearly is not 0.
ROOM = 3


def counts_levels(misfits: Sequence[Floats]) -> Bools:
    """Which curves (B) no model describes to within the trials' spread.

    For these the levels are the observations: trials that repeat the same misfit are no
    further evidence for one wrong model against another.
    """
    return np.asarray(np.max(np.stack(list(misfits)), axis=0) < MISFIT)


def log_likelihood(batch: Batch, squares: Floats, levels_only: Bools) -> tuple[Floats, Floats]:
    """Greatest log-likelihood (B) of the throughputs, and the number of observations (B)."""
    points = batch.points
    n = np.where(levels_only, batch.count, batch.trials)
    total = np.where(levels_only, squares, squares + batch.within)
    variance = np.maximum(total / n, batch.variance_min)
    with np.errstate(divide="ignore"):
        weights = np.where(points.weights > 0, np.log(points.weights), 0.0)
    density = weights.sum(axis=1) / 2
    if not points.absolute:
        density = density - np.where(points.weights > 0, points.values, 0.0).sum(axis=1)
    constant = np.where(levels_only, density, batch.log_density)
    return constant - n / 2 * (np.log(2 * np.pi * variance) + 1), n


def aicc(log_likelihood: Floats, n: Floats, parameters: int) -> Floats:
    """Akaike's criterion, corrected; NaN with less than :data:`ROOM` in n − k − 1: its correction
    then outweighs what the data say."""
    k = parameters + 1
    room = n - k - 1
    with np.errstate(all="ignore"):
        return np.where(room >= ROOM, -2 * log_likelihood + 2 * k + 2 * k * (k + 1) / room, np.nan)


def gcv(log_likelihood: Floats, n: Floats, parameters: int) -> Floats:
    """Generalised cross-validation (Golub, Heath and Wahba 1979) on AICc's scale.

    n·log(S/(n−p)²) up to a constant: it stands in where AICc does not exist, and is finite as long
    as n > p.
    """
    with np.errstate(all="ignore"):
        penalty = -2 * n * np.log1p(-parameters / n)
        return np.where(n > parameters, -2 * log_likelihood + penalty, np.nan)


def weights(criterion: Sequence[float | None]) -> list[float]:
    """Akaike weights exp(−Δ/2), 0 for models without the criterion."""
    known = [value for value in criterion if value is not None]
    if not known:
        return [0.0] * len(criterion)
    least = min(known)
    raw = [0.0 if c is None else float(np.exp((least - c) / 2)) for c in criterion]
    return [value / sum(raw) for value in raw]


def last_left_out(model: Model, batch: Batch) -> Floats:
    """Relative errors (B) at each curve's greatest level, predicted from the others.

    NaN where the others are no more than the model has parameters.
    """
    points = batch.points
    rows = np.flatnonzero(batch.count - 1 > model.size)
    result = np.full(len(batch.count), np.nan)
    if not len(rows):
        return result
    last = batch.count[rows].astype(int) - 1
    across = np.arange(len(rows))
    without = points.rows(rows)
    rest = without.weights.copy()
    rest[across, last] = 0.0
    # The last level must not influence the starting values either: the one before replaces it.
    levels, values = without.levels.copy(), without.values.copy()
    beyond = np.arange(levels.shape[1]) >= last[:, None]
    levels = np.where(beyond, levels[across, last - 1][:, None], levels)
    values = np.where(beyond, values[across, last - 1][:, None], values)
    u, _, _, _ = best_of(model, Points(levels, values, rest, points.absolute))
    with np.errstate(all="ignore"):
        predicted, _ = model.log_curve(without.levels[across, last][:, None], u)
    measured = without.values[across, last]
    log_measured = np.log(measured) if points.absolute else measured
    with np.errstate(all="ignore"):
        error = np.exp(predicted[:, 0] - log_measured) - 1
    result[rows] = np.where(np.isfinite(error), error, np.nan)
    return result


def durbin_watson(fitted: Fitted) -> tuple[Floats, Floats]:
    """The statistic (B) of the residuals along N, and its p-value against runs of like sign.

    The p-value is that of the Beta distribution with the statistic's exact first two moments
    (Durbin and Watson 1951, §4). Exact fits have NaN and 1.
    """
    batch, model = fitted.batch, fitted.model
    points = batch.points
    _, rest, slopes = residuals(model.log_curve, points, fitted.u)
    width = rest.shape[1]
    counted = np.arange(width) < batch.count[:, None]
    difference = np.eye(width - 1, width, 1) - np.eye(width - 1, width)
    steps = difference * counted[:, 1:, None]
    changes = np.matmul(steps, rest[:, :, None])[:, :, 0]
    squares = np.einsum("bl,bl->b", rest, rest)
    exact = squares <= batch.variance_min * batch.count
    with np.errstate(all="ignore"):
        statistic = np.where(exact, np.nan, np.einsum("bl,bl->b", changes, changes) / squares)
        moving = np.where(fitted.known[:, None, :], slopes, 0.0)
        hat = np.matmul(np.matmul(moving, fitted.covariance), moving.transpose(0, 2, 1))
        hat = hat / fitted.variance[:, None, None]
    free = np.eye(width) * counted[:, None, :] - hat
    product = np.matmul(free, np.matmul(steps.transpose(0, 2, 1), steps))
    df = batch.count - fitted.known.sum(axis=1)
    trace = np.einsum("bll->b", product)
    squared = np.einsum("blm,bml->b", product, product)
    with np.errstate(all="ignore"):
        mean = trace / df
        variance = 2 * (df * squared - trace**2) / (df**2 * (df + 2))
        both = mean * (4 - mean) / variance - 1
        chance = betainc(both * mean / 4, both * (4 - mean) / 4, statistic / 4)
    return statistic, np.where(np.isfinite(chance) & (df > 2), chance, 1.0)
