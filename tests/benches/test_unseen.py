"""The second and the third catalogue of noises, and their judge."""

from __future__ import annotations

import numpy as np
import pytest
from coverage_tables import unseen
from coverage_tables.simulated_runs import trials_most
from coverage_tables.unseen import Row, Seen

from concurve.estimate import Estimate
from concurve.store.rows import TrialKey
from tests.helpers.shared_machine_noises import SHARED
from tests.helpers.unseen_noises import UNSEEN, Unseen, World, by_name

#: Rows that failed before blocks were asked whether they depend on each other.
LASTING = ("modes that last, 50/50 +12 %", "each cell drifts alone, 3 %")
RUNS = 40


@pytest.mark.parametrize("noise", (*UNSEEN, *SHARED), ids=lambda noise: noise.name)
def test_the_true_centre_is_the_median_of_the_noise(noise: Unseen) -> None:
    """Over many runs, half of each cell's factors lie below what is called the truth of the run."""
    rng = np.random.default_rng(1)
    trials, below, above = 120, np.zeros(2), np.zeros(2)
    for _ in range(60):
        world = World(noise, rng, trials, 2)
        order = np.array([rng.permutation(2) for _ in range(trials // 2)]).ravel()
        made = [
            (int(cell), world.factor(at, TrialKey(int(cell), at // 2, 0)))
            for at, cell in enumerate(order)
        ]
        truths = [world.centre(cell) for cell in range(2)]
        for cell, factor in made:
            below[cell] += factor < truths[cell]
            above[cell] += factor > truths[cell]
    assert below / (below + above) == pytest.approx([0.5, 0.5], abs=0.06)


def test_the_true_centre_of_levels_in_equal_shares_is_the_middle_of_their_gap() -> None:
    noise = next(noise for noise in SHARED if noise.name == "a layout a process, 4 levels")
    world = World(noise, np.random.default_rng(1), 60, 2)
    assert [world.centre(cell) for cell in range(2)] == [1.0, 1.0]


@pytest.mark.parametrize("name", LASTING)
def test_speed_ups_hold_though_each_cell_keeps_a_state(name: str) -> None:
    row = Row(by_name(name), "normal", 2)
    tally = unseen.experiments(row, RUNS, seed=3)
    # 85 % of 40 runs have a standard error of 5.6 %.
    assert tally.speedup.coverage >= 0.72
    assert tally.apart / tally.compared <= 0.25
    assert tally.widened > RUNS // 4, "the report says so"


def test_early_ends_are_seen() -> None:
    row = Row(by_name("1 in 10 ends early, × .55"), "normal", 2)
    tally = unseen.experiments(row, 20, seed=1)
    assert tally.seen / tally.centre.asked > 0.7


@pytest.mark.parametrize("noise", SHARED, ids=lambda noise: noise.name)
def test_a_run_with_the_noise_of_a_shared_machine_is_judged(noise: Unseen) -> None:
    """Each noise goes through protocol and analysis, and its rows through the judge."""
    row = Row(noise, "quick", 2)
    assert row in unseen.ROWS
    tally = unseen.experiments(row, 2, seed=1)
    assert tally.compared == 2 and tally.centre.shown == 4
    assert noise.name in unseen.line(row, tally)


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=5)


def tally_of(wrong: int, apart: int, value: float = 1.0) -> Seen:
    tally = Seen()
    tally.runs = tally.compared = 200
    tally.apart = apart
    for place in range(200):
        low = 1.001 if place < wrong else 0.99
        tally.centre.add(estimate(value, low, 1.01), 1.0)
        tally.speedup.add(estimate(2.0, 1.99, 2.01), 2.0)
    return tally


def test_a_row_outside_of_a_bound_is_named() -> None:
    kind = Row(by_name("log-normal 10 %"), "normal", 2)
    assert not unseen.misses(kind, tally_of(10, 10))
    assert unseen.misses(kind, tally_of(40, 10)) == ["centre held in 80.0 %"]
    assert unseen.misses(kind, tally_of(10, 30)) == ["equal cells told apart in 15.0 %"]
    assert unseen.misses(kind, tally_of(10, 10, 1.008)) == ["centre off by 0.8 %"]
    hopeless = Row(by_name("a level for each cell, 6 %"), "normal", 2)
    assert not unseen.misses(hopeless, tally_of(100, 100))


def test_no_run_has_more_trials_than_were_drawn() -> None:
    row = Row(by_name("log-normal 10 %"), "quick", 2)
    tally = unseen.experiments(row, 3, seed=1)
    assert tally.trials <= 3 * trials_most(2, "quick")
