"""The common part of models with a cap: X = min(rising curve, C).

Inside, the cap is c = C/γ, as a logarithm: then X = γ · min(g(N), c), and γ stays a plain factor.
"""

from __future__ import annotations

import numpy as np

from concurve.models.model import Floats, LogShape, Quantity

#: A cap at this distance from a level, on either side, is not affected by the bend there.
_BESIDE = 1e-6


def _chart(v: Floats) -> tuple[Floats, Floats]:
    """(log C, …, log c) → (log γ, …, log c), γ = C/c."""
    u = v.copy()
    u[:, 0] = v[:, 0] - v[:, -1]
    slopes = np.broadcast_to(np.eye(v.shape[1]), (*v.shape, v.shape[1])).copy()
    slopes[:, 0, -1] = -1
    return u, slopes


def _unchart(u: Floats) -> Floats:
    v = u.copy()
    v[:, 0] = u[:, 0] + u[:, -1]
    return v


CAP = Quantity(
    "cap",
    0,
    "greatest throughput, set by a resource that is used up (CPUs, a device, the client)",
    "X",
    log=True,
    lower=0.0,
    chart=_chart,
    unchart=_unchart,
)


def capped(rising: LogShape) -> LogShape:
    """min(rising curve, c); the last shape coordinate is log c."""

    def log_shape(n: Floats, shape: Floats) -> tuple[Floats, Floats]:
        free, slopes = rising(n, shape[:, :-1])
        # Not "free > c": a superlinear rise has no value beyond its pole, and is above any cap.
        above = ~(free <= shape[:, -1:])
        log_g = np.where(above, shape[:, -1:], free)
        slopes = np.where(above[:, :, None], 0.0, slopes)
        return log_g, np.concatenate([slopes, above[:, :, None].astype(float)], axis=2)

    return log_shape


def grid_cap(rising: LogShape, n: Floats, shapes: Floats) -> Floats:
    """Every shape (B, S, q) with a cap at each level of its curve and between each two levels."""
    rows, starts, size = shapes.shape
    repeated = np.repeat(np.sort(n, axis=1), starts, axis=0)
    levels, _ = rising(repeated, shapes.reshape(rows * starts, size))
    caps = np.concatenate([levels, (levels[:, 1:] + levels[:, :-1]) / 2], axis=1)
    caps = caps.reshape(rows, starts, -1, 1)
    spread = np.broadcast_to(shapes[:, :, None, :], (*caps.shape[:3], size))
    return np.concatenate([spread, caps], axis=3).reshape(rows, -1, size + 1)


def cap_candidates(log_shape: LogShape, levels: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Caps (B, K), as log c: between each two levels of the rising curve, and close to each; and
    log g (B, K, L) with each of them.

    Between two levels the sum of squares is smooth in c, and may have a minimum of its own. ``v``
    are coordinates of the model or of :data:`CAP`'s chart: both have the shape in between, and
    log c last.
    """
    shape = v[:, 1:].copy()
    shape[:, -1] = np.inf
    rising, _ = log_shape(levels, shape)
    steps = np.take_along_axis(rising, np.argsort(levels, axis=1), axis=1)
    between = (steps[:, 1:] + steps[:, :-1]) / 2
    caps = np.concatenate([steps - _BESIDE, steps + _BESIDE, between], axis=1)
    free, cap = rising[:, None, :], caps[:, :, None]
    return caps, np.where(free <= cap, free, cap)


def coordinates(values: Floats) -> Floats:
    """Parameters (γ, …, C) → coordinates (log γ, …, log C/γ)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(values[:, [0, -1]])
    return np.concatenate([logs[:, :1], values[:, 1:-1], logs[:, 1:] - logs[:, :1]], axis=1)
