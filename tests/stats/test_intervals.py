"""Intervals against published values, and their coverage by simulation."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import stats

from concurve.definition.study import Rules
from concurve.estimate import Estimate
from concurve.planning.plan import Plan, make_plan
from concurve.planning.protocol import Protocol, Stop
from concurve.stats.intervals import mean_estimate, ratio_estimate, scaled
from concurve.stats.moments import mean, median_deviation, stdev, t_quantile
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
    assert estimate.stdev == pytest.approx(np.std(values, ddof=1))
    assert estimate.median == pytest.approx(np.median(values))


def test_a_single_value_has_no_interval() -> None:
    estimate = mean_estimate([3.0])
    assert (estimate.low, estimate.high, estimate.stdev) == (None, None, None)
    ratio = ratio_estimate([3.0], [1.5, 1.5])
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high, ratio.n) == (2.0, None, None, 1)


def test_what_has_no_mean_is_refused() -> None:
    for values in ([], [1.0, math.nan], [math.inf]):
        with pytest.raises(ValueError, match=r"not (all )?finite"):
            mean_estimate(values)


def test_the_floor_bounds_only_what_cannot_be_below_it() -> None:
    assert mean_estimate([0.0, 0.0, 9.0]).low == 0.0
    assert mean_estimate([-1.0, -2.0, -3.0]).low < -3.0  # type: ignore[operator]
    assert mean_estimate([0.0, 0.0, 9.0], floor=None).low < 0.0  # type: ignore[operator]


def test_a_ratio_of_equal_samples_is_one_and_its_inverse_mirrors_it() -> None:
    a, b = [1.0, 1.1, 0.9, 1.05], [2.0, 2.3, 1.9, 2.1, 2.2]
    there, back = ratio_estimate(a, b), ratio_estimate(b, a)
    assert there is not None and back is not None
    assert there.value == pytest.approx(1 / back.value)
    assert there.low == pytest.approx(1 / back.high)  # type: ignore[operator]
    flat = ratio_estimate([2.0, 2.0], [1.0, 1.0])
    assert flat is not None and (flat.low, flat.high) == (2.0, 2.0)
    assert ratio_estimate([1.0, 2.0], [0.0, 0.0]) is None


def test_a_scaled_estimate_scales_every_figure() -> None:
    estimate = scaled(mean_estimate([1.0, 2.0, 3.0], "s"), 10.0, "ds")
    assert (estimate.value, estimate.median, estimate.min, estimate.max) == (20, 20, 10, 30)
    assert estimate.unit == "ds"
    assert estimate.stdev == pytest.approx(10)


def test_moments() -> None:
    values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
    assert mean(values) == 5.0
    assert stdev(values) == pytest.approx(math.sqrt(32 / 7))
    assert stdev([1.0]) == 0.0
    assert median_deviation([1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]) == 1.0


def holds(estimate: Estimate, truth: float) -> bool:
    assert estimate.low is not None and estimate.high is not None
    return estimate.low <= truth <= estimate.high


@pytest.mark.parametrize("n", [5, 10])
def test_intervals_of_means_cover_at_their_level(n: int) -> None:
    rng = np.random.default_rng(20261)
    inside = 0
    for values in rng.normal(10, 1, (SIMULATIONS, n)).tolist():
        inside += holds(mean_estimate(values), 10)
    assert inside / SIMULATIONS == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(("n", "m", "cv"), [(5, 5, 0.05), (5, 20, 0.05), (10, 10, 0.2)])
def test_intervals_of_ratios_cover_at_their_level(n: int, m: int, cv: float) -> None:
    rng = np.random.default_rng(20262)
    top, bottom = (rng.normal(c, c * cv, (SIMULATIONS, k)).tolist() for c, k in ((8, n), (2, m)))
    inside = 0
    for pair in zip(top, bottom, strict=True):
        estimate = ratio_estimate(*pair)
        assert estimate is not None
        inside += holds(estimate, 4)
    assert inside / SIMULATIONS == pytest.approx(0.95, abs=0.02)


def two_stages(rng: random.Random, plan: Plan, centres: tuple[float, ...]) -> list[list[float]]:
    """Values of all cells as the protocol would have them, at a spread of 8 %."""
    protocol = Protocol(plan)
    while not isinstance(key := protocol.next(), Stop):
        centre = centres[key.cell]
        protocol.record(Outcome(key, "ok", rng.gauss(centre, 0.08 * centre), 0.001))
    return [cell.values() for cell in protocol.cells]


def test_steins_two_stages_cover_and_reach_the_precision() -> None:
    """The protocol as a whole: neither the mean's nor the ratio's interval may suffer from the
    second stage, which the same values with the spread of the whole sample would."""
    rng = random.Random(20263)
    rules = Rules(precision=0.05, repeats_max=10_000, time_allowed_seconds=1e9, redo_share=0.0)
    plan = make_plan(small_study(rules, threads=(1, 2)), "normal", 1)
    inside = ratio_inside = naive = more = precise = 0
    for _ in range(SIMULATIONS):
        own, other = two_stages(rng, plan, (10.0, 5.0))
        estimate, ratio = mean_estimate(own, pilot=5), ratio_estimate(own, other, pilot=5)
        assert ratio is not None and estimate.precision is not None
        precise += estimate.precision <= 0.05 * 1.2  # asked for relative to the pilot's mean
        inside += holds(estimate, 10)
        ratio_inside += holds(ratio, 2)
        naive += holds(mean_estimate(own), 10)
        more += len(own) > rules.repeats_min
    # A cell runs on for the other one's sake, with more trials than its own spread asked for.
    assert 0.93 <= inside / SIMULATIONS <= 0.98
    assert 0.93 <= ratio_inside / SIMULATIONS <= 0.98
    assert precise / SIMULATIONS > 0.9, "but for pilots calmer than what came after them"
    assert naive < inside, "the spread of all values makes the interval too short"
    assert more > SIMULATIONS / 2, "the second stage was really used"


def test_a_pilot_of_one_trial_bears_no_interval() -> None:
    assert mean_estimate([1.0, 2.0], pilot=1).low is None
    ratio = ratio_estimate([1.0, 2.0], [1.0, 2.0], pilot=1)
    assert ratio is not None and ratio.low is None


def test_a_pilot_that_saw_no_spread_does_not_hide_what_came_later() -> None:
    counts = [0.0] * 5 + [0.0, 3.0, 0.0, 1.0]
    assert mean_estimate(counts, pilot=5).high == mean_estimate(counts).high
    times = [1.0] * 5 + [1.0, 1.2]
    ratio = ratio_estimate(times, times, pilot=5)
    assert ratio is not None and ratio.high is not None and ratio.high > 1


def test_a_calm_pilot_does_not_make_a_wild_sample_certain() -> None:
    """Noise that comes and goes: the spread of all trials counts where it is the greater."""
    values = [1.0, 1.001, 0.999, 1.0, 1.001, *(1.0, 1.5) * 5]
    assert mean_estimate(values, pilot=5).half_width == mean_estimate(values).half_width
    wild_first = [0.5, 1.5, 0.7, 1.3, 1.0, *(1.0, 1.001) * 5]
    estimate, naive = mean_estimate(wild_first, pilot=5), mean_estimate(wild_first)
    assert estimate.half_width is not None and naive.half_width is not None
    assert estimate.half_width > naive.half_width, "the pilot's, which set the number of trials"
