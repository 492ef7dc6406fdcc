"""Linear scaling: every worker adds as much as the first.

X(N) = γN. The base against which all others are judged; no bound beyond γ > 0.
"""

from __future__ import annotations

import numpy as np

from concurve.models.model import GAMMA, Floats, Model, log_gamma_first


def _log_shape(n: Floats, shape: Floats) -> tuple[Floats, Floats]:
    return np.log(n), np.empty((*n.shape, 0))


def _grid(n: Floats) -> Floats:
    return np.empty((len(n), 1, 0))


MODEL = Model(
    name="linear",
    title="linear",
    formula="X(N) = γN",
    source="definition",
    parameters=(GAMMA,),
    log_shape=_log_shape,
    grid=_grid,
    coordinates=log_gamma_first,
)
