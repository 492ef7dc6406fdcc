"""How often the figures of a report hold the truth, over whole simulated runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr
from tests.helpers.noises import DESCRIPTIONS, NOISES, Group, Noise, Path, draw, read

from concurve.analysis.comparison import compare_levels
from concurve.engine.tasks import Tasks
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings
from concurve.findings.run import Finding, TrialFindings
from concurve.stats.centre import STAGED_SHARE, staged
from concurve.store.rows import TrialKey
from coverage_tables.simulated_runs import FACTOR, Made, Reading, level_name, run, trials_most

EFFORTS = ("quick", "normal", "rigorous")

#: Numbers of trials that the user fixes, as ``--repeats`` does.
FIXED = ("5 trials", "12 trials")

#: With so few trials, rough noise has the weaker bounds.
_FEW = ("quick", "5 trials")

#: The first cell, the base, takes so many seconds; the others are the true speed-up times as fast.
BASE_SECONDS = 2.0
SPEEDUP = 2.0

#: Experiments that one task of a process makes.
_CHUNK = 50

#: The seed of `make coverage`; other seeds hold as well.
SEED = 20261122

#: Below this share of printed intervals, their own coverage is that of too few.
_JUDGED_FROM = 0.2

#: A fresh seed fails a share that just keeps its bound as rarely as this; a mean may be off by so
#: many standard errors, because those of few and skewed values are known badly.
_CHANCE = 1e-9
_CHANCE_AT_LEVEL = 1e-3
_ERRORS = 10


class Bounds(NamedTuple):
    """What must hold of a row: shares, and a relative bias."""

    held: float
    withheld: float
    apart: float = 0.05
    bias: float = 0.005


def bounds_of(group: Group, effort: str) -> Bounds:
    """The bounds of a noise of this group at this effort."""
    if group == "even":
        return Bounds(held=0.93, withheld=0.20)
    return Bounds(held=0.85 if effort in _FEW else 0.90, withheld=1.0)


class Row(NamedTuple):
    """One kind of experiment."""

    noise: Noise
    effort: str
    cells: int

    @property
    def name(self) -> str:
        """The row in words."""
        return f"{self.noise.name}, {self.effort}, {self.cells} cells"

    @property
    def bounds(self) -> Bounds:
        """What must hold of it."""
        return bounds_of(self.noise.group, self.effort)

    @property
    def is_lopsided(self) -> bool:
        """Is the median of the figures to be near the truth, and not their mean?"""
        return self.noise.lopsided or self.effort in FIXED

    def runs(self, count: int) -> int:
        """How many runs are made where others have ``count``: fewer of the longest."""
        return count // 4 if self.cells > 2 and self.effort == "rigorous" else count


CELLS = (2, 8)

ROWS = tuple(
    Row(noise, effort, cells)
    for noise in NOISES
    for cells in CELLS
    for effort in (*EFFORTS, *(FIXED if cells == 2 else ()))
)


class Printed:
    """Estimates of one kind: how many there were to be (``asked``), the ``errors`` of those with an
    interval, as logarithms of value over truth, how many of those held the truth, and the sum of
    half their logarithms of high over low."""

    def __init__(self) -> None:
        self.asked = 0
        self.held = 0
        self.width = 0.0
        self.errors: list[float] = []

    def add(self, estimate: Estimate | None, truth: float) -> None:
        """Count an estimate."""
        self.asked += 1
        if estimate is None or estimate.low is None or estimate.high is None:
            return
        self.held += estimate.low <= truth <= estimate.high
        self.errors.append(math.log(estimate.value / truth))
        if estimate.low > 0:
            self.width += math.log(estimate.high / estimate.low) / 2

    def join(self, other: Printed) -> None:
        """Count those of another."""
        self.asked += other.asked
        self.held += other.held
        self.width += other.width
        self.errors += other.errors

    @property
    def shown(self) -> int:
        """How many had an interval."""
        return len(self.errors)

    @property
    def coverage(self) -> float:
        """The share of the shown intervals that hold the truth."""
        return self.held / self.shown if self.shown else math.nan

    @property
    def withheld(self) -> float:
        """The share without an interval."""
        return 1 - self.shown / self.asked if self.asked else 0.0

    @property
    def bias(self) -> float:
        """The mean error."""
        return float(np.mean(self.errors)) if self.errors else 0.0

    @property
    def middle(self) -> float:
        """The median error."""
        return float(np.median(self.errors)) if self.errors else 0.0

    @property
    def mean_width(self) -> float:
        """Half an interval, relative to its value."""
        return self.width / self.shown if self.shown else math.nan


class Tally:
    """What the experiments of a row came to."""

    def __init__(self) -> None:
        self.runs = 0
        self.trials = 0
        self.seen = 0
        self.compared = 0
        self.apart = 0
        self.praised = 0
        self.centre = Printed()
        self.speedup = Printed()

    def join(self, other: Tally) -> None:
        """Count those of another."""
        for name in ("runs", "trials", "seen", "compared", "apart", "praised"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.centre.join(other.centre)
        self.speedup.join(other.speedup)


INTRODUCTION = """## What a report prints, under the noise of real machines

