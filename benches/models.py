"""Models: the time of fitting many curves with all models and profile intervals, on two CPUs."""

from __future__ import annotations

import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measuring.estimates import median
from measuring.figures import Bound, Figure
from measuring.running import ROOT, wall_seconds
from measuring.showing import alone

from concurve.models import fit_many

SECONDS_MAX = 30.0
CURVES = 1000
PROCESSES = 2
DESIGNS = (
    (np.array([1, 2, 4, 8, 12, 16, 24, 32.0]), 1),
    (np.array([1, 2, 4, 8, 12, 16, 24, 32.0]), 5),
    (np.arange(1, 33.0), 1),
    (np.arange(1, 33.0), 5),
)
"""Levels, and trials of each."""


def figures(quick: bool) -> Iterator[Figure]:
    """Many curves in one call, by number of levels and of trials; then one curve by the command."""
    count, times = (50, 2) if quick else (CURVES, 3)
    for levels, trials in DESIGNS:
        curves = made_up(count, levels, trials)
        seconds = [spent(curves) for _ in range(times)]
        each = f" × {trials} trials" if trials > 1 else ""
        yield Figure(
            f"fit {count:,} curves, {len(levels)} levels{each}",
            f"fit_many, 7 models, USL with 3 % noise, profile intervals, median of {times}, "
            f"{PROCESSES} processes",
            median(seconds, "s"),
            Bound(high=SECONDS_MAX),
        )
    concurve = str(Path(sysconfig.get_path("scripts")) / "concurve")
    file = str(ROOT / "tests" / "models" / "curves" / "cisco-mysql.csv")
    command = [concurve, "fit", file, "--x", "threads", "--y", "transactions_per_second"]
    wall_seconds(command)
    yield Figure(
        "concurve fit of one curve",
        f"wall of the whole process, 32 levels, median of {times}",
        median([wall_seconds(command) for _ in range(times)], "s"),
    )


def made_up(count: int, levels: np.ndarray, trials: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Curves with noise."""
    rng = np.random.default_rng(1)
    n = np.repeat(levels, trials)
    x = n / (1 + 0.03 * (n - 1) + 0.001 * n * (n - 1))
    return [(n, x * np.exp(rng.normal(0, 0.03, len(x)))) for _ in range(count)]


def spent(curves: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Seconds that fitting them takes."""
    begin = time.perf_counter()
    fit_many(curves, processes=PROCESSES)
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
