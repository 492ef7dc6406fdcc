"""The judge of coverage, and a light version of it with a fresh seed."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

import numpy as np
import pytest
from coverage_tables import printed
from coverage_tables.printed import Row, Tally
from coverage_tables.simulated_runs import Reading, run, trials_most
from scipy.special import bdtrc

from concurve.estimate import Estimate
from concurve.findings.run import Finding
from tests.analysis.message_kinds import sentences_of
from tests.helpers.counts import few_or_many
from tests.helpers.noises import NOISES, Noise, draw, read

#: Enough to see what is grossly wrong in a row; all rows together show a smaller loss. If intervals
#: hold the truth in 85 %, then 20 runs a row notice it in nine of ten cases, 30 in 19 of 20.
RUNS = 20
MANY_RUNS = 100

ROWS = [row for row in printed.ROWS if row.cells == 2 and row.effort in ("quick", "normal")]

#: All rows together: of runs that hold the truth in just as many, fewer than one in a million fail.
POOLED_LEAST = 0.93
CHANCE = 1e-6


@pytest.fixture(scope="module")
def seed() -> int:
    return random.SystemRandom().randrange(1 << 32)


@pytest.fixture(scope="module", params=few_or_many(RUNS, MANY_RUNS))
def tallies(request: pytest.FixtureRequest, seed: int) -> dict[Row, Tally]:
    return {row: printed.experiments(row, request.param, seed) for row in ROWS}


def lost(tallies: Mapping[Row, Tally]) -> list[str]:
    """Which intervals hold the truth too rarely over all rows of a group, in words. The cells of a
    run share its noise: they count as one."""
    said = []
    for group in ("even", "rough"):
        own = [tally for row, tally in tallies.items() if row.noise.group == group]
        for what in ("centre", "speedup"):
            kind = [(getattr(tally, what), tally.runs) for tally in own]
            shown = sum(runs * one.shown / one.asked for one, runs in kind)
            wrong = sum(runs * (one.shown - one.held) / one.asked for one, runs in kind)
            if wrong and bdtrc(math.ceil(wrong) - 1, round(shown), 1 - POOLED_LEAST) < CHANCE:
                said.append(f"{group}: {what} held in {1 - wrong / shown:.3f} of {shown:.0f} runs")
    return said


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_what_is_printed_holds_under_fresh_noise(
    noise: Noise, tallies: Mapping[Row, Tally], seed: int
) -> None:
    """Rows that just keep their bounds fail together in less than one of a million runs."""
    for row, tally in tallies.items():
        if row.noise is noise:
            assert not printed.misses(row, tally, by_chance=True), f"{row.name}, seed {seed}"


def test_all_rows_together_hold_under_fresh_noise(tallies: Mapping[Row, Tally], seed: int) -> None:
    assert not lost(tallies), f"seed {seed}"


@pytest.mark.parametrize(("held", "is_lost"), [(0.95, False), (0.85, True)])
@pytest.mark.parametrize("what", ["centre", "speedup"])
@pytest.mark.parametrize("group", ["even", "rough"])
def test_a_loss_of_coverage_is_noticed(group: str, what: str, held: float, is_lost: bool) -> None:
    rng = random.Random(1)
    made = {}
    for row in ROWS:
        share = held if row.noise.group == group else 0.95
        good = [rng.random() < share for _ in range(RUNS)]
        centres = [GOOD if one or what != "centre" else WRONG for one in good]
        made[row] = tally_of(centres, [TWICE if one or what == "centre" else GOOD for one in good])
    assert bool(lost(made)) is is_lost


def test_a_row_has_the_same_runs_for_the_same_seed() -> None:
    row = ROWS[0]
    first, again, other = (printed.experiments(row, 2, seed) for seed in (1, 1, 2))
    assert first.centre.errors == again.centre.errors != other.centre.errors


def test_parts_of_a_row_add_up_to_it() -> None:
    row = ROWS[0]
    whole, parts = printed.experiments(row, 4, 1), Tally()
    for start in (0, 2):
        parts.join(printed.experiments(row, 2, 1, start))
    assert (parts.runs, parts.trials, parts.apart) == (whole.runs, whole.trials, whole.apart)
    assert parts.speedup.held == whole.speedup.held
    assert parts.centre.errors == whole.centre.errors
    assert parts.centre.mean_width == pytest.approx(whole.centre.mean_width)


def estimate(value: float, low: float | None, high: float | None) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=5)


def tally_of(centres: list[Estimate], speedups: list[Estimate], apart: int = 0) -> Tally:
    tally = Tally()
    tally.runs = tally.compared = len(centres)
    tally.apart = apart
    for figure in centres:
        tally.centre.add(figure, 1.0)
    for figure in speedups:
        tally.speedup.add(figure, 2.0)
    return tally


GOOD, WRONG, NONE = (
    estimate(1.0, 0.9, 1.1),
    estimate(1.0, 1.001, 1.1),
    estimate(1.0, None, None),
)
TWICE = estimate(2.0, 1.9, 2.1)
EVEN = Row(next(noise for noise in NOISES if noise.group == "even"), "normal", 2)
ROUGH = Row(next(noise for noise in NOISES if noise.group == "rough"), "normal", 2)


def test_a_row_within_its_bounds_misses_nothing() -> None:
    assert not printed.misses(EVEN, tally_of([GOOD] * 95 + [WRONG] * 5, [TWICE] * 100, apart=5))


@pytest.mark.parametrize(
    ("row", "centres", "speedups", "apart", "said"),
    [
        (EVEN, [GOOD] * 92 + [WRONG] * 8, [TWICE] * 100, 0, "centre wrong"),
        (EVEN, [GOOD] * 100, [TWICE] * 92 + [GOOD] * 8, 0, "speed-up wrong"),
        (EVEN, [GOOD] * 79 + [NONE] * 21, [TWICE] * 100, 0, "centre withheld in 21"),
        (ROUGH, [GOOD] * 35 + [WRONG] * 5 + [NONE] * 60, [TWICE] * 100, 0, "centre held in 87.5"),
        (EVEN, [estimate(1.006, 0.9, 1.1)] * 100, [TWICE] * 100, 0, "centre off by 0.6"),
        (EVEN, [GOOD] * 100, [TWICE] * 100, 6, "told apart in 6.0"),
    ],
)
def test_a_row_outside_of_a_bound_is_named(
    row: Row, centres: list[Estimate], speedups: list[Estimate], apart: int, said: str
) -> None:
    assert any(said in text for text in printed.misses(row, tally_of(centres, speedups, apart)))


def test_the_median_of_figures_on_two_equal_levels_is_no_miss() -> None:
    """It is one of them by chance; but where most figures lie on one side, that is a bias."""
    row = Row(ROUGH.noise, "5 trials", 2)
    low, high = estimate(0.93, 0.9, 1.1), estimate(1.07, 0.9, 1.1)
    assert not printed.misses(row, tally_of([low] * 96 + [high] * 104, [TWICE] * 200))
    (missed,) = printed.misses(row, tally_of([low] * 60 + [high] * 140, [TWICE] * 200))
    assert missed == "centre off by 6.8 %"


def test_what_a_report_calls_faster_is_noticed_as_it_is_worded_today() -> None:
    assert printed.is_praised(sentences_of("gain"))
    assert not printed.is_praised(sentences_of("no-gain"))


def test_what_seems_best_where_nothing_is_decided_is_called_no_faster() -> None:
    said = "Not decided: 4 threads seem best, 1.02× as fast as 1 [0.91, 1.15]; 1 may be as good."
    assert not printed.is_praised([Finding(kind="answer", sentence=said)])


def test_withheld_intervals_of_rough_noise_are_no_miss() -> None:
    assert not printed.misses(ROUGH, tally_of([NONE] * 100, [TWICE] * 100))


def test_chance_excuses_little_and_what_is_gross_is_named() -> None:
    little = tally_of([GOOD] * 92 + [WRONG] * 8, [TWICE] * 100, apart=7)
    assert printed.misses(EVEN, little)
    assert not printed.misses(EVEN, little, by_chance=True)
    gross = tally_of([GOOD] * 60 + [WRONG] * 40, [TWICE] * 100, apart=40)
    assert len(printed.misses(EVEN, gross, by_chance=True)) == 2


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_the_true_centre_is_the_median_of_the_noise(noise: Noise) -> None:
    """Over many long runs, half of each cell's factors lie below what is called the truth."""
    rng = np.random.default_rng(1)
    trials, runs = 200, 200
    below = np.zeros(2)
    for _ in range(runs):
        path = draw(noise, rng, trials, 2)
        for cell in range(2):
            truth = path.centre(trials, cell)
            below[cell] += sum(path.factor(at, cell) < truth for at in range(trials))
    assert below / (trials * runs) == pytest.approx([0.5, 0.5], abs=0.02)


