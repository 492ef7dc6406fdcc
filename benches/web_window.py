"""The window of ``concurve web``: how soon it shows a picture, and what it adds to computing it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from measuring.estimates import median, median_of_ratios
from measuring.figures import Bound, Figure
from measuring.running import interleaved, output_of, scratch
from measuring.served import PATIENCE_SECONDS, browser, serving, tabs
from measuring.showing import alone

from concurve.host import native

FIRST_LINES_SECONDS_MAX = 0.3
ADDED = Bound(high=1.02)
THREADS = (1, 2)

#: Notes in the page when a picture is asked for, and when its first line is on the screen: drawn,
#: and one frame later.
_WATCH = """
window.askedAt = window.shownAt = null;
addEventListener('submit', () => {
  window.askedAt = performance.now();
  window.shownAt = null;
}, true);
const put = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...given) {
  if (window.shownAt === null) {
    window.shownAt = NaN;
    const note = () => { window.shownAt = performance.now(); };
    requestAnimationFrame(() => requestAnimationFrame(note));
  }
  return put.apply(this, given);
};
"""
_LAST = re.compile(r"the last in ([\d.]+) s")
_COMPUTED = re.compile(r"^compute_seconds (\S+)$", re.MULTILINE)


def figures(quick: bool) -> Iterator[Figure]:
    """The same computation in turns: in the window, and by the command line alone while the window
    shows the last picture."""
    browser()  # it is missing before a server is started
    iterations, rounds = (150, 2) if quick else (19000, 11)
    with scratch() as folder, serving(folder / "s.db") as served, tabs(served, _WATCH) as open_tab:
        tab = open_tab()
        tab.goto(f"{served.origin}/window")
        for threads in THREADS:
            tab.get_by_label("Threads", exact=True).fill(str(threads))
            tab.get_by_label("Iterations").fill(str(iterations))
            found = interleaved(
                rounds,
                {
                    "window": lambda: _in_the_window(tab),
                    "alone": lambda threads=threads: _alone(threads, iterations),  # type: ignore[misc]
                },
            )
            what = "1 thread" if threads == 1 else f"{threads} threads"
            yield Figure(
                f"first lines of a picture, {what}",
                f"from the press of Compute until they are on the screen, median of {rounds}",
                median(found["window shown"], "s"),
                Bound(high=FIRST_LINES_SECONDS_MAX),
            )
            yield Figure(
                f"computation time, window / alone, {what}",
                f"median of the ratios of {rounds} rounds, {iterations} iterations",
                median_of_ratios(found["window computed"], found["alone computed"]),
                ADDED,
            )


def _in_the_window(tab: Any) -> Mapping[str, float]:
    """Seconds until the first lines are shown, and of the computation."""
    limit = 1000 * PATIENCE_SECONDS
    state = tab.locator("#state")
    tab.get_by_role("button", name="Compute").click()
    tab.get_by_text("Computing:").or_(tab.get_by_text("Ended:")).wait_for(timeout=limit)
    tab.locator("#stop:disabled").wait_for(timeout=limit)
    tab.get_by_text("Ended: 1 of 1").wait_for(timeout=limit)
    computed = _LAST.search(state.inner_text())
    times = tab.evaluate("[window.askedAt, window.shownAt]")
    if computed is None or None in times:
        raise SystemExit(f"the window says {state.inner_text()!r}, and has drawn at {times}")
    return {"shown": (times[1] - times[0]) / 1000, "computed": float(computed[1])}


def _alone(threads: int, iterations: int) -> Mapping[str, float]:
    """Seconds of the computation by the command line."""
    line = [str(native.binary("concurve-mandelbrot")), f"--threads={threads}"]
    found = _COMPUTED.search(output_of([*line, f"--iterations={iterations}"]))
    if found is None:
        raise SystemExit("concurve-mandelbrot printed no compute_seconds")
    return {"computed": float(found[1])}


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
