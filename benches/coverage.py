#!/usr/bin/env python3
"""How often intervals and bands hold what they promise; rebuilds docs/method/coverage.md.

make coverage
.venv/bin/python benches/coverage.py             # print it
.venv/bin/python benches/coverage.py --write     # and keep it
.venv/bin/python benches/coverage.py --experiments 200
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from coverage_tables.bands import bands, twice
from coverage_tables.best_sets import best_sets
from coverage_tables.other_intervals import others
from coverage_tables.simulated import HIGH, LOW, percent
from coverage_tables.speedups import speedups
from coverage_tables.usl import faint, parameters, printed

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "method" / "coverage.md"

#: What the share of X(N*) comes to over experiments with a fitted peak alone, two standard errors
#: from the bound: (0.975 − 0.025) / 0.975.
MOST_ALONE = 97.4

INTRODUCTION = """# Coverage: how often intervals hold what they promise

Made by `make coverage` (benches/coverage.py); nothing here is written by hand. Each share is that
of {experiments} simulated experiments whose nominal 95 % interval contains the truth.

Truth: USL with γ = 1000 and the α and β given; errors lognormal and independent. Levels: *eight*
is N = 1, 2, 4, 8, 12, 16, 24, 32; *five* is N = 1, 2, 4, 8, 16. "5×" has five trials a level.
*open* is the share of experiments where no peak is established (the upper limit of N* is infinite).

X(N*) has an interval only where the fitted β is above 0. An experiment without one is counted by
the same test: do its data contradict the true X(N*)? To leave it out would take away those that
miss the truth on one side, and raise the shares to as much as {most_alone} % where that happens.
"""


def main() -> int:
    """Simulate, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--experiments", type=int, default=2000, help="of each row")
    options = parser.parse_args()
    lines = []
    for line in page(options.experiments):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def page(experiments: int) -> Iterator[str]:
    """The page, line by line."""
    yield from INTRODUCTION.format(experiments=experiments, most_alone=MOST_ALONE).splitlines()
    rows: list[float] = []
    yield from parameters(experiments, rows)
    yield from faint(experiments)
    yield from speedups(experiments, rows)
    yield from best_sets(experiments, rows)
    inside = sum(LOW <= share <= HIGH for share in rows)
    yield f"**{inside} of {len(rows)} shares of these tables lie within 93 to 97 %** (the lowest is"
    yield f"{percent(min(rows))}, the highest {percent(max(rows))}); the standard error of a share"
    own, best = ((0.95 * 0.05 / count) ** 0.5 for count in (experiments, 5 * experiments))
    yield f"is {percent(own)}, of a best set {percent(best)}."
    yield ""
    yield from others(experiments)
    yield from printed(max(experiments // 5, 1))
    yield from bands()
    yield from twice(max(experiments // 10, 1))


if __name__ == "__main__":
    sys.exit(main())
