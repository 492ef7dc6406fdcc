"""Write ``src/concurve/stats/shape_limits.csv``: what chance shows in noise with one level.

Usage: ``.venv/bin/python scripts/write_shape_limits.py`` (two minutes)

Every number of trials that an effort reaches by itself, with the samples that shapes were always
judged by; above them four numbers for each doubling.
"""

from __future__ import annotations

from collections.abc import Iterator

from concurve.stats.shape import TRIALS_MIN, simulated_limits
from concurve.stats.shape_limits import FILE

#: No effort runs more trials of a cell unless it is asked to.
EACH_UP_TO = 200
#: The grid above: its greatest number, how many for each doubling, and the samples of each.
GRID_MOST, A_DOUBLING, SAMPLES = 26_000, 4, 4_000


def numbers() -> Iterator[tuple[int, int]]:
    """The numbers of trials, and how many samples of each (0: as many as usual)."""
    for n in range(TRIALS_MIN, EACH_UP_TO + 1):
        yield n, 0
    place = 1
    while (n := round(EACH_UP_TO * 2 ** (place / A_DOUBLING))) <= GRID_MOST:
        yield n, SAMPLES
        place += 1


def main() -> None:
    """Simulate and write them all."""
    lines = ["trials,split,deviation"]
    for n, samples in numbers():
        found = simulated_limits(n, samples)
        lines.append(f"{n},{found.split!r},{found.deviation!r}")
    FILE.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
