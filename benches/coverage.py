#!/usr/bin/env python3
"""How often what is printed holds the truth; rebuilds docs/method/coverage.md.

make coverage
.venv/bin/python benches/coverage.py                 # print it
.venv/bin/python benches/coverage.py --write         # and keep it
.venv/bin/python benches/coverage.py --runs 200 --only runs --jobs 1
.venv/bin/python benches/coverage.py --seed 7        # other draws
.venv/bin/python benches/coverage.py --ray 10.0.0.11:6379    # on all CPUs of a Ray cluster

Exits with 1 and names the rows that miss a bound.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from coverage_tables import printed, usl
from coverage_tables.bands import bands, twice, within_levels
from coverage_tables.best_sets import best_sets
from coverage_tables.other_intervals import others
from coverage_tables.simulated import HIGH, LOW, percent
from coverage_tables.special import special

from concurve.engine.tasks import Processes, Tasks
from concurve.hosts.ray_cluster import tasks_at

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "method" / "coverage.md"

#: What the share of X(N*) comes to over experiments with a fitted peak alone, two standard errors
#: from the bound: (0.975 − 0.025) / 0.975.
MOST_ALONE = 97.4

TITLE = """# Coverage: how often what is printed holds the truth

Made by `make coverage` (benches/coverage.py); nothing here is written by hand. The program exits
with 1 where a row misses a bound; `--seed` draws other noise than that of this page.
"""

OF_MODELS = """# Scaling models

Each share is that of {experiments} simulated experiments whose nominal 95 % interval contains the
truth.

Truth: USL with γ = 1000 and the α and β given; errors lognormal and independent. Levels: *eight*
is N = 1, 2, 4, 8, 12, 16, 24, 32; *five* is N = 1, 2, 4, 8, 16. "5×" has five trials a level.
*open* is the share of experiments where no peak is established (the upper limit of N* is infinite).

X(N*) has an interval only where the fitted β is above 0. An experiment without one is counted by
the same test: do its data contradict the true X(N*)? To leave it out would take away those that
miss the truth on one side, and raise the shares to as much as {most_alone} % where that happens.
"""


def main() -> int:
    """Simulate, print, write, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs of each row")
    parser.add_argument("--experiments", type=int, default=2000, help="of each row of the models")
    parser.add_argument("--seed", type=int, default=printed.SEED, help="of the simulated runs")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="on this Ray cluster; the same checkout on each host"
    )
    parser.add_argument("--only", choices=("runs", "models"), help="one half of the page")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write needs the whole page: leave out --only")
    lines, missed = [TITLE], []
    print(TITLE)
    if options.only != "models":
        with tasks_of(options.ray, options.jobs) as tasks:
            for text, miss in runs(options.runs, options.seed, tasks):
                print(text, flush=True)
                lines.append(text)
                missed += [miss] if miss else []
    if options.only != "runs":
        for text in models(options.experiments):
            print(text, flush=True)
            lines.append(text)
    if options.write:
        PAGE.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")
    for miss in missed:
        print(f"missed: {miss}", file=sys.stderr)
    return 1 if missed else 0


@contextlib.contextmanager
def tasks_of(address: str | None, jobs: int) -> Iterator[Tasks]:
    """What computes the simulated runs: the results are the same."""
    if address is None:
        yield Processes(jobs)
        return
    with tasks_at(address, [str(ROOT), str(ROOT / "benches")]) as tasks:
        yield tasks


def runs(count: int, seed: int, tasks: Tasks) -> Iterator[tuple[str, str]]:
    """Simulated runs: lines of the page, each with what it misses."""
    yield printed.introduction(count), ""
    yield printed.HEADING, ""
    wrong = 0
    for row, tally in printed.tallies(printed.ROWS, count, seed, tasks):
        missed = "; ".join(printed.misses(row, tally))
        wrong += bool(missed)
        yield printed.line(row, tally), missed and f"{row.name}: {missed}"
    held = len(printed.ROWS) - wrong
    yield f"\n**{held} of {len(printed.ROWS)} rows keep their bounds.**\n", ""
    for judged in special(count, seed):
        yield judged.text, judged.missed


def models(experiments: int) -> Iterator[str]:
    """Scaling models, best sets and bands, line by line."""
    yield from OF_MODELS.format(experiments=experiments, most_alone=MOST_ALONE).splitlines()
    yield ""
    rows: list[float] = []
    yield from usl.parameters(experiments, rows)
    yield from usl.faint(experiments)
    yield from best_sets(experiments, rows)
    inside = sum(LOW <= share <= HIGH for share in rows)
    yield f"**{inside} of {len(rows)} shares of these tables lie within 93 to 97 %** (the lowest is"
    yield f"{percent(min(rows))}, the highest {percent(max(rows))}); the standard error of a share"
    own, best = ((0.95 * 0.05 / count) ** 0.5 for count in (experiments, 5 * experiments))
    yield f"is {percent(own)}, of a best set {percent(best)}."
    yield ""
    yield from others(experiments)
    yield from usl.printed(max(experiments // 5, 1))
    yield from bands()
    yield from twice(max(experiments // 10, 1))
    yield from within_levels(max(experiments // 10, 1))


if __name__ == "__main__":
    sys.exit(main())
