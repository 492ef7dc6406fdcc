"""A/A: how often a program differs from itself, and how often a slow-down of 5 % is found."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from measuring.figures import Bound, Figure
from measuring.running import busy_iterations, scratch, target
from measuring.showing import alone

import concurve
from concurve.analysis.comparison import compare_levels
from concurve.estimate import Estimate
from concurve.terms import Level

FALSE_MAX = 0.05
FOUND_MIN = 0.90
SLOWER = 1.05
TRIAL_MS = 20

Verdicts = Counter[str]


def figures(quick: bool) -> Iterator[Figure]:
    """Half of the comparisons with a steady program, half with one that varies from run to run;
    then the steady one against itself with 5 % more to do."""
    pairs = 1 if quick else 100
    # A smoke run shows that all of it runs: on a busy machine, an effort would take a minute.
    asked, repeats = ("of 3 trials", 3) if quick else ("at normal effort", None)
    work = busy_iterations(TRIAL_MS)
    steady = ["busy", "--iterations", str(work)]
    noisy = ["noisy", "--mean-ms", str(TRIAL_MS), "--cv", "0.03"]
    counts = {
        name: verdicts(target(*command), "copy", ("a", "b"), pairs, repeats)
        for name, command in (("busy", steady), ("noisy", noisy))
    }
    yield _share(
        "A/A: a program found different from itself",
        f"{2 * pairs} runs {asked} over a factor that changes nothing; "
        + "; ".join(f"{name}: {_words(said)}" for name, said in counts.items()),
        counts["busy"] + counts["noisy"],
        ("faster", "slower"),
        Bound(high=FALSE_MAX, counted=True),
    )
    levels = work, round(work * SLOWER)
    command = target("busy", "--iterations", "{iterations}")
    found = verdicts(command, "iterations", levels, pairs, repeats)
    yield _share(
        "A/B: a slow-down of 5 % found",
        f"{found.total()} runs {asked} with 5 % more to do; {_words(found)}",
        found,
        ("slower",),
        Bound(low=FOUND_MIN, counted=True),
    )


def verdicts(
    command: Sequence[str],
    factor: str,
    levels: tuple[Level, Level],
    runs: int,
    repeats: int | None,
) -> Verdicts:
    """Measure both levels, interleaved, in many runs; return the verdict of each on the second.
    ``repeats``: trials of each; without, as many as normal effort asks for."""
    said: Verdicts = Counter()
    with scratch() as folder:
        for seed in range(runs):
            run = concurve.sweep(
                command,
                {factor: levels},
                env={"AA": f"{{{factor}}}"},  # where nothing else uses it, nothing uses this either
                effort="normal",
                repeats=repeats,
                seed=seed,
                db=str(folder / "aa.db"),
            )
            said[compare_levels(run.findings, factor).cells[0].verdict] += 1
    return said


def _share(name: str, how: str, said: Verdicts, counted: tuple[str, ...], bound: Bound) -> Figure:
    found, n = sum(said[verdict] for verdict in counted), said.total()
    low, high = _wilson(found, n)
    return Figure(name, how, Estimate(value=found / n, low=low, high=high, n=n), bound)


def _wilson(found: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    centre = (found + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * (found * (n - found) / n + z**2 / 4) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def _words(said: Verdicts) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in said.most_common())


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
