"""The common part of the USL and its variants: a cost of keeping workers coherent.

X(N) = γN / (1 + α(N−1) + β φ(N) (N−1)). With φ(N) = N each worker pays for every other one (USL);
slower growth, φ = log N or √N, is that of tree-wise exchange or of partial overlap.

**The peak.** dX/dN = 0 where β ψ(N) = 1−α with ψ(N) = φ(N) + N φ'(N) (N−1), which grows with N: at
most one peak. With κ = β/(1−α) it is at N* = ψ⁻¹(1/κ), for the USL √((1−α)/β). κ crosses 0 smoothly
where the peak goes to infinity, so the interval of N* is computed as that of κ.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from concurve.models.amdahl import ALPHA, grid_alpha
from concurve.models.model import (
    GAMMA,
    Chart,
    Floats,
    LogShape,
    Model,
    Peak,
    Quantity,
    log_gamma_first,
)

Function = Callable[[Floats], Floats]

BETA = Quantity(
    "beta",
    2,
    "coherency: cost of keeping workers consistent, relative to the work",
    lower=0.0,
)

#: 1/κ of 0, where throughput falls from the first worker on, has no logarithm.
_LEAST = 1e-9

#: Starting values of β φ(N) (N−1) at the greatest level.
_STARTS = (0.0, 0.03, 0.3, 1.0, 3.0, 10.0, 50.0)


def coherency_model(
    name: str, title: str, formula: str, source: str, phi: Function, position: Function
) -> Model:
    """A model of this kind; ``position`` is ψ⁻¹."""
    return Model(
        name=name,
        title=title,
        formula=formula,
        source=source,
        parameters=(GAMMA, ALPHA, BETA),
        log_shape=_log_shape(phi),
        grid=_grid(phi),
        lower=(-np.inf, 0.0),
        upper=(1.0, np.inf),
        peak=_peak(phi, position),
        phi=phi,
        coordinates=log_gamma_first,
    )


def _log_shape(phi: Function) -> LogShape:
    def log_shape(n: Floats, shape: Floats) -> tuple[Floats, Floats]:
        alone = n - 1
        crosstalk = phi(n) * alone
        divisor = 1 + shape[:, :1] * alone + shape[:, 1:] * crosstalk
        slopes = np.stack([-alone / divisor, -crosstalk / divisor], axis=2)
        return np.log(n / divisor), slopes

    return log_shape


def _grid(phi: Function) -> Callable[[Floats], Floats]:
    def grid(n: Floats) -> Floats:
        alphas = grid_alpha(n)
        top = n.max(axis=1, keepdims=True)
        betas = np.array(_STARTS)[None] / np.maximum(phi(top) * (top - 1), 1e-9)
        rows, (a, b) = len(n), (alphas.shape[1], betas.shape[1])
        pairs = np.empty((rows, a, b, 2))
        pairs[..., 0], pairs[..., 1] = alphas[:, :, None], betas[:, None, :]
        return pairs.reshape(rows, a * b, 2)

    return grid


def _peak(phi: Function, position: Function) -> Peak:
    inverse = Quantity(
        "inverse_peak",
        2,
        "β/(1−α): 0 without a peak",
        lower=0.0,
        chart=_by_kappa,
        unchart=_to_kappa,
    )
    throughput = Quantity(
        "peak_throughput",
        0,
        "throughput at the peak",
        "X",
        log=True,
        lower=0.0,
        chart=_by_peak(phi, position),
        unchart=_to_peak(phi, position),
    )

    def at(kappa: Floats) -> Floats:
        found = np.full(kappa.shape, np.inf)
        has = kappa > 0
        found[has] = position(1 / kappa[has])
        return found

    return Peak(inverse, throughput, at)


def _by_kappa(v: Floats) -> tuple[Floats, Floats]:
    """(log γ, α, κ) → (log γ, α, β = κ(1−α))."""
    u = v.copy()
    u[:, 2] = v[:, 2] * (1 - v[:, 1])
    slopes = np.broadcast_to(np.eye(3), (len(v), 3, 3)).copy()
    slopes[:, 2, 1], slopes[:, 2, 2] = -v[:, 2], 1 - v[:, 1]
    return u, slopes


def _to_kappa(u: Floats) -> Floats:
    v = u.copy()
    v[:, 2] = u[:, 2] / (1 - u[:, 1])
    return v


def _by_peak(phi: Function, position: Function) -> Chart:
    """(log X*, α, log κ) → (log γ, α, β). At the peak log X does not change with N, so the
    derivatives of log γ are those at a fixed N*."""

    def chart(v: Floats) -> tuple[Floats, Floats]:
        alpha, kappa = v[:, 1], np.exp(v[:, 2])
        top = position(1 / kappa)
        alone, coupled = top - 1, phi(top) * (top - 1)
        divisor = 1 + alpha * alone + kappa * (1 - alpha) * coupled
        u = np.stack([v[:, 0] + np.log(divisor / top), alpha, kappa * (1 - alpha)], axis=1)
        slopes = np.zeros((len(v), 3, 3))
        slopes[:, 0, 0] = slopes[:, 1, 1] = 1
        slopes[:, 0, 1] = (alone - kappa * coupled) / divisor
        slopes[:, 0, 2] = kappa * (1 - alpha) * coupled / divisor
        slopes[:, 2, 1], slopes[:, 2, 2] = -kappa, kappa * (1 - alpha)
        return u, slopes

    return chart


def _to_peak(phi: Function, position: Function) -> Function:
    def unchart(u: Floats) -> Floats:
        alpha, beta = u[:, 1], u[:, 2]
        kappa = beta / (1 - alpha)
        top = position(1 / kappa)
        divisor = 1 + alpha * (top - 1) + beta * phi(top) * (top - 1)
        return np.stack([u[:, 0] + np.log(top / divisor), alpha, np.log(kappa)], axis=1)

    return unchart


def newton_inverse(psi: Function, slope: Function, start: Function) -> Function:
    """ψ⁻¹ by Newton's method in log N; ψ must grow with N."""

    def inverse(value: Floats) -> Floats:
        value = np.maximum(value, _LEAST)
        log_n = np.log(start(value))
        for _ in range(50):
            n = np.exp(log_n)
            step = np.clip((psi(n) - value) / (slope(n) * n), -2, 2)
            log_n = log_n - step
            # The step of an infinite value is not a number: it ends nothing, and delays nothing.
            if not np.any(np.abs(step) >= 1e-14):
                break
        return np.asarray(np.exp(log_n))

    return inverse
