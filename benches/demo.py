"""The demonstration: `make demo` on a built checkout."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from measuring.figures import Bound, Figure, MissingToolError, unless_missing
from measuring.running import ROOT
from measuring.showing import alone
from measuring.tools import require

from concurve.estimate import Estimate

SECONDS_MAX = 90.0


def figures(quick: bool) -> Iterator[Figure]:
    """One run: it is long, and its length is bounded by design."""
    figure = Figure(
        "make demo", "wall time after the build, one run", bound=Bound(high=SECONDS_MAX)
    )
    if quick:
        yield figure._replace(missing="takes a minute, left out of a quick run")
    else:
        yield unless_missing(figure, demo_seconds)


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
