"""One model fitted to many curves: least squares from several starts, errors, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import stdtrit

from concurve.models.batch import Batch
from concurve.models.caps import cap_candidates
from concurve.models.model import Bools, Floats, Model, Quantity
from concurve.models.profile import intervals
from concurve.models.solver import Points, covariance_scaled, minimise, residuals

_STARTS_KEPT = 3
#: Coordinates closer to a bound than this are at it.
_AT_BOUND = 1e-12
#: A rising curve closer to the cap than this share meets it.
_AT_CAP = 1e-9


_quiet = np.errstate(all="ignore")  # values that are not finite are handled as such


@dataclass(frozen=True)
class Fitted:
    """A model on a batch: coordinates (B, p), sums of squares of the levels (B) and what follows.

    ``relaxed`` are the coordinates and squares of least squares without lower bounds, from which
    intervals are computed. ``covariance`` (B, p, p) is 0 for a coordinate at its bound, and
    ``known`` (B, p) marks the others.
    """

    model: Model
    batch: Batch
    u: Floats
    squares: Floats
    relaxed: Floats
    relaxed_squares: Floats
    variance: Floats
    df: Floats
    covariance: Floats
    known: Bools


@_quiet
def fit(model: Model, batch: Batch) -> Fitted:
    """Fit a model to every curve of the batch."""
    u, squares, relaxed, relaxed_squares = best_of(model, batch.points)
    variance, df = batch.variance(squares, model.size)
    _, _, slopes = residuals(model.log_curve, batch.points, u)
    lower, upper = bounds(model)
    inside = (u > lower + _AT_BOUND) & (u < upper - _AT_BOUND)
    unit = covariance_scaled(slopes, inside)
    known = np.isfinite(np.einsum("bpp->bp", unit))
    covariance = np.nan_to_num(unit, nan=0.0) * variance[:, None, None]
    return Fitted(
        model, batch, u, squares, relaxed, relaxed_squares, variance, df, covariance, known
    )


@_quiet
def best_of(model: Model, points: Points) -> tuple[Floats, Floats, Floats, Floats]:
    """Least squares within the bounds (coordinates, squares), and without the lower ones.

    The upper bounds stay: otherwise a falling curve would diverge to α = ∞ with γ = ∞.
    """
    starts = _starts(model, points)
    kept, size = starts.shape[1], model.size
    repeated = points.repeated(kept)
    lower, upper = bounds(model)
    free = np.ones((len(repeated.levels), size), bool)
    flat = starts.reshape(-1, size)
    u, squares = minimise(model.log_curve, repeated, flat, free, np.full(size, -np.inf), upper)
    relaxed, relaxed_squares = _least(u, squares, kept)
    relaxed = _at_the_cap(model, points, relaxed)
    u, squares = relaxed.copy(), relaxed_squares.copy()
    beyond = np.flatnonzero((relaxed < lower).any(axis=1))
    if len(beyond):
        again = np.concatenate([starts[beyond], relaxed[beyond][:, None]], axis=1)
        times = again.shape[1]
        some = points.rows(beyond)
        found, found_squares = minimise(
            model.log_curve,
            some.repeated(times),
            again.reshape(-1, size),
            np.ones((len(beyond) * times, size), bool),
            lower,
            upper,
        )
        bounded, squares[beyond] = _least(found, found_squares, times)
        u[beyond] = _at_the_cap(model, some, bounded)
    return u, squares, relaxed, relaxed_squares


def _starts(model: Model, points: Points) -> Floats:
    """The most promising coordinates (B, S, p) of the model's grid, each with its best γ."""
    shapes = model.grid(points.levels)
    rows, count, size = shapes.shape
    levels = np.repeat(points.levels, count, axis=0)
    log_g, _ = model.log_shape(levels, shapes.reshape(rows * count, size))
    log_g = log_g.reshape(rows, count, -1)
    weights, values = points.weights[:, None], points.values[:, None]
    if points.absolute:
        g = np.exp(log_g)
        gamma = (weights * values * g).sum(axis=2) / (weights * g * g).sum(axis=2)
        squares = (weights * (values - gamma[:, :, None] * g) ** 2).sum(axis=2)
        log_gamma = np.log(gamma)
    else:
        log_gamma = (weights * (values - log_g)).sum(axis=2) / weights.sum(axis=2)
        squares = (weights * (values - log_gamma[:, :, None] - log_g) ** 2).sum(axis=2)
    squares = np.where(np.isfinite(squares) & np.isfinite(log_gamma), squares, np.inf)
    kept = min(_STARTS_KEPT, count)
    order = np.argsort(squares, axis=1, kind="stable")[:, :kept]
    across = np.arange(rows)[:, None]
    return np.concatenate([log_gamma[across, order][:, :, None], shapes[across, order]], axis=2)


