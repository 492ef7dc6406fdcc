#!/usr/bin/env python3
"""How often best sets, ratios, verdicts and change points are right, by simulation.

.venv/bin/python benches/verdicts.py                    # the figures of docs/method, minutes
.venv/bin/python benches/verdicts.py --experiments 100  # a look
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator

import numpy as np

from concurve.stats.best import best_set
from concurve.stats.changes import change_points
from concurve.stats.comparison import LogRatio, Method, compared, compared_in_pairs, directions
from concurve.stats.moments import t_quantile

PILOT, CAP, PRECISION, EFFECT = 5, 30, 0.02, 0.02
SEED = 1

Draw = Callable[[float, float, int], list[float]]

generator = np.random.default_rng(SEED)


def normal(mean: float, cv: float, n: int) -> list[float]:
    """Errors as the tests assume them."""
    return list(mean * (1 + cv * generator.standard_normal(n)))


def lognormal(mean: float, cv: float, n: int) -> list[float]:
    """Skewed, as times are."""
    sigma = math.sqrt(math.log1p(cv * cv))
    return list(mean * generator.lognormal(-sigma * sigma / 2, sigma, n))


def exponential(mean: float, cv: float, n: int) -> list[float]:
    """A floor with a long tail, as times of a disturbed machine are."""
    return list(mean * (1 - cv + cv * generator.exponential(1, n)))


def two_stages(mean: float, cv: float, _: int = PILOT) -> list[float]:
    """As the protocol does at normal effort, up to its cap."""
    pilot = lognormal(mean, cv, PILOT)
    half = t_quantile(0.975, PILOT - 1) * float(np.std(pilot, ddof=1)) / float(np.mean(pilot))
    wanted = math.ceil((half / PRECISION) ** 2)
    return pilot + lognormal(mean, cv, min(CAP, max(PILOT, wanted)) - PILOT)


MEANS = {
    "2 equal": (1.0,) * 2, "4 equal": (1.0,) * 4, "8 equal": (1.0,) * 8, "12 equal": (1.0,) * 12,
    "1, 1.01, 1.02, 1.05, 1.3, 2": (1, 1.01, 1.02, 1.05, 1.3, 2.0),
    "4, 2.2, 1.4, 1.35, 1.36": (4, 2.2, 1.4, 1.35, 1.36),
}  # fmt: skip


def best_sets(experiments: int) -> Iterator[str]:
    """Share of experiments whose set held the best, and its mean size."""
    designs: dict[str, tuple[Draw, int, int | None]] = {
        "normal, 5 trials": (normal, 5, None),
        "normal, 10 trials": (normal, 10, None),
        "lognormal, 5 trials": (lognormal, 5, None),
        "two stages": (two_stages, PILOT, PILOT),
    }
    for name, means in MEANS.items():
        for cv in (0.03, 0.08):
            for design, (draw, n, pilot) in designs.items():
                held = size = 0
                for _ in range(experiments):
                    members = best_set([draw(m, cv, n) for m in means], pilot=pilot).members
                    held += means.index(min(means)) in members
                    size += len(members)
                yield (f"best set | {name} | CV {cv} | {design} | {held / experiments:.3f} "
                       f"| size {size / experiments:.1f}")  # fmt: skip


def ratios(experiments: int) -> Iterator[str]:
    """Share of 95 % intervals that held the true ratio."""
    truth = math.log(1.05)
    methods: tuple[Method, ...] = ("welch", "bootstrap")
    for draw, cv in ((normal, 0.03), (lognormal, 0.3), (exponential, 0.08)):
        for method in methods:
            shares = []
            for n in (5, 8, 12, 20, 30):
                held = 0
                for seed in range(experiments):
                    ratio = compared([draw(1.05, cv, n)], [draw(1, cv, n)], method, seed=seed)
                    assert ratio is not None
                    low, high = ratio.interval()
                    held += low <= truth <= high
                shares.append(f"n={n}: {held / experiments:.3f}")
            yield f"ratio | {draw.__name__} | CV {cv} | {method} | {', '.join(shares)}"


def verdicts(experiments: int) -> Iterator[str]:
    """What the protocol at normal effort says of equal programs, and of one 5 % slower: by the
    trials of two runs (Welch), and by the blocks of one."""
    for cv in (0.005, 0.01, 0.02, 0.03, 0.05, 0.08):
        for method in ("welch", "pairs"):
            false = same = found = 0
            for _ in range(experiments):
                base, again, slower = (two_stages(mean, cv) for mean in (1, 1, 1.05))
                equal, other = (said(x, base, method) for x in (again, slower))
                false += equal in ("higher", "lower")
                same += equal == "same"
                found += other == "higher"
            shares = [f"{count / experiments:.3f}" for count in (false, same, found)]
            yield "verdict | CV {} | {} | false {} | same {} | 5 % found {}".format(
                cv, method, *shares
            )


def said(top: list[float], bottom: list[float], method: str) -> str:
    """The verdict on two cells."""
    if method == "welch":
        ratio: LogRatio | None = compared([top], [bottom], pilots=(PILOT, PILOT))
    else:
        blocks = min(len(top), len(bottom))
        ratio = compared_in_pairs(top[:blocks], bottom[:blocks], PILOT)
    return directions([ratio], EFFECT)[0]


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
    for simulate in (best_sets, ratios, verdicts, changes):
        for line in simulate(experiments):
            print(line, flush=True)


if __name__ == "__main__":
    main()