Whole runs, simulated: the protocol of `planning/` asks for each trial and ends the run, and the
analysis of `analysis/` makes the findings that reports print. The base cell truly takes {base:g} s,
the others {other:g} s, so that the true speed-up is {speedup:g}. *{runs}* runs a row, of {cells}
cells each. The true centre of a cell is the median of its noise; where the noise changes with time
(drift, step, every 5th trial), the median over the time of the run itself. Runs of 8 cells at
rigorous effort are a quarter as many. *5 trials*: the user has fixed their number.

- *held*: the share of the printed 95 % intervals that hold the truth; *off by*: the mean of the
  logarithm of figure over truth, or its median where the median of few trials jumps between levels
  (three levels, unequal shares, fixed numbers of trials); *none*: the share of figures that are
  printed without an interval.
- *told apart*: the share of runs of equal cells in which `compare` finds one of two of them faster;
  *called faster*: in which the answer of the report names one that is. Cells are then equal in the
  shape of their noise, too.
- *seen*: the share of cells of which the report says two levels, trials far off, or a new level.
- *trials*: those of a cell; *±*: half of an interval, relative to its figure.

The number of trials of *quick*, *normal* and *rigorous* follows from the pilot's interval, and a
pilot that is narrow by chance ends the run early. So these intervals use {staged} of the error
probability alone (`STAGED_SHARE` of `stats/centre.py`: {level} instead of 95 %); that they hold
here is its reason. Where the user has fixed the number of trials, intervals are at 95 %.

What must hold: log-normal noise, unequal spreads, drift and coarse clocks: {even}, and at most
{withheld} of the intervals withheld. All others: {rough}, or {quick} at quick and with 5 trials, of
the intervals that are shown, and as many of the runs without a wrong one. In every row: *off by* at
most {bias}, *told apart* and *called faster* in at most {apart}; with fixed numbers of trials,
whose tests have just this level, in no more than chance shows of such a share in 1 of 1,000 rows.

