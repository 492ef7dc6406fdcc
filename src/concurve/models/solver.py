"""Least squares for many small problems at once: Levenberg and Marquardt's method, batched.

A row of every array is a problem of its own, of at most a few coordinates. Python's cost is then
paid per iteration, not per problem, which is what makes a thousand curves with all models and
intervals a matter of seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from concurve.models.model import Bools, Floats, Integers

Curve = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Levels (B, L) and coordinates (B, p) → log X (B, L) and its derivatives (B, L, p)."""

_ITERATIONS = 80
_DAMPING_FIRST, _DAMPING_MAX = 1e-4, 1e12
#: A predicted reduction of the sum of squares by less than this share of it ends a row.
_TOLERANCE = 1e-13
#: A relative residual of this size is rounding.
_EXACT = 1e-14


@dataclass(frozen=True)
class Points:
    """The data to fit: levels, values and weights (B, L). A weight of 0 leaves a point out.

    ``values`` are log X where errors are relative, X itself where they are absolute.
    """

    levels: Floats
    values: Floats
    weights: Floats
    absolute: bool

    def rows(self, index: Integers | Bools) -> Points:
        """Some of the problems."""
        return Points(self.levels[index], self.values[index], self.weights[index], self.absolute)

    def repeated(self, times: int) -> Points:
        """Each problem several times, one after the other."""
        return self.rows(np.repeat(np.arange(len(self.levels)), times))


def residuals(curve: Curve, points: Points, u: Floats) -> tuple[Floats, Floats, Floats]:
    """Sum of weighted squares (B), weighted residuals (B, L), derivatives of the curve (B, L, p).

    A curve that is not positive and finite at a level that counts has an infinite sum.
    """
    with np.errstate(all="ignore"):
        fitted, slopes = curve(points.levels, u)
        if points.absolute:
            fitted = np.exp(fitted)
            slopes = slopes * fitted[:, :, None]
        root = np.sqrt(points.weights)
        rest = root * (points.values - fitted)
        slopes = root[:, :, None] * slopes
        squares = np.einsum("bl,bl->b", rest, rest)
    squares[~np.isfinite(squares)] = np.inf
    return squares, rest, slopes


def minimise(
    curve: Curve, points: Points, u: Floats, free: Bools, lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """Coordinates (B, p) of least squares near ``u``, and the sums of squares (B).

    Coordinates that are not ``free`` (B, p) stay; the others stay between their bounds (p).
    """
    result = np.where(free, np.clip(u, lower, upper), u)
    squares, rest, slopes = residuals(curve, points, result)
    final = squares.copy()
    rows = np.flatnonzero(np.isfinite(squares))
    points, free, now = points.rows(rows), free[rows], result[rows]
    squares, rest, slopes = squares[rows], rest[rows], slopes[rows]
    exact = _EXACT**2 * np.einsum("bl,bl->b", points.weights, points.values**2)
    damping = np.full(len(rows), _DAMPING_FIRST)
    for _ in range(_ITERATIONS):
        if not len(rows):
            break
        step, gain = _step(rest, slopes, damping, free, now, lower, upper)
        trial = np.clip(now + step, lower, upper, where=free, out=now.copy())
        squares_new, rest_new, slopes_new = residuals(curve, points, trial)
        better = squares_new < squares
        now[better], squares[better] = trial[better], squares_new[better]
        rest[better], slopes[better] = rest_new[better], slopes_new[better]
        damping = np.where(better, np.maximum(damping / 10, 1e-12), damping * 8)
        done = (gain <= _TOLERANCE * squares) | (squares <= exact) | (damping > _DAMPING_MAX)
        if done.any():
            result[rows[done]], final[rows[done]] = now[done], squares[done]
            left = ~done
            rows, now, squares, damping = rows[left], now[left], squares[left], damping[left]
            rest, slopes, free = rest[left], slopes[left], free[left]
            points, exact = points.rows(left), exact[left]
    result[rows], final[rows] = now, squares
    return result, final


def _step(
    rest: Floats,
    slopes: Floats,
    damping: Floats,
    free: Bools,
    now: Floats,
    lower: Floats,
    upper: Floats,
) -> tuple[Floats, Floats]:
    """Damped Gauss–Newton step (B, p), and the reduction of squares that it promises (B)."""
    normal = np.matmul(slopes.transpose(0, 2, 1), slopes)
    downhill = np.matmul(slopes.transpose(0, 2, 1), rest[:, :, None])[:, :, 0]
    scale = np.sqrt(np.einsum("bpp->bp", normal))
    outward = ((now <= lower) & (downhill < 0)) | ((now >= upper) & (downhill > 0))
    moving = free & (scale > 0) & ~outward
    inverse = np.where(moving, 1 / np.where(scale > 0, scale, 1), 0.0)
    # Scaled to a unit diagonal; a fixed coordinate gets a row of the unit matrix.
    matrix = normal * inverse[:, :, None] * inverse[:, None, :]
    size = matrix.shape[1]
    matrix[:, range(size), range(size)] = 1 + damping[:, None]
    step = np.linalg.solve(matrix, (downhill * inverse)[:, :, None])[:, :, 0] * inverse
    return step, np.einsum("bp,bp->b", step, downhill)


def covariance_scaled(slopes: Floats, moving: Bools) -> Floats:
    """(JᵀJ)⁻¹ (B, p, p) over the coordinates that move; NaN for the others and where singular."""
    normal = np.matmul(slopes.transpose(0, 2, 1), slopes)
    scale = np.sqrt(np.einsum("bpp->bp", normal))
    moving = moving & (scale > 0)
    inverse = np.where(moving, 1 / np.where(scale > 0, scale, 1), 0.0)
    matrix = normal * inverse[:, :, None] * inverse[:, None, :]
    size = matrix.shape[1]
    diagonal = range(size)
    matrix[:, diagonal, diagonal] = 1.0
    regular = np.linalg.det(matrix) > 1e-13
    matrix[~regular] = np.eye(size)
    solved = np.linalg.inv(matrix) * inverse[:, :, None] * inverse[:, None, :]
    known = moving & regular[:, None]
    return np.asarray(np.where(known[:, :, None] & known[:, None, :], solved, np.nan))
