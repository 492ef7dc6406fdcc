"""The pages of ``concurve web``: how soon they are painted with many trials and cells, and beside
many streams."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
from measuring.estimates import median
from measuring.figures import Bound, Figure
from measuring.running import scratch
from measuring.served import PATIENCE_SECONDS, Served, browser, serving, tabs
from measuring.showing import alone
from synthetic_run import fill, head_of, write_trials

from concurve.store import Store
from concurve.store.rows import RUNNING, RunRow

PAINTED_SECONDS_MAX = 1.0
CELLS, REPEATS = 50, 100
CELLS_UNDER_WAY, TRIALS_UNDER_WAY = 1000, 5
STREAMS = 200
_PAINT = "performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)"


def figures(quick: bool) -> Iterator[Figure]:
    """Each page is opened afresh each time."""
    browser()  # it is missing before stores are filled
    cells, repeats = (10, 5) if quick else (CELLS, REPEATS)
    many = 20 if quick else CELLS_UNDER_WAY
    streams = 5 if quick else STREAMS
    times = 2 if quick else 7
    with scratch() as folder:
        whole = fill(folder / "whole.db", cells, repeats)
        running = _under_way(folder / "running.db", many)
        with serving(folder / "whole.db") as done, serving(folder / "running.db") as served:
            for name, where, path in (
                (f"list of runs with {cells * repeats:,} trials", done, "/runs"),
                (f"run of {cells * repeats:,} trials", done, f"/runs/{whole}"),
                (f"run of {many:,} cells under way", served, f"/runs/{running}"),
            ):
                yield Figure(
                    f"first paint: {name}",
                    f"first contentful paint in Chromium, median of {times}",
                    median(list(_painted(where, path, times)), "s"),
                    Bound(high=PAINTED_SECONDS_MAX),
                )
            yield Figure(
                f"a page beside {streams} streams",
                f"GET /runs to its last byte, median of {4 * times}",
                median(list(_beside_streams(served, running, streams, 4 * times)), "s"),
                Bound(high=PAINTED_SECONDS_MAX),
            )


def _under_way(db: Path, cells: int) -> str:
    """A run that this process seems to measure; its id."""
    head = head_of(cells, TRIALS_UNDER_WAY, seed=2)
    store = Store(str(db))
    store.add_run(
        RunRow(head.id, head.study.name, head.started, RUNNING, "", msgspec.json.encode(head))
    )
    store.close()
    write_trials(db, head, seed=2)
    return head.id


def _painted(served: Served, path: str, times: int) -> Iterator[float]:
    """Seconds from the request of the page to its first content."""
    with tabs(served) as open_tab:
        for _ in range(times):
            tab = open_tab()
            tab.goto(served.origin + path)
            yield _paint_of(tab)
            tab.context.close()


def _paint_of(tab: Any) -> float:
    """When the first content was painted. The page allows no script but its own, so it is asked
    again and again from outside."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not (found := tab.evaluate(_PAINT)):
        if time.monotonic() > until:
            raise SystemExit("nothing was painted")
        time.sleep(0.01)
    return float(found[0]) / 1000


def _beside_streams(served: Served, run: str, streams: int, times: int) -> Iterator[float]:
    """Seconds of a page while so many browsers follow a run."""
    with ExitStack() as stack:
        for _ in range(streams):
            link = served.link()
            stack.callback(link.close)
            answer = served.get(link, f"/runs/{run}/live")
            assert answer.status == 200 and answer.readline().startswith(b"retry:")
        for _ in range(times):
            link = served.link()
            begun = time.perf_counter()
            served.get(link, "/runs").read()
            yield time.perf_counter() - begun
            link.close()


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
