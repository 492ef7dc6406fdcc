"""A run that a browser watches beside one that nobody watches, and how soon ``concurve web`` ends
with streams open."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from measuring.estimates import median, median_of_ratios
from measuring.figures import Bound, Figure
from measuring.running import busy_iterations, interleaved, scratch, target
from measuring.served import CONCURVE, PATIENCE_SECONDS, browser, serving, tabs
from measuring.showing import alone

from concurve.store import Store

WITHIN_ONE_PERCENT = Bound(0.99, 1.01)
END_SECONDS_MAX = 2.0
STREAMS = 10
THREADS = (1, 2)


def figures(quick: bool) -> Iterator[Figure]:
    """The same sweep in turns, with a tab that shows it, and with one that shows the list of runs;
    then the ends of a server."""
    browser()  # it is missing before a server is started
    rounds, repeats, cpu_ms = (2, 2, 20) if quick else (31, 80, 100)
    with scratch() as folder:
        yield from _watched(folder / "watched.db", rounds, repeats, cpu_ms)
        yield Figure(
            f"the server's end beside {STREAMS} streams",
            f"from SIGTERM until it has ended, median of {2 if quick else 11}",
            median([_end_seconds(folder / f"{i}.db") for i in range(2 if quick else 11)], "s"),
            Bound(high=END_SECONDS_MAX),
        )


def _watched(db: Path, rounds: int, repeats: int, cpu_ms: int) -> Iterator[Figure]:
    line = target("busy", "--threads", "{threads}", "--iterations", str(busy_iterations(cpu_ms)))
    with serving(db) as served, tabs(served) as open_tab:
        tab = open_tab()

        def side(path: str) -> Mapping[str, float]:
            tab.goto(f"{served.origin}/runs")
            swept = _swept(db, repeats, line, lambda it: tab.goto(served.origin + path.format(it)))
            # At its end the page of a run loads itself anew, and would break off the next visit.
            tab.locator("#live").wait_for(state="detached")
            return swept

        found = interleaved(
            rounds, {"seen": lambda: side("/runs/{}"), "unseen": lambda: side("/runs")}
        )
    for threads in THREADS:
        yield Figure(
            f"wall time, watched / not, threads={threads}",
            f"medians of {repeats} trials of a sweep; median of the ratios of {rounds} rounds",
            median_of_ratios(found[f"seen {threads}"], found[f"unseen {threads}"]),
            WITHIN_ONE_PERCENT,
        )


def _swept(
    db: Path, repeats: int, line: list[str], look: Callable[[str], Any]
) -> Mapping[str, float]:
    """Median wall seconds of a sweep by its threads. ``look`` is called with its run once it
    runs."""
    known = _runs(db)
    levels = ",".join(map(str, THREADS))
    process = subprocess.Popen(
        [CONCURVE, "sweep", "--db", str(db), "-P", "threads", levels, "--repeats", str(repeats),
         "--", *line],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + PATIENCE_SECONDS
    while not (new := _runs(db) - known) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    for run in new:
        look(run)
    _, said = process.communicate()
    if process.returncode != 0 or not new:
        raise SystemExit(f"the sweep failed with {process.returncode}: {said[-300:]}")
    (run,) = new
    return {str(n): float(np.median(seconds)) for n, seconds in _wall_seconds(db, run).items()}


def _runs(db: Path) -> set[str]:
    store = Store.existing(str(db)) if db.exists() else None
    if store is None:
        return set()
    try:
        return {run.id for run in store.runs()}
    finally:
        store.close()


def _wall_seconds(db: Path, run: str) -> dict[int, list[float]]:
    """Wall seconds of the trials of each number of threads."""
    store = Store.existing(str(db))
    found: dict[int, list[float]] = {}
    for trial in store.trials(run):
        if trial.outcome.value is not None:
            threads = THREADS[trial.outcome.key.cell]
            found.setdefault(threads, []).append(trial.outcome.value)
    store.close()
    return found


def _end_seconds(db: Path) -> float:
    """Seconds from the signal until a server has ended that streams a run under way."""
    sweep = subprocess.Popen(
        [CONCURVE, "sweep", "--db", str(db), "-P", "n", "1", "--repeats", "1000", "--",
         "sleep", "0.2"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not (found := _runs(db)) and sweep.poll() is None:
            time.sleep(0.05)
        with ExitStack() as stack, serving(db) as served:
            for run in list(found) * STREAMS:
                link = served.link()
                stack.callback(link.close)
                answer = served.get(link, f"/runs/{run}/live")
                assert answer.status == 200 and answer.readline().startswith(b"retry:")
            if not found:
                raise SystemExit("the sweep ended before it began")
            time.sleep(1)
            begun = time.perf_counter()
            served.process.terminate()
            served.process.wait(PATIENCE_SECONDS)
            return time.perf_counter() - begun
    finally:
        sweep.terminate()
        sweep.wait()


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