def _least(u: Floats, squares: Floats, kept: int) -> tuple[Floats, Floats]:
    """The best of ``kept`` solutions of each row."""
    table = squares.reshape(-1, kept)
    best = table.argmin(axis=1)
    rows = np.arange(len(table))
    return u.reshape(len(table), kept, -1)[rows, best], table[rows, best]


def _at_the_cap(model: Model, points: Points, u: Floats) -> Floats:
    """A cap that no level reaches is set where the greatest level would just reach it."""
    if not model.capped:
        return u
    u = u.copy()
    raised = u.copy()
    raised[:, -1] = np.inf
    free, _ = model.log_curve(points.levels, raised)
    counted = np.where(points.weights > 0, free, -np.inf)
    u[:, -1] = np.minimum(u[:, -1], counted.max(axis=1) - u[:, 0])
    return u


@_quiet
def levels_on_cap(fitted: Fitted) -> Floats:
    """How many levels (B) of a fit lie on its cap; infinite for models without one."""
    if not fitted.model.capped:
        return np.full(len(fitted.u), np.inf)
    raised = fitted.u.copy()
    raised[:, -1] = np.inf
    points = fitted.batch.points
    free, _ = fitted.model.log_curve(points.levels, raised)
    above = free > (fitted.u[:, 0] + fitted.u[:, -1])[:, None] + _AT_CAP
    return np.asarray((above & (points.weights > 0)).sum(axis=1), float)


def bounds(model: Model) -> tuple[Floats, Floats]:
    """Lower and upper bounds (p) of the coordinates."""
    lower = np.array([-np.inf, *model.lower]) if model.lower else np.full(model.size, -np.inf)
    upper = np.array([np.inf, *model.upper]) if model.upper else np.full(model.size, np.inf)
    return lower, upper


@_quiet
def interval(
    fitted: Fitted, quantity: Quantity, confidence: float, rows: Bools | None = None
) -> tuple[Floats, Floats]:
    """Ends (B) of the quantity's profile-likelihood interval, cut at its bounds.

    Least squares without lower bounds is the reference, so that the interval keeps its level near a
    bound; where the bounded fit is significantly worse than that, the bounded one is. NaN for
    curves that are not among ``rows``.
    """
    index = np.arange(len(fitted.u)) if rows is None else np.flatnonzero(rows)
    low, high = np.full(len(fitted.u), np.nan), np.full(len(fitted.u), np.nan)
    if not len(index):
        return low, high
    batch, model = fitted.batch.rows(index), fitted.model
    best, least = fitted.relaxed[index], fitted.relaxed_squares[index]
    variance, df = batch.variance(least, model.size)
    threshold = least + variance * stdtrit(df, (1 + confidence) / 2) ** 2
    bounded = fitted.squares[index]
    worse = bounded > threshold
    factor = stdtrit(fitted.df[index], (1 + confidence) / 2) ** 2
    threshold = np.where(worse, bounded + fitted.variance[index] * factor, threshold)
    _, _, slopes = residuals(model.log_curve, batch.points, best)
    unit = covariance_scaled(slopes, np.ones(best.shape, bool))
    ends = intervals(
        model.log_curve,
        batch.points,
        quantity,
        best,
        threshold - least,
        np.nan_to_num(unit),
        bounds(model)[1],
        partial(cap_candidates, model.log_shape) if model.capped else None,
    )
    low[index], high[index] = (
        np.clip(quantity.shown(end), quantity.lower, quantity.upper) for end in ends
    )
    return low, high
