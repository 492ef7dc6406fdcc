"""The demonstration: `make demo` on a built checkout, alone and beside busy competitors."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from measuring.figures import Bound, Figure, MissingToolError, unless_missing
from measuring.running import ROOT
from measuring.showing import alone
from measuring.tools import require

from concurve.estimate import Estimate

SECONDS_MAX = 90.0

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
    figure = Figure(
        "make demo", "wall time after the build, one run", bound=Bound(high=SECONDS_MAX)
    )
    if quick:
        yield figure._replace(missing="takes a minute, left out of a quick run")
        return
    yield unless_missing(figure, demo_seconds)
    for count in COMPETITORS:
        for nice in NICE:
            yield from beside(count, nice)


def beside(count: int, nice: int) -> Iterator[Figure]:
    """The demonstration beside competitors: its trials end with the allowance, and each setting is
    measured or named."""
    name = f"make demo beside {count} busy processes at nice {nice}"
    timed = Figure(
        name,
        "time of its trials, one run",
        bound=Bound(high=ALLOWED_SECONDS + STOPPING_SECONDS),
    )
    silent = Figure(
        name,
        "settings without a figure or a word about them, and 1 without a word of doubt, one run",
        bound=Bound(high=0),
    )
    try:
        found = busy_demo(count, nice)
    except MissingToolError as error:
        yield timed._replace(missing=str(error))
        yield silent._replace(missing=str(error))
        return
    yield timed._replace(estimate=Estimate(value=found.seconds, unit="s"))
    yield silent._replace(estimate=Estimate(value=found.unsaid))


class Busy(NamedTuple):
    """Seconds that the trials of a run took, infinite if it ended without a report; and how much it
    did not say."""

    seconds: float
    unsaid: float


def busy_demo(count: int, nice: int) -> Busy:
    """The command of `make demo` beside so many competitors.

    Raises:
        MissingToolError: there is no make, or it cannot build.
    """
    make = require("make", "make")
    subprocess.run([make, "build"], cwd=ROOT, capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as folder, competitors(count, nice):
        database = str(Path(folder) / "demo.db")
        done = subprocess.run(
            [make, "demo", f"CONCURVE_DB={database}"], cwd=ROOT, capture_output=True, check=False
        )
        if done.returncode != 0:
            return Busy(math.inf, math.inf)
        program = Path(sys.executable).parent / "concurve"
        exported = subprocess.run(
            [program, "export", "last", "--db", database], capture_output=True, check=True
        )
    export = json.loads(exported.stdout)
    return Busy(export["run"]["duration_seconds"], unsaid(export))


def unsaid(export: dict[str, Any]) -> int:
    """Settings that have no figure and are not named, and 1 if nothing is said of the machine."""
    said = [item["sentence"] for item in export["findings"]]
    missing = 0
    for cell in export["cells"]:
        name = " ".join(f"{key}={level}" for key, level in cell["parameters"].items())
        measured = any(trial["used"] for trial in cell["trials"])
        missing += not measured and not any(name in sentence for sentence in said)
    return missing + (not any("in doubt" in sentence for sentence in said))


@contextmanager
def competitors(count: int, nice: int) -> Iterator[None]:
    """Processes that each keep a CPU busy."""
    line = f"import os; os.nice({nice})\nwhile True: pass"
    running = [subprocess.Popen([sys.executable, "-c", line]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def demo_seconds() -> Estimate:
    """Build first, then time the demonstration.

    Raises:
        MissingToolError: a goal failed.
    """
    make = require("make", "make")
    for goal in ("build", "demo"):
        begin = time.perf_counter()
        done = subprocess.run([make, goal], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise MissingToolError(f"make {goal} failed: {' '.join(said)}")
    return Estimate(value=time.perf_counter() - begin, unit="s")


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
