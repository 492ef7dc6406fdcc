"""Amdahl's law up to a cap.

X(N) = min(γN / (1 + α(N−1)), C): contention while it scales, then a resource that is used up.
α ≤ 1, γ > 0, C > 0. Bounds of a closed queueing network, E. D. Lazowska and others, *Quantitative
System Performance* (1984), with Amdahl's law in place of the free rise.
"""

from __future__ import annotations

import numpy as np

from concurve.models import amdahl
from concurve.models.amdahl import ALPHA
from concurve.models.caps import CAP, capped, coordinates, grid_cap
from concurve.models.model import GAMMA, Floats, Model


def _grid(n: Floats) -> Floats:
    return grid_cap(amdahl.log_shape, n, amdahl.grid_alpha(n)[:, :, None])


MODEL = Model(
    name="amdahl_cap",
    title="Amdahl with cap",
    formula="X(N) = min(γN / (1 + α(N−1)), C)",
    source="Lazowska and others 1984",
    parameters=(GAMMA, ALPHA, CAP),
    log_shape=capped(amdahl.log_shape),
    grid=_grid,
    lower=(-np.inf, -np.inf),
    upper=(1.0, np.inf),
    capped=True,
    coordinates=coordinates,
)