def test_common_factors_hit_all_cells_at_the_same_time() -> None:
    drift = next(noise for noise in NOISES if noise.common is not None)
    path = draw(drift, np.random.default_rng(1), 10, 2)
    assert path.common is not None
    for at in range(10):
        for cell in range(2):
            assert path.factor(at, cell) == path.own[at, cell] * path.common[at]


def test_a_coarse_clock_reads_whole_ticks_without_bias() -> None:
    rng = np.random.default_rng(1)
    for noise in (noise for noise in NOISES if noise.tick):
        readings = [read(noise, 1.0 + 0.1 * float(rng.random()), rng) for _ in range(4000)]
        ticks = [reading / noise.tick for reading in readings]
        assert all(math.isclose(tick, round(tick)) for tick in ticks)
        assert sum(readings) / len(readings) == pytest.approx(1.05, rel=0.003)


def test_a_run_is_what_the_protocol_asks_for() -> None:
    """Each trial that the protocol names is made once, a redo included, and analysed."""
    said: list[str] = []

    def trial(at: int, key: object) -> Reading:
        said.append(str(key))
        return Reading(1.0 + 0.01 * (at % 3), "contaminated" if at == 3 else "ok", "steal")

    made = run(2, "quick", 7, trial)
    assert len(made.trials) == len(said) == made.findings.run.trials <= trials_most(2, "quick")
    assert made.findings.run.rejected == 1
    assert [cell.indicators["wall_seconds"].n for cell in made.findings.cells] == [5, 5]