{descriptions}
"""


def introduction(runs: int) -> str:
    """What the table shows, and its bounds."""
    even, rough = (bounds_of(group, "normal") for group in ("even", "rough"))
    return INTRODUCTION.format(
        base=BASE_SECONDS,
        other=BASE_SECONDS / SPEEDUP,
        speedup=SPEEDUP,
        runs=runs,
        cells=" or ".join(map(str, CELLS)),
        even=percent(even.held),
        withheld=percent(even.withheld),
        rough=percent(rough.held),
        quick=percent(bounds_of("rough", "quick").held),
        bias=percent(even.bias),
        apart=percent(even.apart),
        staged=percent(STAGED_SHARE),
        level=percent(staged(0.95, True)),
        descriptions=DESCRIPTIONS,
    )


def experiments(row: Row, count: int, seed: int, first: int = 0) -> Tally:
    """Simulate experiments of a row, numbered from ``first``."""
    tally = Tally()
    # The text has the same bytes in every process, unlike its hash.
    place = [seed, *row.name.encode()]
    for number in range(first, first + count):
        _experiment(row, np.random.default_rng([*place, number]), tally)
    return tally


def _experiment(row: Row, rng: np.random.Generator, tally: Tally) -> None:
    seconds = [BASE_SECONDS, *[BASE_SECONDS / SPEEDUP] * (row.cells - 1)]
    path = draw(row.noise, rng, trials_most(row.cells, row.effort), row.cells)
    made = simulated(row, rng, path, seconds)
    tally.runs += 1
    tally.trials += len(made.trials)
    for cell in made.findings.cells:
        truth = seconds[cell.index] * path.centre(len(made.trials), cell.index)
        estimate = cell.indicators.get("wall_seconds")
        tally.centre.add(estimate, truth)
        tally.seen += is_told(made.findings, cell)
        if cell.index:
            tally.speedup.add(cell.indicators.get("speedup"), SPEEDUP)
    _compare_equal(row, rng, tally)


def simulated(row: Row, rng: np.random.Generator, path: Path, seconds: list[float]) -> Made:
    """A run whose cells truly take so many seconds."""

    def trial(number: int, key: TrialKey) -> Reading:
        return Reading(read(row.noise, seconds[key.cell] * path.factor(number, key.cell), rng))

    return run(len(seconds), row.effort, int(rng.integers(1 << 31)), trial)


def is_praised(said: Iterable[Finding]) -> bool:
    """Does a report call a cell faster than another? To say that one seems so, where nothing is
    decided, is no such call."""
    return any(
        "× as fast as" in finding.sentence and "ot decided" not in finding.sentence
        for finding in said
    )


def _compare_equal(row: Row, rng: np.random.Generator, tally: Tally) -> None:
    """A run whose cells are all equal, in the shape of their noise too: does a comparison, or the
    answer of the report, find one of them faster?"""
    wide = row.cells * (2 if row.noise.mixed else 1)
    path = draw(row.noise, rng, trials_most(row.cells, row.effort), wide)
    if row.noise.mixed:
        path = path._replace(own=path.own[:, 1::2], quantiles=path.quantiles[:, 1::2])
    findings = simulated(row, rng, path, [BASE_SECONDS / SPEEDUP] * row.cells).findings
    levels = [level_name(cell) for cell in range(row.cells)[-2:]]
    (cell,) = compare_levels(findings, FACTOR, levels).cells
    tally.compared += 1
    tally.apart += cell.verdict in ("faster", "slower")
    tally.praised += is_praised(findings.sentences)


def is_told(findings: TrialFindings, cell: CellFindings) -> bool:
    """Does the report say of a cell that it has two levels, trials far off, or a level that
    changes in time?"""
    return bool(_is_shaped(cell) or findings.level_change or findings.drift)


def _is_shaped(cell: CellFindings) -> bool:
    return bool(cell.two_levels or cell.slow_tail or cell.fast_tail)


def tallies(
    rows: Iterable[Row], count: int, seed: int, tasks: Tasks
) -> Iterator[tuple[Row, Tally]]:
    """Each row with its tally, in order, computed by ``tasks``."""
    rows = list(rows)
    chunks = [
        [(row, min(_CHUNK, row.runs(count) - at), seed, at)
         for at in range(0, row.runs(count), _CHUNK)]
        for row in rows
    ]  # fmt: skip
    sizes = [len(chunk) for chunk in chunks]
    all_of_them = [task for chunk in chunks for task in chunk]
    yield from _joined(rows, sizes, tasks.map(_task, all_of_them))


def _task(task: tuple[Row, int, int, int]) -> Tally:
    return experiments(*task)


def _joined(
    rows: list[Row], sizes: list[int], found: Iterator[Tally]
) -> Iterator[tuple[Row, Tally]]:
    for row, size in zip(rows, sizes, strict=True):
        tally = Tally()
        for _ in range(size):
            tally.join(next(found))
        yield row, tally


def misses(row: Row, tally: Tally, by_chance: bool = False) -> list[str]:
    """What a row misses of its bounds, in words. ``by_chance``: only what a row that keeps its
    bounds would miss in less than one of a thousand million draws of its seed."""
    bounds, found = row.bounds, []
    for what, printed in (("centre", tally.centre), ("speed-up", tally.speedup)):
        # Those of one run share its noise: they count as one.
        shown = round(tally.runs * (1 - printed.withheld))
        wrong = (printed.shown - printed.held) / printed.asked
        if printed.withheld > bounds.withheld and not (
            by_chance and _is_chance(printed.withheld, bounds.withheld, tally.runs)
        ):
            found.append(f"{what} withheld in {percent(printed.withheld)}")
        if wrong > 1 - bounds.held and not (
            by_chance and _is_chance(wrong, 1 - bounds.held, tally.runs)
        ):
            found.append(f"{what} wrong in {percent(wrong)} of all runs")
        elif (
            1 - printed.withheld >= _JUDGED_FROM
            and printed.coverage < bounds.held
            and not (by_chance and _is_chance(1 - printed.coverage, 1 - bounds.held, shown))
        ):
            found.append(f"{what} held in {percent(printed.coverage)}")
        off = printed.middle if row.is_lopsided else printed.bias
        slack = _ERRORS * _error(printed, shown) if by_chance else 0.0
        is_off = abs(off) > bounds.bias + slack
        if row.is_lopsided:
            # Between two levels in equal shares, the median figure is either by chance.
            beyond = sum(error * off > bounds.bias * abs(off) for error in printed.errors)
            chance = _CHANCE if by_chance else _CHANCE_AT_LEVEL
            is_off = is_off and not _is_chance(beyond / printed.shown, 0.5, shown, chance)
        if 1 - printed.withheld >= _JUDGED_FROM and is_off:
            found.append(f"{what} off by {percent(off)}")
    for what, count in (("told apart", tally.apart), ("called faster", tally.praised)):
        share = count / tally.compared
        # Tests after a fixed number of trials have just this level.
        chance = _CHANCE if by_chance else _CHANCE_AT_LEVEL if row.effort in FIXED else 1.0
        if share > bounds.apart and not _is_chance(share, bounds.apart, tally.compared, chance):
            found.append(f"equal cells {what} in {percent(share)}")
    return found


def _is_chance(share: float, bound: float, runs: int, chance: float = _CHANCE) -> bool:
    """Does a share of ``bound`` come out as this or more, more often than by ``chance``?"""
    return 1 - float(bdtr(math.floor(share * runs + 1e-9) - 1, runs, bound)) > chance


def _error(printed: Printed, runs: int) -> float:
    return float(np.std(printed.errors)) / math.sqrt(max(1, runs)) if printed.errors else 0.0


def percent(share: float) -> str:
    """A share in percent."""
    return "–" if math.isnan(share) else f"{100 * share:.1f} %"


HEADING = (
    "| noise | cells | effort | centre held | off by | none | speed-up held | off by | none "
    "| told apart | called faster | seen | trials | ± centre | ± speed-up | missed |\n"
    "|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|-|"
)


def line(row: Row, tally: Tally) -> str:
    """A row of the table."""
    shares: list[str] = []
    for printed in (tally.centre, tally.speedup):
        shares += [
            percent(printed.coverage),
            f"{100 * (printed.middle if row.is_lopsided else printed.bias):+.2f} %",
            percent(printed.withheld),
        ]
    cells = tally.centre.asked
    shares += [percent(share / tally.compared) for share in (tally.apart, tally.praised)]
    shares += [percent(tally.seen / cells)]
    shares += [f"{tally.trials / cells:.1f}"]
    shares += [percent(tally.centre.mean_width), percent(tally.speedup.mean_width)]
    missed = "; ".join(misses(row, tally))
    texts = [row.noise.name, str(row.cells), row.effort, *shares, missed and f"**{missed}**"]
    return f"| {' | '.join(texts)} |"
