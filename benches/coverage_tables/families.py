"""Curves of known truth by family, with regular and irregular noise.

They judge what ``fit`` prints: parameters (:mod:`coverage_tables.usl`) and predictions
(:mod:`coverage_tables.bands`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from coverage_tables.simulated import SEED, Floats

GAMMA = 100.0


class Family(NamedTuple):
    """A curve X(N), with its parameters where they are defined."""

    name: str
    throughput: Callable[[Floats], Floats]
    alpha: float | None = None
    beta: float | None = None
    cap: float | None = None
    peak: float = math.inf


class Noise(NamedTuple):
    """What multiplies a throughput: the noise draws of a shape; and trials of each level."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, ...]], Floats]
    trials: int = 1


def usl(alpha: float, beta: float) -> Family:
    """USL; with β = 0 Amdahl's law, with α = 0 as well a line."""
    name = f"USL {alpha:g}, {beta:g}" if beta else f"Amdahl {alpha:g}" if alpha else "linear"
    peak = math.sqrt((1 - alpha) / beta) if beta else math.inf
    return Family(
        name,
        lambda n: GAMMA * n / (1 + alpha * (n - 1) + beta * n * (n - 1)),
        alpha,
        beta,
        None,
        peak,
    )


def capped(alpha: float, knee: float) -> Family:
    """Amdahl's law up to its throughput at N = ``knee``; a knee where α is 0."""
    cap = GAMMA * knee / (1 + alpha * (knee - 1))
    return Family(
        f"knee at {knee:g}" if not alpha else f"Amdahl {alpha:g}, cap at {knee:g}",
        lambda n: np.minimum(GAMMA * n / (1 + alpha * (n - 1)), cap),
        alpha,
        0.0,
        cap,
    )


def gustafson(alpha: float) -> Family:
    """Scaled work with a serial share."""
    return Family(f"Gustafson {alpha:g}", lambda n: GAMMA * (n - alpha * (n - 1)))


def kind(spread: float, trials: int = 1) -> Noise:
    """Log-normal."""
    repeated = f", {trials} trials" if trials > 1 else ""
    return Noise(
        f"{100 * spread:g} %{repeated}",
        lambda rng, shape: np.exp(rng.normal(0, spread, shape)),
        trials,
    )


def slow_trials(trials: int = 5) -> Noise:
    """Log-normal 2 %, and one trial in ten slower by Exp(0.5)."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        slow = rng.random(shape) < 0.1
        return np.exp(rng.normal(0, 0.02, shape)) / np.where(
            slow, 1 + rng.exponential(0.5, shape), 1
        )

    return Noise(f"10 % slow, {trials} trials", draw, trials)


def two_levels(share: float, trials: int = 5) -> Noise:
    """Log-normal 2 %, and a share of the trials slower by 15 %."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        slow = rng.random(shape) < share
        return np.exp(rng.normal(0, 0.02, shape)) / np.where(slow, 1.15, 1)

    return Noise(f"two levels {100 * share:g} %, {trials} trials", draw, trials)


#: Curves whose parameters must be right.
TRUTHS = (
    usl(0.0244, 0.0016),
    usl(0.08, 0.0004),
    usl(0.005, 0.00005),
    usl(0.02, 0.0005),
    usl(0.05, 0.0),
    capped(0.0, 12.0),
)
#: Curves that are to be predicted at twice their greatest level.
PREDICTED = (
    usl(0.0, 0.0),
    usl(0.01, 0.0),
    usl(0.05, 0.0),
    usl(0.2, 0.0),
    gustafson(0.05),
    gustafson(0.3),
    *TRUTHS[:4],
    capped(0.0, 12.0),
    capped(0.03, 12.0),
)
SIX, SEVEN, EIGHT = (1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 12, 16, 24), (1, 2, 4, 8, 12, 16, 24, 32)
DESIGNS = (SIX, SEVEN, EIGHT)
NOISES = (kind(0.02), kind(0.05), kind(0.05, 5), slow_trials(), two_levels(0.2), two_levels(0.5))

Curve = tuple[Floats, Floats]


def measured(
    family: Family, levels: tuple[int, ...], noise: Noise, count: int, seed: int = SEED
) -> list[Curve]:
    """Simulated measurements of a curve."""
    rng = np.random.default_rng([seed, *map(ord, family.name + noise.name), len(levels)])
    n = np.repeat(np.array(levels, float), noise.trials)
    x = family.throughput(n)
    return [(n, x * noise.draw(rng, n.shape)) for _ in range(count)]


def measured_later(
    family: Family, level: float, noise: Noise, count: int, seed: int = SEED
) -> Floats:
    """The figure of a cell at a level, in as many experiments: the median of its trials."""
    rng = np.random.default_rng([seed, 1, *map(ord, family.name + noise.name), int(level)])
    drawn = noise.draw(rng, (count, noise.trials))
    return np.asarray(float(family.throughput(np.array(level))) * np.median(drawn, axis=1))


def stated(noise: Noise) -> float:
    """The centre of the noise: what multiplies γ and C."""
    return float(np.median(noise.draw(np.random.default_rng(SEED), (200_001,))))
