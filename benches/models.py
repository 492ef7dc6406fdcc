"""Models: the time of fitting many curves with all models and profile intervals."""

from __future__ import annotations

import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measuring import ROOT, Bound, Figure, alone, median, wall_seconds

from concurve.models import fit_many

SECONDS_MAX = 30.0
LEVELS = np.array([1, 2, 4, 8, 12, 16, 24, 32.0])


def figures(quick: bool) -> Iterator[Figure]:
    """Many curves in one call, then one curve by the command."""
    count, times = (50, 2) if quick else (1000, 5)
    curves = made_up(count)
    seconds = [spent(curves) for _ in range(times)]
    yield Figure(
        f"fit {count:,} curves with 7 models",
        f"fit_many, 8 levels, USL with 3 % noise, profile intervals, median of {times}, one CPU",
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


def made_up(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Curves with noise."""
    rng = np.random.default_rng(1)
    x = LEVELS / (1 + 0.03 * (LEVELS - 1) + 0.001 * LEVELS * (LEVELS - 1))
    return [(LEVELS, x * np.exp(rng.normal(0, 0.03, len(x)))) for _ in range(count)]


def spent(curves: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Seconds that fitting them takes."""
    begin = time.perf_counter()
    fit_many(curves)
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
