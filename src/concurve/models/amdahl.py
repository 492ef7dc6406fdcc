"""Amdahl's law: a share α of the work is done by one worker at a time.

X(N) = γN / (1 + α(N−1)), with limit γ/α. G. M. Amdahl, AFIPS 1967; as synchronous queueing at a
repairman: N. J. Gunther, *Guerrilla Capacity Planning* (2007).

α ≤ 1. Below 0 it is no share of anything: throughput grows faster than the number of workers
(more cache or memory come with them). It is fitted and reported as such, never cut off at 0; the
fit itself is bounded by 1 + α(N−1) > 0 at every measured level.
"""

from __future__ import annotations

import numpy as np

from concurve.models.model import GAMMA, Floats, Model, Quantity, log_gamma_first

ALPHA = Quantity(
    "alpha",
    1,
    "contention: share of the work that only one worker can do at a time; below 0: superlinear",
    upper=1.0,
)

#: Starting values of α(N−1) at the greatest level; of equally good ones the first is kept.
_STARTS = (0.0, -0.3, 0.1, 0.4, 1.5, 5.0, 20.0, 100.0)


def log_shape(n: Floats, shape: Floats) -> tuple[Floats, Floats]:
    """log N/(1+α(N−1)) and its derivative by α."""
    divisor = 1 + shape[:, :1] * (n - 1)
    return np.log(n / divisor), (-(n - 1) / divisor)[:, :, None]


def grid_alpha(n: Floats) -> Floats:
    """Starting values (B, S) of α."""
    span = np.maximum(n.max(axis=1, keepdims=True) - 1, 1e-9)
    return np.asarray(np.minimum(np.array(_STARTS)[None] / span, 0.95))


def _grid(n: Floats) -> Floats:
    return grid_alpha(n)[:, :, None]


MODEL = Model(
    name="amdahl",
    title="Amdahl",
    formula="X(N) = γN / (1 + α(N−1))",
    source="Amdahl 1967",
    parameters=(GAMMA, ALPHA),
    log_shape=log_shape,
    grid=_grid,
    lower=(-np.inf,),
    upper=(1.0,),
    coordinates=log_gamma_first,
)
