"""Universal Scalability Law: contention and pairwise coherency.

X(N) = γN / (1 + α(N−1) + βN(N−1)). N. J. Gunther, *Guerrilla Capacity Planning* (2007). α ≤ 1
(below 0: superlinear, see :mod:`concurve.models.amdahl`), β ≥ 0, γ > 0. Peak at N* = √((1−α)/β).
Contention and coherency cost the same at N = α/β, so α(N−1) is compared with βN(N−1), never α
with β.
"""

from __future__ import annotations

import numpy as np

from concurve.models.coherency import coherency_model
from concurve.models.model import Floats


def _phi(n: Floats) -> Floats:
    return n


MODEL = coherency_model(
    name="usl",
    title="USL",
    formula="X(N) = γN / (1 + α(N−1) + βN(N−1))",
    source="Gunther 2007",
    phi=_phi,
    position=np.sqrt,
)
