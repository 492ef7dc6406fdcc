#!/usr/bin/env python3
"""How often best sets, comparisons, claims and change points are right, by simulation.

.venv/bin/python benches/verdicts.py                    # the figures of docs/method, minutes
.venv/bin/python benches/verdicts.py --experiments 100  # a look

What is said of a run goes through the real plan, protocol and analysis
(tests/helpers/simulated.py).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.helpers.simulated import JUDGED, copies

from concurve.analysis.comparison import compare_levels, compare_runs
from concurve.definition.study import Claim, EffortName
from concurve.stats.changes import change_points

EFFORTS: tuple[EffortName, ...] = ("quick", "normal")
SEED = 1

generator = np.random.default_rng(SEED)


def comparisons(experiments: int) -> Iterator[str]:
    """Two levels of a run, and two runs: equal, and one 5 % slower."""
    for effort in EFFORTS:
        for kind in JUDGED:
            counts = dict.fromkeys(("false", "same", "found", "held", "between"), 0)
            trials = 0
            for seed in range(experiments):
                run = copies(effort, seed, kind, (1.0, 1.0, 1.05))
                equal, slower = compare_levels(run, "copy").cells
                assert equal.ratio is not None
                assert equal.ratio.low is not None
                assert equal.ratio.high is not None
                counts["false"] += equal.verdict in ("faster", "slower")
                counts["same"] += equal.verdict == "same"
                counts["held"] += equal.ratio.low <= 1 <= equal.ratio.high
                counts["found"] += slower.verdict == "slower"
                trials += equal.ratio.n
                other = copies(effort, experiments + seed, kind, (1.0, 1.0, 1.05))
                across = compare_runs([run], [other]).cells[0]
                counts["between"] += across.verdict in ("faster", "slower")
            share = {name: f"{count / experiments:.3f}" for name, count in counts.items()}
            yield (
                f"| {effort} | {kind} | {trials / experiments:.0f} | {share['false']} "
                f"| {share['same']} | {share['held']} | {share['found']} | {share['between']} |"
            )


SETS = {
    "2 equal": (1.0,) * 2, "4 equal": (1.0,) * 4, "8 equal": (1.0,) * 8,
    "1, 1.01, 1.02, 1.05, 1.3, 2": (1, 1.01, 1.02, 1.05, 1.3, 2.0),
    "4, 2.2, 1.4, 1.35, 1.36": (4, 2.2, 1.4, 1.35, 1.36),
}  # fmt: skip


def best_sets(experiments: int) -> Iterator[str]:
    """Share of runs whose set held the best, and its mean size."""
    for name, slower in SETS.items():
        first = slower.index(min(slower)) + 1
        for kind in JUDGED:
            found = []
            for effort in EFFORTS:
                held = size = 0.0
                for seed in range(experiments):
                    best = copies(effort, seed, kind, slower).best_overall
                    assert best is not None
                    held += {"copy": first} in best.settings
                    size += len(best.settings)
                found.append(f"{held / experiments:.3f} ({size / experiments:.1f})")
            yield f"| {name} | {kind} | {' | '.join(found)} |"


def claims(experiments: int) -> Iterator[str]:
    """Share of runs with a wrong verdict among 14 claims of which none is true or false by more
    than nothing, and the share of claims that are found to be true at a bound 5 % below the
    truth."""
    cells = [{"copy": number} for number in range(1, 7)]
    at_the_bound, below = (
        [
            Claim(
                id=f"c{number}",
                says="",
                kind="ratio",
                test={"of": of, "over": over, "at_least": bound},
            )
            for number, (of, over) in enumerate((a, b) for a in cells for b in cells if a != b)
        ][:14]
        for bound in (1.0, 0.95)
    )
    for effort in EFFORTS:
        for kind in JUDGED:
            wrong = found = 0
            for seed in range(experiments):
                run = copies(effort, seed, kind, (1.0,) * 6, at_the_bound)
                wrong += any(item.verdict in ("supported", "refuted") for item in run.claims)
                run = copies(effort, seed, kind, (1.0,) * 6, below)
                found += sum(item.verdict == "supported" for item in run.claims)
            yield (
                f"| {effort} | {kind} | {wrong / experiments:.3f} "
                f"| {found / 14 / experiments:.2f} |"
            )


def changes(experiments: int) -> Iterator[str]:
    """False alarms in series of equal runs, and steps of 5 % found to one run."""
    shapes: dict[str, Callable[[int], np.ndarray]] = {
        "normal": lambda n: generator.normal(0, 0.01, n),
        "t3": lambda n: 0.01 * generator.standard_t(3, n),
    }
    for n in (8, 12, 20, 40):
        for name, errors in shapes.items():
            step, false, found = int(0.6 * n), 0, 0
            for _ in range(experiments):
                false += bool(change_points(list(np.exp(errors(n)))))
                moved = np.exp(errors(n) + 0.05 * (np.arange(n) >= step))
                found += any(abs(c.start - step) <= 1 for c in change_points(list(moved)))
            yield (f"change | {n} runs | {name} | false {false / experiments:.3f} "
                   f"| found {found / experiments:.3f}")  # fmt: skip


def main() -> None:
    """Print a line for each simulated situation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--experiments", type=int, default=1000)
    experiments = parser.parse_args().experiments
    for simulate in (comparisons, best_sets, claims, changes):
        for line in simulate(experiments):
            print(line, flush=True)


if __name__ == "__main__":
    main()
