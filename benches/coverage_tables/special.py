"""What simulated runs must show beside their intervals: precision that is reached, slow-downs that
are found, and that redoing disturbed trials favours no cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from tests.helpers.noises import Path, by_name, draw

from concurve.analysis.comparison import compare_levels
from concurve.store.rows import TrialKey
from coverage_tables.printed import BASE_SECONDS, SPEEDUP, Printed, percent
from coverage_tables.simulated_runs import FACTOR, Reading, run, trials_most

SLOWER = 1.05
FOUND_LEAST = 0.90
PRECISION = 0.01

#: Share of the trials that something disturbs, and by how much they are then longer on average.
DISTURBED = 0.10
LONGER = 0.15


class Judged(NamedTuple):
    """A line of the page, and what it misses (empty: nothing)."""

    text: str
    missed: str = ""


def special(count: int, seed: int) -> Iterator[Judged]:
    """All of them."""
    yield Judged("## Small differences\n")
    yield found_slower(count, seed)
    yield precise(count, seed)
    yield Judged(REDONE)
    for detected in DETECTIONS:
        yield redone(detected, count, seed)
    yield Judged("")


def found_slower(count: int, seed: int) -> Judged:
    """How often `compare` finds a slow-down of 5 % in trials with a spread of 2 %."""
    found, trials, noise = 0, 0, by_name("log-normal 2 %")
    for number in range(count):
        rng = np.random.default_rng([seed, 1, number])
        path = draw(noise, rng, trials_most(2, "normal"), 2)

        def trial(at: int, key: TrialKey, path: Path = path) -> Reading:
            return Reading((1.0, SLOWER)[key.cell] * path.factor(at, key.cell))

        made = run(2, "normal", int(rng.integers(1 << 31)), trial)
        trials += len(made.trials)
        (cell,) = compare_levels(made.findings, FACTOR).cells
        found += cell.verdict == "slower"
    share = found / count
    return Judged(
        f"- A slow-down of 5 % is found in **{percent(share)}** of {count} runs at normal effort, "
        f"log-normal with a spread of 2 % ({trials / count / 2:.1f} trials a cell; at least "
        f"{percent(FOUND_LEAST)}).",
        "" if share >= FOUND_LEAST else f"slow-downs of 5 % found in {percent(share)}",
    )


def precise(count: int, seed: int) -> Judged:
    """Which precision rigorous effort reaches where trials have a spread of 2 %."""
    centre, reached, trials, noise = Printed(), 0, 0, by_name("log-normal 2 %")
    for number in range(count):
        rng = np.random.default_rng([seed, 2, number])
        path = draw(noise, rng, trials_most(2, "rigorous"), 2)

        def trial(at: int, key: TrialKey, path: Path = path) -> Reading:
            return Reading(path.factor(at, key.cell))

        made = run(2, "rigorous", int(rng.integers(1 << 31)), trial)
        trials += len(made.trials)
        for cell in made.findings.cells:
            centre.add(cell.indicators.get("wall_seconds"), 1.0)
            reached += cell.stop_reason.startswith("enough for the spread")
    share, width = reached / 2 / count, centre.mean_width
    missed = [] if width <= PRECISION else [f"rigorous reaches ±{percent(width)}"]
    missed += [] if share >= FOUND_LEAST else [f"precision reached in {percent(share)}"]
    return Judged(
        f"- Rigorous effort reaches **±{percent(width)}** on average with a spread of 2 % (at most "
        f"±{percent(PRECISION)}), with {trials / count / 2:.1f} trials a cell; in "
        f"{percent(share)} of the cells it ends with the precision reached.",
        "; ".join(missed),
    )


class Detection(NamedTuple):
    """With what probability the cause of a disturbance is read in each of the two cells."""

    words: str
    shares: Sequence[float]


DETECTIONS = (
    Detection("in no cell", (0.0, 0.0)),
    Detection("in both cells", (0.9, 0.9)),
    Detection("in the base alone", (0.9, 0.0)),
    Detection("in the other cell alone", (0.0, 0.9)),
)

REDONE = f"""
## Redoing disturbed trials

Something disturbs {percent(DISTURBED)} of the trials, which are longer by an exponentially
distributed part with a mean of {percent(LONGER)}, beside a log-normal spread of 2 %. The cause is
read with a probability that depends on the cell, as waiting for a CPU tells of other programs only
where a cell leaves CPUs idle; and the longer the disturbance, the likelier. The truth is that of a
quiet machine. Normal effort; bounds as above.

| the cause is read | centre held | off by | speed-up held | off by | trials made | missed |
|-|-|-|-|-|-|-|"""


def redone(detection: Detection, count: int, seed: int) -> Judged:
    """What a run prints where disturbed trials are found in some cells."""
    centre, speedup, trials, noise = Printed(), Printed(), 0, by_name("log-normal 2 %")
    seconds = (BASE_SECONDS, BASE_SECONDS / SPEEDUP)
    for number in range(count):
        rng = np.random.default_rng([seed, 3, DETECTIONS.index(detection), number])
        path = draw(noise, rng, trials_most(2, "normal"), 2)

        def trial(
            at: int, key: TrialKey, path: Path = path, rng: np.random.Generator = rng
        ) -> Reading:
            quiet = seconds[key.cell] * path.factor(at, key.cell)
            if rng.random() >= DISTURBED:
                return Reading(quiet)
            longer = rng.exponential(LONGER)
            likely = detection.shares[key.cell] * (1 - np.exp(-longer / (LONGER / 5)))
            if rng.random() < likely:
                return Reading(quiet * (1 + longer), "contaminated", "steal")
            return Reading(quiet * (1 + longer))

        made = run(2, "normal", int(rng.integers(1 << 31)), trial)
        trials += len(made.trials)
        for cell in made.findings.cells:
            centre.add(cell.indicators.get("wall_seconds"), seconds[cell.index])
        speedup.add(made.findings.cells[1].indicators.get("speedup"), SPEEDUP)
    missed = []
    for what, printed in (("centre", centre), ("speed-up", speedup)):
        if printed.shown and printed.coverage < 0.90:
            missed.append(f"{what} held in {percent(printed.coverage)}")
        if printed.shown and abs(printed.bias) > 0.005:
            missed.append(f"{what} off by {percent(printed.bias)}")
    texts = [detection.words]
    for printed in (centre, speedup):
        texts += [percent(printed.coverage), f"{100 * printed.bias:+.2f} %"]
    words = "; ".join(missed)
    texts += [f"{trials / count / 2:.1f}", words and f"**{words}**"]
    where = f"cause read {detection.words}: "
    return Judged(f"| {' | '.join(texts)} |", words and where + words)
