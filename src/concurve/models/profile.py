"""Profile-likelihood intervals: the values of a quantity that the data do not contradict.

For each value of the quantity all other coordinates are fitted again; the interval holds the values
where the sum of squares stays below a threshold, S ≤ S₀ + s²·F₁,ᵥ (Bates and Watts, *Nonlinear
Regression Analysis*, 1988, §6.1). The signed root of the excess is nearly linear in the coordinate,
so its crossing is found by false position in few steps. An end that no value reaches is infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from concurve.models.model import Bools, Floats, Integers, Quantity
from concurve.models.solver import Curve, Points, minimise, residuals

Alternatives = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Levels (B, L) and coordinates (B, p) → other values (B, K) of the last coordinate, and log g
(B, K, L) with each."""

_RESTARTS = 2
_EXPANSIONS = 40
_STEPS = 60
#: How close, as a share of the threshold, the root of the excess must come to it.
_CLOSE = 1e-5
#: Beyond these widths, in first steps, an end is taken for infinite.
_WIDEST = 1e7
_WIDEST_LOG = 25.0


@np.errstate(all="ignore")
def intervals(
    curve: Curve,
    points: Points,
    quantity: Quantity,
    best: Floats,
    excess: Floats,
    first: Floats,
    upper: Floats,
    alternatives: Alternatives | None = None,
) -> tuple[Floats, Floats]:
    """Low and high ends (B) of the quantity's coordinate.

    Args:
        curve: log X and its derivatives at the model's coordinates.
        points: the fitted data.
        quantity: the quantity of the interval.
        best: coordinates (B, p) of least squares, without lower bounds.
        excess: how far the sum of squares may rise above that at ``best`` (B).
        first: variance of the coordinates over s² (B, p, p), which gives the first direction.
        upper: bounds (p) of the coordinates; those of the charts differ in the first alone, which
            has none.
        alternatives: other values of the last coordinate to start from, for curves with a bend:
            there the sum of squares has several minima, and one follows the wrong one.
    """
    start = quantity.unchart(best)
    _, chart_slopes = quantity.chart(start)
    inverse = np.linalg.inv(chart_slopes)
    spread = np.matmul(np.matmul(inverse, first), inverse.transpose(0, 2, 1))
    index = quantity.index
    variance = spread[:, index, index]
    direction = spread[:, :, index] / variance[:, None]
    step = np.sqrt(variance * excess)
    floor = 1e-3 * np.maximum(np.abs(start[:, index]), 0.01)
    usable = np.isfinite(step) & (step > 0)
    step = np.where(usable, step, floor)
    direction = np.where(np.isfinite(direction), direction, 0.0)
    direction[:, index] = 1.0

    def charted(levels: Floats, v: Floats) -> tuple[Floats, Floats]:
        u, slopes = quantity.chart(v)
        fitted, own = curve(levels, u)
        return fitted, np.matmul(own, slopes)

    both = np.repeat(np.arange(len(best)), 2)
    signs = np.tile([-1.0, 1.0], len(best))
    steps = signs * step[both]
    lowest, _, _ = residuals(charted, points, start)
    search = _Search(
        rows=np.arange(len(both)),
        points=points.rows(both),
        start=start[both],
        step=steps,
        lowest=lowest[both],
        target=np.sqrt(excess[both]),
        place=start[both],
        tangent=direction[both] * steps[:, None],
    )
    ends = _crossings(charted, search, quantity, upper, alternatives)
    return ends[0::2], ends[1::2]


@dataclass
class _Search:
    """Ends still sought (B). Distances from the best value are in units of ``step``.

    The root of the excess is below ``target`` at ``near``, with coordinates ``place`` that move
    along ``tangent``, and above it at ``far``. ``side`` says which of the two moved last.
    """

    rows: Integers
    points: Points
    start: Floats
    step: Floats
    lowest: Floats
    target: Floats
    place: Floats
    tangent: Floats

    def __post_init__(self) -> None:
        size = len(self.rows)
        self.trial = np.ones(size)
        self.near, self.near_root = np.zeros(size), np.zeros(size)
        self.far, self.far_root = np.full(size, np.inf), np.full(size, np.inf)
        self.expansions, self.side = np.zeros(size, int), np.zeros(size, int)

    def keep(self, left: Bools) -> None:
        """Only some of the rows."""
        for name, value in vars(self).items():
            setattr(self, name, value.rows(left) if isinstance(value, Points) else value[left])

    def at(self, distance: Floats, index: int) -> Floats:
        """The coordinate at a distance."""
        return np.asarray(self.start[:, index] + distance * self.step)

    def learn(self, found: Floats, root: Floats) -> None:
        """Use the profile at ``trial``."""
        inside = root <= self.target
        # Illinois method: the value at an end that stays a second time is halved.
        half_far = self.target + (self.far_root - self.target) / 2
        half_near = self.target + (self.near_root - self.target) / 2
        self.far_root = np.where(inside & (self.side == 1), half_far, self.far_root)
        self.near_root = np.where(~inside & (self.side == -1), half_near, self.near_root)
        self.side = np.where(inside, 1, -1)
        further = inside & (self.trial > self.near)
        secant = (found - self.place) / (self.trial - self.near)[:, None]
        self.tangent[further], self.place[further] = secant[further], found[further]
        self.near = np.where(inside, self.trial, self.near)
        self.near_root = np.where(inside, root, self.near_root)
        self.far = np.where(inside, self.far, self.trial)
        self.far_root = np.where(inside, self.far_root, root)
        self.expansions += ~np.isfinite(self.far)

    def choose(self) -> None:
        """The next trial: further out without a bracket, else by false position within it."""
        bracketed = np.isfinite(self.far)
        share = (self.target - self.near_root) / (self.far_root - self.near_root)
        between = self.near + (self.far - self.near) * share
        usable = np.isfinite(self.far_root) & (between > self.near) & (between < self.far)
        between = np.where(usable, between, (self.near + self.far) / 2)
        growth = np.nan_to_num(1.1 * self.target / self.near_root, nan=4.0)
        self.trial = np.where(bracketed, between, self.near * np.clip(growth, 1.3, 4.0))


