"""How often the figures of a report hold the truth under noises of two other catalogues
(:mod:`tests.helpers.unseen_noises`, :mod:`tests.helpers.shared_machine_noises`), whose levels may
depend on cell, time and the trial before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from tests.helpers.shared_machine_noises import SHARED
from tests.helpers.unseen_noises import UNSEEN, Unseen, World

from concurve.analysis.comparison import compare_levels
from concurve.findings.cells import CellFindings
from concurve.store.rows import TrialKey
from coverage_tables.printed import BASE_SECONDS, SPEEDUP, Tally, is_praised, is_told, percent
from coverage_tables.simulated_runs import FACTOR, Made, Reading, level_name, run, trials_most

EFFORTS = ("quick", "normal")

#: The bounds of kind noise, and of hard noise by effort: shares of the shown intervals that hold.
HELD_KIND = 0.93
HELD_HARD = {"quick": 0.85, "normal": 0.90}
#: Equal cells are told apart in at most this share of runs.
APART = 0.05
#: The median of the figures is off by at most this share, or by this part of half an interval: of
#: noise that spreads by tens of percent, a median of five is not known to half a percent.
BIAS = 0.005
BIAS_OF_WIDTH = 0.1


class Row(NamedTuple):
    """A noise at an effort, in runs of so many cells."""

    noise: Unseen
    effort: str
    cells: int

    @property
    def name(self) -> str:
        """The row in words."""
        return f"{self.noise.name}, {self.effort}, {self.cells} cells"

    @property
    def held(self) -> float:
        """The share of intervals that must hold."""
        return HELD_KIND if self.noise.group == "kind" else HELD_HARD[self.effort]


ROWS = tuple(
    Row(noise, effort, cells)
    for noise in (*UNSEEN, *SHARED)
    for cells in (2, 8)
    for effort in EFFORTS
)


class Seen(Tally):
    """A tally that counts the speed-ups of which the report says that they depend on the time,
    and those of them whose interval does not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.widened = 0
        self.widened_wrong = 0


def experiments(row: Row, count: int, seed: int) -> Seen:
    """Simulate runs of a row: with a speed-up of 2, and of equal cells."""
    tally = Seen()
    place = [seed, *row.name.encode()]
    for number in range(count):
        _experiment(row, np.random.default_rng([*place, number]), tally)
    return tally


def simulated(row: Row, rng: np.random.Generator, seconds: list[float]) -> tuple[Made, World]:
    """A run whose cells truly take so many seconds, and its noise."""
    world = World(row.noise, rng, trials_most(row.cells, row.effort), row.cells)

    def trial(number: int, key: TrialKey) -> Reading:
        return Reading(world.read(seconds[key.cell] * world.factor(number, key)))

    return run(len(seconds), row.effort, int(rng.integers(1 << 31)), trial), world


def _experiment(row: Row, rng: np.random.Generator, tally: Seen) -> None:
    seconds = [BASE_SECONDS, *[BASE_SECONDS / SPEEDUP] * (row.cells - 1)]
    made, world = simulated(row, rng, seconds)
    tally.runs += 1
    tally.trials += len(made.trials)
    for cell in made.findings.cells:
        centre = world.centre(cell.index)
        tally.centre.add(cell.indicators.get("wall_seconds"), seconds[cell.index] * centre)
        tally.seen += is_told(made.findings, cell)
        if cell.index:
            truth = SPEEDUP * (world.centre(0) / centre if row.noise.moves else 1.0)
            _add_speedup(cell, truth, tally)
    equal, _ = simulated(row, rng, [BASE_SECONDS / SPEEDUP] * row.cells)
    levels = [level_name(cell) for cell in range(row.cells)[-2:]]
    (compared,) = compare_levels(equal.findings, FACTOR, levels).cells
    tally.compared += 1
    tally.apart += compared.verdict in ("faster", "slower")
    tally.praised += is_praised(equal.findings.sentences)


def _add_speedup(cell: CellFindings, truth: float, tally: Seen) -> None:
    held = tally.speedup.held
    tally.speedup.add(cell.indicators.get("speedup"), truth)
    if cell.widened:
        tally.widened += 1
        tally.widened_wrong += tally.speedup.held == held


def misses(row: Row, tally: Seen) -> list[str]:
    """What a row misses of its bounds, in words; three standard errors are allowed."""
    if row.noise.group == "hopeless":
        return []
    found = []
    slack = 3 * (row.held * (1 - row.held) / tally.runs) ** 0.5
    for what, printed in (("centre", tally.centre), ("speed-up", tally.speedup)):
        if printed.coverage < row.held - slack:
            found.append(f"{what} held in {percent(printed.coverage)}")
        # The error of a median is about 1.25 times that of a mean.
        chance = 3 * 1.25 * float(np.std(printed.errors)) / tally.runs**0.5
        if abs(printed.middle) > max(BIAS, BIAS_OF_WIDTH * printed.mean_width) + chance:
            found.append(f"{what} off by {percent(printed.middle)}")
    slack = 3 * (APART * (1 - APART) / tally.compared) ** 0.5
    if not row.noise.moves and not row.noise.mixed:
        for what, count in (("told apart", tally.apart), ("called faster", tally.praised)):
            if count / tally.compared > APART + slack:
                found.append(f"equal cells {what} in {percent(count / tally.compared)}")
    return found


HEADING = (
    "| noise | cells | effort | centre held | off by | speed-up held | off by | told apart "
    "| called faster | seen | time told | trials | ± centre | ± speed-up | missed |\n"
    "|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|"
)


def line(row: Row, tally: Seen) -> str:
    """A row of the table."""
    cells = tally.centre.asked
    missed = "; ".join(misses(row, tally))
    texts = [
        row.noise.name,
        str(row.cells),
        row.effort,
        percent(tally.centre.coverage),
        f"{100 * tally.centre.middle:+.2f} %",
        percent(tally.speedup.coverage),
        f"{100 * tally.speedup.middle:+.2f} %",
        percent(tally.apart / tally.compared),
        percent(tally.praised / tally.compared),
        percent(tally.seen / cells),
        percent(tally.widened / tally.speedup.asked),
        f"{tally.trials / cells:.1f}",
        percent(tally.centre.mean_width),
        percent(tally.speedup.mean_width),
        missed and f"**{missed}**",
    ]
    return f"| {' | '.join(texts)} |"


def tallies(count: int, seed: int, only: str = "") -> Iterator[tuple[Row, Seen]]:
    """Each row whose name contains ``only``, with its tally."""
    for row in ROWS:
        if only in row.name:
            yield row, experiments(row, count, seed)
