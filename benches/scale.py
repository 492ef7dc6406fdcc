"""Scales: `concurve show` of a run of many trials."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from measuring.estimates import median
from measuring.figures import Bound, Figure
from measuring.running import scratch, wall_seconds
from measuring.showing import alone
from synthetic_run import fill

SECONDS_MAX = 2.0


SHAPES = ((20, 5_000), (1_000, 100))
"""Cells, and trials a cell."""


def figures(quick: bool) -> Iterator[Figure]:
    """Few long cells, then many short ones."""
    for cells, repeats in ((20, 5),) if quick else SHAPES:
        yield show_figure(cells, repeats, times=2 if quick else 7)


def show_figure(cells: int, repeats: int, times: int) -> Figure:
    """Wall time of the whole process, start of Python included."""
    concurve = str(Path(sysconfig.get_path("scripts")) / "concurve")
    with scratch() as folder:
        db = folder / "bench.db"
        fill(db, cells, repeats)
        show = [concurve, "show", "last", "--db", str(db)]
        wall_seconds(show)  # once unmeasured: the file's pages are in memory then
        seconds = [wall_seconds(show) for _ in range(times)]
    return Figure(
        f"show {cells * repeats:,} trials in {cells:,} cells",
        f"wall of `concurve show`, whole process, median of {times}, made-up run in SQLite",
        median(seconds, "s"),
        Bound(high=SECONDS_MAX),
    )


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