@np.errstate(all="ignore")
def _crossings(
    curve: Curve,
    search: _Search,
    quantity: Quantity,
    upper: Floats,
    alternatives: Alternatives | None,
) -> Floats:
    """The coordinates (B) where the profile crosses the threshold.

    The search stops at the quantity's own bounds, and an end that is not found is infinite.
    """
    index = quantity.index
    result = np.full(len(search.rows), np.nan)
    size = search.start.shape[1]
    free = np.arange(size) != index
    for _ in range(_STEPS):
        if not len(search.rows):
            break
        guess = search.place + search.tangent * (search.trial - search.near)[:, None]
        guess[:, index] = search.at(search.trial, index)
        found, squares = _least(curve, search.points, guess, free, upper)
        if alternatives is not None:
            again, less = _restarted(
                curve, search.points, guess, free, upper, alternatives, quantity
            )
            better = less < squares
            found[better], squares[better] = again[better], less[better]
        root = np.sqrt(np.maximum(squares - search.lowest, 0.0))
        search.learn(found, root)
        close = np.abs(root - search.target) <= _CLOSE * search.target
        narrow = np.isfinite(search.far) & (search.far - search.near <= 1e-9 * search.far)
        endless = _endless(search, quantity) & ~close
        ends = search.at(np.where(close, search.trial, search.near), index)
        ends = np.where(endless, np.inf * np.sign(search.step), ends)
        done = close | narrow | endless
        result[search.rows[done]] = ends[done]
        search.keep(~done)
        search.choose()
    # The remaining ends lie between near and far.
    left = search.at(search.near, index)
    result[search.rows] = np.where(np.isfinite(search.far), left, np.inf * np.sign(search.step))
    return result


def _least(
    curve: Curve, points: Points, v: Floats, free: Bools, upper: Floats
) -> tuple[Floats, Floats]:
    lower = np.full(v.shape[1], -np.inf)
    return minimise(curve, points, v, np.broadcast_to(free, v.shape), lower, upper)


def _restarted(
    curve: Curve,
    points: Points,
    guess: Floats,
    free: Bools,
    upper: Floats,
    alternatives: Alternatives,
    quantity: Quantity,
) -> tuple[Floats, Floats]:
    """The best that is reached from the most promising other values of the last coordinate."""
    values, log_g = alternatives(points.levels, guess)
    order = np.argsort(_squares_at(points, guess, values, log_g, quantity), axis=1)[:, :_RESTARTS]
    values, count = np.take_along_axis(values, order, axis=1), order.shape[1]
    size = guess.shape[1]
    tried = np.repeat(guess, count, axis=0)
    tried[:, -1] = values.ravel()
    found, squares = _least(curve, points.repeated(count), tried, free, upper)
    best = squares.reshape(values.shape).argmin(axis=1)
    rows = np.arange(len(guess))
    return found.reshape(-1, count, size)[rows, best], squares.reshape(values.shape)[rows, best]


def _squares_at(
    points: Points, guess: Floats, values: Floats, log_g: Floats, quantity: Quantity
) -> Floats:
    """Sums of squares (B, K) at other values of the last coordinate, from their curves: far
    cheaper than each with its derivatives."""
    tried = np.repeat(guess, values.shape[1], axis=0)
    tried[:, -1] = values.ravel()
    log_gamma = quantity.chart(tried)[0][:, 0].reshape(values.shape)
    fitted = log_gamma[:, :, None] + log_g
    rest = points.values[:, None, :] - (np.exp(fitted) if points.absolute else fitted)
    squares = np.einsum("bl,bkl,bkl->bk", points.weights, rest, rest)
    return np.where(np.isfinite(squares), squares, np.inf)


def _endless(search: _Search, quantity: Quantity) -> Bools:
    """Ends beyond the bounds of the quantity, or beyond the widest distance that is searched."""
    low, high = (-np.inf, np.inf) if quantity.log else (quantity.lower, quantity.upper)
    reached = search.at(search.near, quantity.index)
    outside = (reached < low) & (search.step < 0) | (reached > high) & (search.step > 0)
    widest = _WIDEST_LOG if quantity.log else np.inf
    wide = (search.expansions > _EXPANSIONS) | (search.near > _WIDEST)
    wide |= np.abs(search.near * search.step) > widest
    return np.asarray(outside | wide & ~np.isfinite(search.far))
