"""How often is the level that a run recommends wrong, and how often is none recommended?

Levels of a factor that counts workers, on curves of known shape, under noise of a few kinds. A
level is wrong if it is more than 5 % worse than the truly best one. ``before`` recommends the
smallest level that cannot be told from the best, ``now`` the smallest that is shown to be as good
(decision 77). ``contradicted``: a comparison of two levels tells another one to be faster than the
one that is recommended. Prints the tables of docs/decisions/0077-shown-to-be-as-good.md.

Usage: python benches/recommended.py [RUNS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from concurve.stats.best import ALIKE, best_set, choose
from concurve.stats.blocks import Blocks, log_ratios
from concurve.stats.comparison import EFFECT, directions

LEVELS = (1, 2, 4, 8, 16)
TRIALS = (3, 5, 10, 20)
Floats = npt.NDArray[np.float64]
Rng = np.random.Generator


def usl(n: int, serial: float, crosstalk: float) -> float:
    """The universal scalability law."""
    return n / (1 + serial * (n - 1) + crosstalk * n * (n - 1))


#: The true throughput of a curve at a number of workers.
CURVES: dict[str, Callable[[int], float]] = {
    "flat": lambda n: 1.0,
    "linear": float,
    "plateau": lambda n: float(min(n, 4)),
    "saturating": lambda n: usl(n, 0.3, 0.0),
    "retrograde": lambda n: usl(n, 0.05, 0.02),
    "steps of 7 %": lambda n: {1: 1.0, 2: 1.07, 4: 1.14, 8: 1.14, 16: 1.07}[n],
}


def _log_normal(cv: float) -> Callable[[Rng, int], Floats]:
    return lambda rng, blocks: rng.lognormal(0, cv, (len(LEVELS), blocks))


def _heavy(rng: Rng, blocks: int) -> Floats:
    return np.exp(0.03 * rng.standard_t(3, (len(LEVELS), blocks)))


def _slow(rng: Rng, blocks: int) -> Floats:
    """One trial in ten is slow."""
    shape = len(LEVELS), blocks
    slow = rng.random(shape) < 0.1
    return rng.lognormal(0, 0.02, shape) * (1 + slow * rng.exponential(0.5, shape))


def _drifting(rng: Rng, blocks: int) -> Floats:
    """All levels share a drift of 10 %, beside noise of 2 % of their own."""
    level, series = 0.0, []
    for _ in range(blocks):
        level = 0.9 * level + rng.normal(0, 0.1 * (1 - 0.9**2) ** 0.5)
        series.append(level)
    return np.asarray(np.exp(series) * rng.lognormal(0, 0.02, (len(LEVELS), blocks)))


#: The factors on the times of a run: a row a level, a column a block.
NOISES: dict[str, Callable[[Rng, int], Floats]] = {
    "log-normal 2 %": _log_normal(0.02),
    "log-normal 10 %": _log_normal(0.10),
    "t of 3 degrees, 3 %": _heavy,
    "2 %, one in ten slow": _slow,
    "2 %, a shared drift of 10 %": _drifting,
}


class Tally(NamedTuple):
    """Shares of the runs."""

    wrong_before: float
    wrong_now: float
    refused: float
    contradicted_before: float
    contradicted_now: float


def tally(curve: str, noise: str, trials: int, runs: int, seed: int = 77) -> Tally:
    """What is recommended in so many runs."""
    rng = np.random.default_rng([seed, trials, *map(ord, curve + noise)])
    truth = np.array([CURVES[curve](n) for n in LEVELS])
    found = np.zeros(5)
    for _ in range(runs):
        times = NOISES[noise](rng, trials) / truth[:, None]
        cells: list[Blocks] = [dict(enumerate(map(float, row))) for row in times]
        best = best_set(cells)
        choice = choose(cells, best, best.members)
        for column, chosen in enumerate((best.members[0], choice.chosen)):
            if chosen is None:
                found[2] += 1
                continue
            found[column] += truth[chosen] * (1 + ALIKE) < truth.max() * (1 - 1e-9)
            found[3 + column] += is_contradicted(cells, chosen)
    return Tally(*(found / runs).tolist())


def is_contradicted(cells: Sequence[Blocks], chosen: int) -> bool:
    """Does a comparison of two levels tell another one to be faster?"""
    return any(
        directions([log_ratios(cells[chosen], other)], EFFECT) == ["higher"]
        for index, other in enumerate(cells)
        if index != chosen
    )


def tables(runs: int) -> Iterator[str]:
    """By noise over all curves, the worst curve in parentheses; and what is refused, by curve."""
    yield "| noise | trials | wrong before | wrong now | none | contradicted before | now |"
    yield "|-|-|-|-|-|-|-|"
    refused: dict[tuple[str, int], float] = {}
    for noise in NOISES:
        for trials in TRIALS:
            each = {curve: tally(curve, noise, trials, runs) for curve in CURVES}
            columns = list(zip(*each.values(), strict=True))
            said = [f"{np.mean(column):.1%} ({max(column):.1%})" for column in columns]
            yield f"| {noise} | {trials} | {' | '.join(said)} |"
            if noise == "log-normal 2 %":
                refused |= {(curve, trials): each[curve].refused for curve in CURVES}
    yield ""
    yield f"| none is recommended, log-normal 2 % | {' | '.join(map(str, TRIALS))} |"
    yield f"|-|{'-|' * len(TRIALS)}"
    for curve in CURVES:
        shares = [f"{refused[curve, trials]:.1%}" for trials in TRIALS]
        yield f"| {curve} | {' | '.join(shares)} |"


if __name__ == "__main__":
    for line in tables(int(sys.argv[1]) if len(sys.argv) > 1 else 400):
        print(line, flush=True)
