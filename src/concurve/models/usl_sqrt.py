"""USL with coherency that grows with √N: each worker meets some of the others.

X(N) = γN / (1 + α(N−1) + β√N(N−1)). α ≤ 1, β ≥ 0, γ > 0. Peak where β√N(N+1)/2 = 1−α. Between the
USL and :mod:`concurve.models.usl_log`.
"""

from __future__ import annotations

import numpy as np

from concurve.models.coherency import coherency_model, newton_inverse
from concurve.models.model import Floats


def _psi(n: Floats) -> Floats:
    return np.asarray(np.sqrt(n) * (n + 1) / 2)


def _slope(n: Floats) -> Floats:
    return np.asarray((3 * np.sqrt(n) + 1 / np.sqrt(n)) / 4)


def _start(value: Floats) -> Floats:
    return np.asarray((2 * value) ** (2 / 3))


MODEL = coherency_model(
    name="usl_sqrt",
    title="USL, √N",
    formula="X(N) = γN / (1 + α(N−1) + β√N(N−1))",
    source="USL with partial overlap",
    phi=np.sqrt,
    position=newton_inverse(_psi, _slope, _start),
)
