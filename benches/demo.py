"""The demonstration: `make demo` on a built checkout, alone and beside busy competitors."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from measuring.figures import Bound, Figure, MissingToolError
from measuring.running import ROOT, busy_processes
from measuring.showing import alone
from measuring.tools import require

from concurve.estimate import Estimate

SECONDS_MAX = 90.0
LINES_MAX = 30
PAGE_BYTES_MAX = 1e6

#: What it writes.
PAGE = ROOT / ".concurve" / "thread-scaling.html"

#: The time allowance of thread-scaling at quick, which a trial under way may not outlast; and what
#: stopping it may take.
ALLOWED_SECONDS = 65.0
STOPPING_SECONDS = 2.0

#: Numbers of competitors, each of which keeps a CPU busy, and their nice values.
COMPETITORS = (2, 4, 8)
NICE = (0, 19)


def figures(quick: bool) -> Iterator[Figure]:
    """One run: it is long, and its length is bounded by design. Then one beside each number of
    competitors."""
    promised = (
        Figure("make demo", "wall time after the build, one run", bound=Bound(high=SECONDS_MAX)),
        Figure("… lines of make demo", "on standard output", bound=Bound(high=LINES_MAX)),
        Figure("… page of make demo", "size, with its charts", bound=Bound(high=PAGE_BYTES_MAX)),
    )
    if quick:
        for figure in promised:
            yield figure._replace(missing="takes a minute, left out of a quick run")
        return
    try:
        found = demo()
    except MissingToolError as error:
        yield from (figure._replace(missing=str(error)) for figure in promised)
    else:
        for figure, value, unit in zip(promised, found, ("s", "lines", "bytes"), strict=True):
            yield figure._replace(estimate=Estimate(value=value, unit=unit))
    for count in COMPETITORS:
        for nice in NICE:
            yield from beside(count, nice)


def beside(count: int, nice: int) -> Iterator[Figure]:
    """The demonstration beside competitors: its trials end with the allowance, each setting is
    measured or named, and all stays on a screen."""
    name = f"make demo beside {count} busy processes at nice {nice}"
    says_all = "settings without a figure or a word about them, and 1 without a word of doubt"
    most = ALLOWED_SECONDS + STOPPING_SECONDS
    promised = (
        Figure(name, "time of its trials, one run", bound=Bound(high=most)),
        Figure(name, f"{says_all}, one run", bound=Bound(high=0)),
        Figure(name, "lines on standard output, one run", bound=Bound(high=LINES_MAX)),
    )
    try:
        found = busy_demo(count, nice)
    except MissingToolError as error:
        yield from (figure._replace(missing=str(error)) for figure in promised)
        return
    for figure, value, unit in zip(promised, found, ("s", "", "lines"), strict=True):
        yield figure._replace(estimate=Estimate(value=value, unit=unit))


class Busy(NamedTuple):
    """Seconds that the trials of a run took, how much it did not say, and the lines that it
    printed; infinite if it ended without a report."""

    seconds: float
    unsaid: float
    lines: float


def busy_demo(count: int, nice: int) -> Busy:
    """The command of `make demo` beside so many competitors.

    Raises:
        MissingToolError: there is no make, or it cannot build.
    """
    make = require("make", "make")
    subprocess.run([make, "build"], cwd=ROOT, capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as folder, busy_processes(count, nice):
        database = str(Path(folder) / "demo.db")
        done = subprocess.run(
            [make, "demo", f"CONCURVE_DB={database}"], cwd=ROOT, env=_screen(), capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            return Busy(math.inf, math.inf, math.inf)
        program = Path(sys.executable).parent / "concurve"
        exported = subprocess.run(
            [program, "export", "last", "--db", database], capture_output=True, check=True
        )
    export = json.loads(exported.stdout)
    return Busy(export["run"]["duration_seconds"], unsaid(export), len(done.stdout.splitlines()))


def unsaid(export: dict[str, Any]) -> int:
    """Settings that have no figure and are not named, and 1 if nothing is said of the machine."""
    said = [item["sentence"] for item in export["findings"]]
    missing = 0
    for cell in export["cells"]:
        name = " ".join(f"{key}={level}" for key, level in cell["parameters"].items())
        measured = any(trial["used"] for trial in cell["trials"])
        missing += not measured and not any(name in sentence for sentence in said)
    return missing + (not any("in doubt" in sentence for sentence in said))


class Demo(NamedTuple):
    """What the demonstration took, how many lines it printed, and how large its page is."""

    seconds: float
    lines: int
    page_bytes: int


def demo() -> Demo:
    """Build first, then time the demonstration.

    Raises:
        MissingToolError: a goal failed.
    """
    make = require("make", "make")
    for goal in ("build", "demo"):
        begin = time.perf_counter()
        done = subprocess.run(
            [make, goal], cwd=ROOT, env=_screen(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise MissingToolError(f"make {goal} failed: {' '.join(said)}")
    seconds = time.perf_counter() - begin
    return Demo(seconds, len(done.stdout.splitlines()), PAGE.stat().st_size)


def _screen() -> dict[str, str]:
    """The environment with the usual width of a terminal: in a wider one it prints fewer lines. It
    is read when a bench runs, which sets a lock of its own for what it measures."""
    return {**os.environ, "COLUMNS": "80"}


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
