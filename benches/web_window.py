"""The window of ``concurve web``: how soon it shows a picture, and what it adds to computing it."""

from __future__ import annotations

import re
import sys
import time
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
window.askedAt = window.shownAt = 0;
addEventListener('submit', () => {
  window.askedAt = performance.now();
  window.shownAt = 0;
}, true);
const put = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...given) {
  if (window.shownAt === 0) {
    window.shownAt = -1;
    const note = () => { window.shownAt = performance.now(); };
    requestAnimationFrame(() => requestAnimationFrame(note));
  }
  return put.apply(this, given);
};
"""
_STATE = "document.getElementById('state').textContent"
_LOOK_SECONDS = 0.5
_LAST = re.compile(r"the last in ([\d.]+) s")
_COMPUTED = re.compile(r"^compute_seconds (\S+)$", re.MULTILINE)


def figures(quick: bool) -> Iterator[Figure]:
    """The same computation in turns: in the window, and by the command line alone while the window
    shows the last picture."""
    browser()  # it is missing before a server is started
    iterations, rounds = (150, 2) if quick else (19000, 21)
    with scratch() as folder, serving(folder / "s.db") as served, tabs(served, _WATCH) as open_tab:
        tab = open_tab()
        tab.goto(f"{served.origin}/window")
        for threads in THREADS:
            tab.locator("#threads").fill(str(threads))
            tab.locator("#iterations").fill(str(iterations))
            seconds = _alone(threads, iterations)["computed"]
            found = interleaved(
                rounds,
                {
                    "window": lambda seconds=seconds: _in_the_window(tab, seconds),  # type: ignore[misc]
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


def _in_the_window(tab: Any, seconds: float) -> Mapping[str, float]:
    """Seconds until the first lines are shown, and of the computation. The page is asked when it
    should have ended, after so many seconds: each question takes CPU time from the computation."""
    tab.evaluate("document.getElementById('state').textContent = ''")
    tab.get_by_role("button", name="Compute").click()
    time.sleep(seconds)
    until = time.monotonic() + PATIENCE_SECONDS
    while not (said := str(tab.evaluate(_STATE))).startswith("Ended"):
        if time.monotonic() > until:
            raise SystemExit(f"the picture is not complete: {said}")
        time.sleep(_LOOK_SECONDS)
    computed = _LAST.search(said)
    while not (shown := tab.evaluate("window.shownAt")) > 0 and time.monotonic() < until:
        time.sleep(0.05)
    asked = tab.evaluate("window.askedAt")
    if computed is None or not shown > 0:
        raise SystemExit(f"the window says {said!r}, and has drawn nothing")
    return {"shown": (shown - asked) / 1000, "computed": float(computed[1])}


def _alone(threads: int, iterations: int) -> Mapping[str, float]:
    """Seconds of the computation by the command line."""
    line = [str(native.binary("concurve-mandelbrot")), f"--threads={threads}"]
    found = _COMPUTED.search(output_of([*line, f"--iterations={iterations}"]))
    if found is None:
        raise SystemExit("concurve-mandelbrot printed no compute_seconds")
    return {"computed": float(found[1])}


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
