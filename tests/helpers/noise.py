"""Noises that machines and programs really have, with known truths, and the bounds that methods
are judged by. The bounds were set before the methods were written."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import NamedTuple

Draw = Callable[[random.Random], float]
"""One trial's factor on the true time of its cell."""


def log_normal(cv: float = 0.03) -> Draw:
    """Spread around a median of 1."""
    return lambda generator: generator.lognormvariate(0, cv)


def slow_trials(share: float = 0.1, mean: float = 0.5, cv: float = 0.01) -> Draw:
    """A share of the trials takes longer, by an exponential time: +Exp(``mean``)."""

    def draw(generator: random.Random) -> float:
        late = generator.expovariate(1 / mean) if generator.random() < share else 0.0
        return generator.lognormvariate(0, cv) + late

    return draw


def two_levels(slow: float = 0.2, apart: float = 0.15, cv: float = 0.02) -> Draw:
    """A share of the trials at a level that is higher by ``apart``."""

    def draw(generator: random.Random) -> float:
        level = 1 + apart if generator.random() < slow else 1.0
        return level * generator.lognormvariate(0, cv)

    return draw


def quantised(draw: Draw, tick: float) -> Draw:
    """Readings of a clock that ticks so coarsely."""
    return lambda generator: max(tick, round(draw(generator) / tick) * tick)


def drift(
    blocks: int, generator: random.Random, cv: float = 0.03, rho: float = 0.95
) -> list[float]:
    """A level that all cells of a block share: AR(1), stationary."""
    level, levels = generator.gauss(0, cv), []
    for _ in range(blocks):
        levels.append(math.exp(level))
        level = rho * level + generator.gauss(0, cv * math.sqrt(1 - rho**2))
    return levels


def step(blocks: int, after: int, factor: float = 1.08) -> list[float]:
    """A level that changes once, after so many blocks."""
    return [1.0 if block < after else factor for block in range(blocks)]


class Judged(NamedTuple):
    """A noise of single trials, and how often two levels must or may be found in it."""

    name: str
    draw: Draw
    trials: tuple[int, ...]
    at_least: float = 0.0
    at_most: float = 1.0


#: Two levels: no more than 2 % of cells of unimodal noise have them; those that truly do are found.
TWO_LEVELS: tuple[Judged, ...] = (
    *(
        Judged(f"log-normal {cv:g}", log_normal(cv), (8, 12, 20, 30), at_most=0.02)
        for cv in (0.005, 0.03, 0.2)
    ),
    *(
        Judged(f"two levels {slow:g}, {cv:g}", two_levels(slow, cv=cv), (25,), at_least)
        for slow in (0.2, 0.5)
        # At 3 % even the likelihood ratio of the mixture finds 82 and 85 %, at this level.
        for cv, at_least in ((0.01, 0.9), (0.02, 0.9), (0.03, 0.78))
    ),
)
