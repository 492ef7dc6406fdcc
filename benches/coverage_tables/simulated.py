"""Simulated experiments of a known truth, and the share of intervals that hold it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from concurve.models.batch import stack
from concurve.models.curve import make_curve
from concurve.models.fit import Fitted, fit, interval
from concurve.models.model import Quantity
from concurve.models.usl import MODEL as USL

SEED = 20261121
GAMMA = 1000.0

LOW, HIGH = 0.93, 0.97

Floats = NDArray[np.float64]


class Truth(NamedTuple):
    """True parameters of a USL."""

    alpha: float
    beta: float

    @property
    def kappa(self) -> float:
        """β/(1−α), of which the peak is a function."""
        return self.beta / (1 - self.alpha)

    @property
    def peak(self) -> float:
        """N*."""
        return float(self.kappa**-0.5)

    def throughput(self, n: Floats | float) -> Floats:
        """X(N)."""
        n = np.asarray(n, float)
        return GAMMA * n / (1 + self.alpha * (n - 1) + self.beta * n * (n - 1))


class Design(NamedTuple):
    """Levels, trials of each, and the relative standard deviation of a trial."""

    levels: tuple[int, ...]
    trials: int
    noise: float


TRUTHS = (Truth(0.03, 0.001), Truth(0.005, 0.01), Truth(0.2, 0.005))

EIGHT, FIVE = (1, 2, 4, 8, 12, 16, 24, 32), (1, 2, 4, 8, 16)

DESIGNS = tuple(
    Design(levels, trials, noise)
    for levels in (EIGHT, FIVE)
    for trials in (1, 5)
    for noise in (0.03, 0.08)
)


def experiment(truth: Truth, design: Design, count: int) -> Fitted:
    """USL fitted to many simulated experiments."""
    seed = [*map(round, (1e6 * truth.alpha, 1e6 * truth.beta, 1e3 * design.noise))]
    rng = np.random.default_rng([SEED, *seed, design.trials, len(design.levels)])
    n = np.repeat(np.array(design.levels, float), design.trials)
    x = truth.throughput(n)
    curves = [
        make_curve(n, x * np.exp(rng.normal(0, design.noise, len(n))), absolute=False)
        for _ in range(count)
    ]
    return fit(USL, stack(curves))


def covered(fitted: Fitted, quantity: Quantity, truth: float) -> float:
    """Share of the experiments whose interval has the truth."""
    low, high = interval(fitted, quantity, 0.95)
    return float(((low <= truth) & (truth <= high)).mean())


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.1f} %"


def marked(share: float) -> str:
    """A share, in bold outside of 93 to 97 %."""
    return percent(share) if LOW <= share <= HIGH else f"**{percent(share)}**"
