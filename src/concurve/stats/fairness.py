"""How evenly workers or clients were served: six figures of one set of shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from concurve.stats.moments import mean


class Fairness(NamedTuple):
    """Figures of how unequal shares are; none depends on the unit or the sum.

    ``jain``: (Σx)² / (n·Σx²) = 1 / (1 + cv²), from 1/n (one has all) to 1 (equal shares; Jain,
    Chiu & Hawe 1984). ``cv``: standard deviation over mean, of the workers as the whole
    population. ``min_over_mean``: what the worst served got of an equal share. ``max_over_min``:
    infinite where one got nothing. ``gini``: mean difference over twice the mean, 0 to 1 − 1/n.
    ``range_over_mean``: best less worst over mean, 0 to n.
    """

    jain: float
    cv: float
    min_over_mean: float
    max_over_min: float
    gini: float
    range_over_mean: float


def fairness(shares: Sequence[float]) -> Fairness:
    """Figures of the shares of at least two workers.

    Raises:
        ValueError: fewer than two, a negative or infinite share, or all are 0.
    """
    if len(shares) < 2:
        raise ValueError("fewer than two workers")
    if not all(math.isfinite(share) and share >= 0 for share in shares):
        raise ValueError("a share is negative or not finite")
    greatest = max(shares)
    if greatest == 0:
        raise ValueError("every share is 0")
    # Of the greatest share, so that no square overflows or vanishes.
    relative = sorted(share / greatest for share in shares)
    n, centre = len(relative), mean(relative)
    variance = math.fsum((share - centre) ** 2 for share in relative) / n
    cv = math.sqrt(variance) / centre
    weighted = math.fsum((2 * rank - n + 1) * share for rank, share in enumerate(relative))
    return Fairness(
        jain=1 / (1 + cv * cv),
        cv=cv,
        min_over_mean=relative[0] / centre,
        max_over_min=1 / relative[0] if relative[0] > 0 else math.inf,
        gini=max(0.0, weighted / (n * n * centre)),
        range_over_mean=(relative[-1] - relative[0]) / centre,
    )


def poisson_floor(counts: Sequence[float]) -> float:
    """The coefficient of variation that chance alone gives to counts of independent events:
    1/√mean. A cv near it shows no unfairness."""
    return 1 / math.sqrt(mean(counts))


def windows(series: Sequence[Sequence[float]]) -> list[list[float]]:
    """Shares of each window from the series of each worker; none unless all are equally long."""
    if len({len(own) for own in series}) != 1:
        return []
    return [list(window) for window in zip(*series, strict=True)]
