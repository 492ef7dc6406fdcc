"""The page of a report: how soon Chromium paints one of 5,000 trials, and its size."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from measuring.estimates import median
from measuring.figures import Bound, Figure
from measuring.running import scratch
from measuring.showing import alone
from synthetic_run import fill

from concurve.estimate import Estimate
from concurve.exports import export_run
from concurve.store import Store

PAINTED_SECONDS_MAX = 1.0
PAGE_BYTES_MAX = 1e6
CELLS, REPEATS = 50, 100
PATIENCE_SECONDS = 60.0
"""For a page to be painted at all."""

_PAINT = "performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)"


def figures(quick: bool) -> Iterator[Figure]:
    """The page is written once, and opened afresh each time."""
    cells, repeats = (10, 5) if quick else (CELLS, REPEATS)
    times = 2 if quick else 7
    browser_file = os.environ.get("CHROMIUM") or shutil.which("chromium")
    paint = Figure(
        f"first paint of {cells * repeats:,} trials",
        f"first contentful paint in Chromium, median of {times}",
        bound=Bound(high=PAINTED_SECONDS_MAX),
        missing="" if browser_file else "no Chromium: apt-get install chromium",
    )
    with scratch() as folder:
        page = folder / "report.html"
        fill(folder / "bench.db", cells, repeats)
        store = Store(str(folder / "bench.db"))
        page.write_bytes(export_run(store, store.find_run("last"), "html"))
        if browser_file:
            seconds = list(_painted(page, browser_file, times))
            paint = paint._replace(estimate=median(seconds, "s"))
        size = page.stat().st_size
    yield paint
    yield Figure(
        f"page of {cells * repeats:,} trials",
        "size of the whole page, with its charts",
        Estimate(value=size, unit="bytes"),
        Bound(high=PAGE_BYTES_MAX),
    )


def _painted(page: Path, browser_file: str, times: int) -> Iterator[float]:
    """Seconds from the request of the page to its first content."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_file, args=["--no-sandbox"])
        for _ in range(times):
            tab = browser.new_page(viewport={"width": 1200, "height": 800})
            tab.goto(page.as_uri())
            # Asked from here: the page forbids what would ask again and again in it.
            until = time.monotonic() + PATIENCE_SECONDS
            while not (found := tab.evaluate(_PAINT)):
                if time.monotonic() > until:
                    raise SystemExit(f"{page}: nothing was painted in {PATIENCE_SECONDS:g} s")
                tab.wait_for_timeout(20)
            yield float(found[0]) / 1000
            tab.close()
        browser.close()


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
