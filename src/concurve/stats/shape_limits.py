"""What chance shows in samples of noise with one level, as simulated once: that takes as long as
half of what else a view of a run computes.

``shape_limits.csv`` has every number of trials that an effort reaches, and a grid above them, by
:func:`concurve.stats.shape.simulated_limits`; ``scripts/write_shape_limits.py`` writes it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_suffix(".csv")


class Limits(NamedTuple):
    """What a finding must exceed: the likelihood of the best split into two levels, and how many
    median deviations the furthest value lies from the median."""

    split: float
    deviation: float


def limits_of(n: int) -> Limits | None:
    """Those of samples of n values; between two numbers of the grid on a line over the logarithm of
    n. ``None`` outside of what the file has."""
    sizes, limits = _table()
    place = bisect_left(sizes, n)
    if place == len(sizes):
        return None
    if sizes[place] == n:
        return limits[place]
    if place == 0:
        return None
    below, above = limits[place - 1], limits[place]
    share = math.log(n / sizes[place - 1]) / math.log(sizes[place] / sizes[place - 1])
    return Limits(*(low + share * (high - low) for low, high in zip(below, above, strict=True)))


@cache
def _table() -> tuple[tuple[int, ...], tuple[Limits, ...]]:
    """The numbers of trials in ascending order, and the limits of each."""
    _, *lines = FILE.read_text(encoding="ascii").splitlines()
    rows = [line.split(",") for line in lines]
    return (
        tuple(int(n) for n, _, _ in rows),
        tuple(Limits(float(split), float(deviation)) for _, split, deviation in rows),
    )
