"""USL with coherency that grows with log N: exchange along a tree.

X(N) = γN / (1 + α(N−1) + β log(N) (N−1)), natural logarithm. α ≤ 1, β ≥ 0, γ > 0. Peak where
β(log N + N − 1) = 1−α. It bends later and more softly than the USL, as most measured curves do:
over published data it extrapolates better (docs/method/models.md).
"""

from __future__ import annotations

import numpy as np

from concurve.models.coherency import coherency_model, newton_inverse
from concurve.models.model import Floats


def _psi(n: Floats) -> Floats:
    return np.log(n) + n - 1


def _slope(n: Floats) -> Floats:
    return 1 / n + 1


def _start(value: Floats) -> Floats:
    return 1 + value / 2


MODEL = coherency_model(
    name="usl_log",
    title="USL, log N",
    formula="X(N) = γN / (1 + α(N−1) + β log(N)(N−1))",
    source="USL with coherency along a tree",
    phi=np.log,
    position=newton_inverse(_psi, _slope, _start),
)
