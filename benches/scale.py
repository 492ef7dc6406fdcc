"""Scales: what the command line takes to start, and `concurve show` of a run of many trials."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from measuring.estimates import median
from measuring.figures import Bound, Figure
from measuring.running import scratch, wall_seconds
from measuring.showing import alone
from synthetic_run import fill

CONCURVE = str(Path(sysconfig.get_path("scripts")) / "concurve")

#: How long one waits at most for `concurve show`.
SHOW_SECONDS_MAX = 0.7

#: The commands that measure nothing and read no store, and how long one waits for them at most.
STARTS = {"--version": 0.15, "studies": 0.4}

SHAPES = ((20, 5_000), (1_000, 100))
"""Cells, and trials a cell."""


def figures(quick: bool) -> Iterator[Figure]:
    """The start, then few long cells, then many short ones."""
    for word, most in STARTS.items():
        yield start_figure(word, most, times=2 if quick else 15)
    for cells, repeats in ((20, 5),) if quick else SHAPES:
        yield from show_figures(cells, repeats, times=2 if quick else 7)


def start_figure(word: str, most: float, times: int) -> Figure:
    """Wall time of a whole process that starts and ends."""
    command = [CONCURVE, word]
    wall_seconds(command)  # once unmeasured: the files are in memory then
    return Figure(
        f"concurve {word}",
        f"wall, whole process, median of {times}",
        median([wall_seconds(command) for _ in range(times)], "s"),
        Bound(high=most),
    )


def show_figures(cells: int, repeats: int, times: int) -> Iterator[Figure]:
    """Wall time of the whole process, start of Python included: of an answer that is kept, as the
    end of a run keeps it, and of one that has to be computed."""
    with scratch() as folder:
        db, cache = folder / "bench.db", folder / "cache"
        fill(db, cells, repeats)
        show = ["env", f"XDG_CACHE_HOME={cache}", CONCURVE, "show", "last", "--db", str(db)]
        wall_seconds(show)  # once unmeasured: the file's pages are in memory then
        kept = [wall_seconds(show) for _ in range(times)]
        computed = []
        for _ in range(times):
            shutil.rmtree(cache, ignore_errors=True)
            computed.append(wall_seconds(show))
    what = f"show {cells * repeats:,} trials in {cells:,} cells"
    how = f"wall of `concurve show`, whole process, median of {times}, made-up run in SQLite"
    yield Figure(what, how, median(kept, "s"), Bound(high=SHOW_SECONDS_MAX))
    yield Figure("… the first time", "the same without a kept answer", median(computed, "s"))


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
