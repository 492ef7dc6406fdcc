"""Means and their differences against published values, and their coverage by simulation."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from concurve.definition.study import Rules
from concurve.estimate import Estimate
from concurve.planning.plan import Plan, make_plan
from concurve.planning.protocol import Protocol, Stop
from concurve.stats.means import mean_difference, mean_estimate
from concurve.stats.moments import t_quantile
from concurve.store.rows import Outcome
from tests.helpers.fakes import small_study

#: A coverage of 95 % in 2000 simulations has a standard error of 0.5 %.
SIMULATIONS = 2000


@pytest.mark.parametrize(
    ("probability", "df", "value"),
    # Student's table as printed everywhere.
    [(0.975, 1, 12.706), (0.975, 4, 2.776), (0.975, 9, 2.262), (0.975, 30, 2.042),
     (0.95, 4, 2.132), (0.995, 4, 4.604)],
)  # fmt: skip
def test_quantiles_of_student(probability: float, df: float, value: float) -> None:
    assert t_quantile(probability, df) == pytest.approx(value, abs=5e-4)
    assert t_quantile(probability, df) == pytest.approx(stats.t.ppf(probability, df), rel=1e-9)


def test_the_interval_of_a_mean_is_the_textbooks() -> None:
    """NIST/SEMATECH e-Handbook §1.3.5.2, ZARR13.DAT: the mean of 195 values, 9.261460 with
    standard deviation 0.02278881, has the 95 % interval 9.258242 to 9.264679."""
    rng = np.random.default_rng(1)
    raw = rng.normal(size=195)
    raw = (raw - raw.mean()) / raw.std(ddof=1) * 0.02278881 + 9.261460
    estimate = mean_estimate(raw.tolist(), "mV")
    assert estimate.low == pytest.approx(9.258242, abs=1e-6)
    assert estimate.high == pytest.approx(9.264679, abs=1e-6)
    assert (estimate.n, estimate.unit, estimate.confidence) == (195, "mV", 0.95)


@pytest.mark.parametrize("n", [2, 3, 5, 30])
def test_the_interval_of_a_mean_is_scipys(n: int) -> None:
    values = np.random.default_rng(n).normal(10, 1, n).tolist()
    low, high = stats.t.interval(0.95, n - 1, np.mean(values), stats.sem(values))
    estimate = mean_estimate(values)
    assert estimate.low == pytest.approx(low)
    assert estimate.high == pytest.approx(high)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 20), (30, 30)])
def test_the_interval_of_a_difference_is_scipys(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    top, bottom = rng.normal(8, 1, n).tolist(), rng.normal(2, 3, m).tolist()
    found = mean_difference(top, bottom, "ns")
    expected = stats.ttest_ind(top, bottom, equal_var=False).confidence_interval(0.95)
    assert found.value == pytest.approx(np.mean(top) - np.mean(bottom))
    assert found.low == pytest.approx(expected.low)
    assert found.high == pytest.approx(expected.high)
    assert (found.n, found.unit) == (n, "ns")


def test_equal_values_have_an_interval_without_width() -> None:
    found = mean_difference([2.0, 2.0], [0.5, 0.5])
    assert (found.low, found.value, found.high) == (1.5, 1.5, 1.5)


def test_a_single_value_has_no_interval() -> None:
    alone = mean_estimate([3.0])
    assert (alone.value, alone.low, alone.high) == (3.0, None, None)
    apart = mean_difference([3.0], [1.0, 2.0])
    assert (apart.value, apart.low, apart.high, apart.n) == (1.5, None, None, 1)


def test_a_mean_of_what_cannot_be_negative_has_no_bound_below_zero() -> None:
    assert mean_estimate([0.0, 0.0, 9.0]).low == 0.0
    assert mean_difference([0.0, 0.0, 9.0], [0.0, 0.0, 9.0]).low < 0.0  # type: ignore[operator]


def holds(estimate: Estimate, truth: float) -> bool:
    assert estimate.low is not None and estimate.high is not None
    return estimate.low <= truth <= estimate.high


@pytest.mark.parametrize(("n", "m", "cv"), [(5, 5, 0.05), (5, 20, 0.05), (10, 10, 0.2)])
def test_intervals_cover_at_their_level(n: int, m: int, cv: float) -> None:
    rng = np.random.default_rng(20262)
    top, bottom = (rng.normal(c, c * cv, (SIMULATIONS, k)).tolist() for c, k in ((8, n), (2, m)))
    alone = sum(holds(mean_estimate(values), 8) for values in top)
    apart = sum(
        holds(mean_difference(first, second), 6) for first, second in zip(top, bottom, strict=True)
    )
    assert alone / SIMULATIONS == pytest.approx(0.95, abs=0.02)
    assert apart / SIMULATIONS == pytest.approx(0.95, abs=0.02)


def two_stages(rng: random.Random, plan: Plan, centres: tuple[float, ...]) -> list[list[float]]:
    """Values of all cells as the protocol would have them, at a spread of 8 %."""
    protocol = Protocol(plan)
    while not isinstance(key := protocol.next(), Stop):
        centre = centres[key.cell]
        protocol.record(Outcome(key, "ok", rng.gauss(centre, 0.08 * centre), 0.001))
    return [cell.values() for cell in protocol.cells]


@pytest.mark.simulation
def test_intervals_cover_where_the_pilot_has_set_the_number_of_trials() -> None:
    """Calm pilots stop early with narrow intervals: the share of the error probability that is kept
    back makes up for it."""
    rng = random.Random(20263)
    rules = Rules(precision=0.05, repeats_max=10_000, time_allowed_seconds=1e9, redo_share=0.0)
    plan = make_plan(small_study(rules, threads=(1, 2)), "normal", 1)
    runs = SIMULATIONS // 2
    inside = apart = more = narrower = 0
    for _ in range(runs):
        own, other = two_stages(rng, plan, (10.0, 5.0))
        inside += holds(mean_estimate(own, is_staged=True), 10)
        apart += holds(mean_difference(own, other, is_staged=True), 5)
        narrower += holds(mean_estimate(own), 10)
        more += len(own) > rules.repeats_min
    assert 0.935 <= inside / runs <= 0.985
    assert 0.935 <= apart / runs <= 0.985
    assert narrower < inside
    assert more > runs / 2, "the second stage was really used"
