"""Made-up curves of five kinds."""

from __future__ import annotations

import numpy as np
from tests.helpers.mva import exact_mva

from coverage_tables.simulated import SEED, Floats


def made_up_curves() -> dict[str, list[tuple[list[float], list[float]]]]:
    """Curves of five kinds, 40 of each."""
    rng = np.random.default_rng(SEED)
    grids: tuple[list[int], ...] = ([1, 2, 4, 8, 16, 32, 64], [1, 2, 3, 4, 6, 8, 12, 16, 24, 32])
    grids += ([1, 2, 4, 6, 8, 10, 12, 16, 20, 24], list(range(1, 17)))
    curves: dict[str, list[tuple[list[float], list[float]]]] = {}
    for number in range(40):
        n = np.array(grids[number % 4], float)
        noise = rng.choice([0.01, 0.03, 0.05])
        for kind, x in truths(rng, n).items():
            noisy = x * np.exp(rng.normal(0, noise, len(n)))
            curves.setdefault(kind, []).append((n.tolist(), noisy.tolist()))
    return curves


def truths(rng: np.random.Generator, n: Floats) -> dict[str, Floats]:
    """One curve of each kind."""
    top = int(n[-1])
    demands = rng.dirichlet(np.ones(rng.integers(2, 6)))
    network = exact_mva(demands.tolist(), float(rng.choice([0, 1, 5, 20])), top).throughput
    mva = network[n.astype(int) - 1]
    alpha, beta = rng.choice([0, 0.01, 0.05, 0.2]), rng.choice([0.0001, 0.001, 0.005])
    cap, softness = rng.uniform(2, 20), float(rng.choice([2, 4, 8, 50]))
    cores, onset = rng.choice([4, 8, 16]), rng.uniform(0.4, 2) * top
    bent = np.where(n <= 2 * cores, cores + 0.3 * (n - cores), 1.3 * cores)
    return {
        "mva": mva,
        "usl": n / (1 + alpha * (n - 1) + beta * n * (n - 1)),
        "knee": (n**-softness + cap**-softness) ** (-1 / softness),
        "thrash": mva / (1 + 0.5 * (n / onset) ** 2),
        "smt": np.where(n <= cores, n, bent),
    }
