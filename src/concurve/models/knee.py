"""Knee: linear scaling until a resource is used up.

X(N) = min(γN, C). The asymptotic bounds of operational analysis, P. J. Denning and J. P. Buzen,
Computing Surveys 1978: N workers or the slowest resource, whichever is less. γ > 0, C > 0; the
knee is at N = C/γ. Where all levels lie on the rising line the cap is not established: its value
and upper limit are infinite.
"""

from __future__ import annotations

from concurve.models import linear
from concurve.models.caps import CAP, capped, coordinates, grid_cap
from concurve.models.model import GAMMA, Floats, Model


def _grid(n: Floats) -> Floats:
    return grid_cap(linear.MODEL.log_shape, n, linear.MODEL.grid(n))


MODEL = Model(
    name="knee",
    title="knee",
    formula="X(N) = min(γN, C)",
    source="Denning and Buzen 1978",
    parameters=(GAMMA, CAP),
    log_shape=capped(linear.MODEL.log_shape),
    grid=_grid,
    lower=(-float("inf"),),
    upper=(float("inf"),),
    capped=True,
    coordinates=coordinates,
)
