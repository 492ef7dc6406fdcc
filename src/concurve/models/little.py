"""Little's law, N = X·R (with think time Z: N = X·(R+Z)), J. D. C. Little 1961.

It holds for every system in a steady state, so three measured figures that contradict it were not
measured in the same place or at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from concurve.errors import ConcurveError
from concurve.models.model import Floats

#: |N − X·R|/N beyond this means a wrong measurement.
TOLERANCE = 0.05

Column = Sequence[float] | Floats


@dataclass(frozen=True)
class Law:
    """Workers, throughput and response time that go together, row by row.

    ``derived`` names the one that was computed; empty where all three were measured.
    """

    n: Floats
    x: Floats
    r: Floats
    think_time: float = 0.0
    derived: str = ""


def complete(n: Column | None, x: Column | None, r: Column | None, think_time: float = 0.0) -> Law:
    """Compute the third from any two. Units must fit: X in operations a second wants R in seconds.

    Raises:
        ConcurveError: fewer than two are given, lengths differ, or a number is not finite and
            above 0.
    """
    given = {
        name: np.asarray(column, float)
        for name, column in (("N", n), ("X", x), ("R", r))
        if column is not None
    }
    if len(given) < 2:
        raise ConcurveError(
            f"Little's law needs two of N, X and R; only {', '.join(given) or 'none'} is there",
            "give two columns",
        )
    if len({len(column) for column in given.values()}) != 1:
        lengths = ", ".join(f"{name} has {len(column)}" for name, column in given.items())
        raise ConcurveError(f"columns of different lengths: {lengths}", "one value a row in each")
    for name, column in given.items():
        bad = np.flatnonzero(~(np.isfinite(column) & (column > 0)))
        if len(bad):
            raise ConcurveError(
                f"{name} is {column[bad[0]]:g} in row {bad[0] + 1}: not a finite number above 0",
                "leave out rows without a measurement",
            )
    z = think_time
    if "R" not in given:
        response = given["N"] / given["X"] - z
        if np.any(response <= 0):
            raise ConcurveError(
                f"a think time of {z:g} is longer than N/X in row {int(np.argmin(response)) + 1}",
                "check the unit of the think time",
            )
        return Law(given["N"], given["X"], response, z, "R")
    if "X" not in given:
        return Law(given["N"], given["N"] / (given["R"] + z), given["R"], z, "X")
    if "N" not in given:
        return Law(given["X"] * (given["R"] + z), given["X"], given["R"], z, "N")
    return Law(given["N"], given["X"], given["R"], z)


def deviation(law: Law) -> Floats:
    """(N − X(R+Z))/N of each row: 0 where the law holds."""
    return np.asarray((law.n - law.x * (law.r + law.think_time)) / law.n)


def violations(law: Law, tolerance: float = TOLERANCE) -> list[int]:
    """Rows, from 0, that contradict the law by more than the tolerance."""
    return [int(row) for row in np.flatnonzero(np.abs(deviation(law)) > tolerance)]


def check(law: Law, tolerance: float = TOLERANCE) -> None:
    """Refuse figures that contradict the law.

    Raises:
        ConcurveError: a row is off by more than the tolerance.
    """
    rows = violations(law, tolerance)
    if not rows:
        return
    off = deviation(law)
    worst = max(rows, key=lambda row: abs(float(off[row])))
    there = law.x[worst] * (law.r[worst] + law.think_time)
    raise ConcurveError(
        f"wrong measurement: {len(rows)} of {len(law.n)} rows contradict Little's law N = X·R by "
        f"more than {100 * tolerance:g} %; in row {worst + 1} N is {law.n[worst]:g}, "
        f"X·R {there:.4g}",
        "R must be a mean in the time unit of X (seconds for operations a second) and measured "
        "where X was; clients that pause need --think-time; without --r the fit goes on unchecked",
    )
