"""The centre of a cell and its interval, by simulation of what it promises."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.stats.blocks import block_ratio, log_ratios
from concurve.stats.centre import centre, centre_estimate, centre_estimates
from concurve.stats.power import SIGNS, trials_to_tell
from concurve.stats.sign_test import median_interval

FINITE = st.floats(min_value=-1e6, max_value=1e6)


@given(st.lists(FINITE, min_size=2, max_size=70))
def test_the_interval_of_a_median_holds_it_and_lies_within_the_range(values: list[float]) -> None:
    ordered = sorted(values)
    low, high = median_interval(ordered)
    slack = 1e-9 * (1 + max(map(abs, ordered)))
    assert low - slack <= centre(values) <= high + slack
    if len(values) > 5:
        assert ordered[0] - slack <= low <= high <= ordered[-1] + slack


@pytest.mark.parametrize("n", [5, 6, 7, 8, 10, 15, 30])
@pytest.mark.simulation
def test_the_median_of_any_noise_lies_in_its_interval(n: int) -> None:
    """Two levels, a heavy tail: the sign test assumes no shape."""
    generator = random.Random(n)

    def two_levels() -> float:
        return generator.gauss(1.15 if generator.random() < 0.2 else 1.0, 0.01)

    def heavy() -> float:
        return 1 + abs(generator.gauss(0, 0.02)) + (generator.random() < 0.1) * generator.random()

    for draw in (two_levels, heavy):
        truth = centre([draw() for _ in range(100_001)])
        held = 0
        for _ in range(1000):
            low, high = median_interval(sorted(draw() for _ in range(n)))
            held += low <= truth <= high
        assert held >= 925, f"{draw.__name__}: {held} of 1000"


def test_a_centre_of_rates_is_the_reciprocal_of_that_of_times() -> None:
    times = [0.5, 0.7, 1.1, 4.0]
    rates = [1 / time for time in times]
    of_times, of_rates = centre_estimate(times), centre_estimate(rates)
    assert of_times.value * of_rates.value == pytest.approx(1)
    assert of_times.low is not None
    assert of_rates.high is not None
    assert of_times.low * of_rates.high == pytest.approx(1)


def test_a_coarse_clock_widens_the_interval() -> None:
    found = centre_estimate([0.04] * 5, resolution=0.01)
    assert found.low == pytest.approx(0.03)
    assert found.high == pytest.approx(0.05)
    ticks = dict(enumerate([0.04] * 5))
    ratio = block_ratio(ticks, ticks, resolution=0.25)
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.low < 0.85
    logs = log_ratios(ticks, dict(enumerate([0.05] * 5)), resolution=0.25)
    assert logs is not None
    assert logs.p_below() > 0.05, "one tick apart is no difference"


@pytest.mark.parametrize("count", [199, 200, 201, 1000])
def test_the_centre_of_many_values_is_that_of_their_middle(count: int) -> None:
    generator = random.Random(count)
    values = [generator.lognormvariate(0, 0.1) for _ in range(count)]
    low, high = sorted(values)[(count - 1) // 2], sorted(values)[count // 2]
    assert centre(values) == pytest.approx((low * high) ** 0.5)
    assert centre_estimate(values).value == centre(values)


def test_as_many_trials_as_the_sign_test_needs_tell_a_median_from_a_bound() -> None:
    """With the power that is promised: by the efficiency of ranks it would be 63 %."""
    spread, distance = 0.1, 0.03
    trials = trials_to_tell(distance, spread, efficiency=SIGNS)
    assert trials is not None
    rng = np.random.default_rng(11)
    samples = np.exp(rng.normal(0, spread, (600, trials)))
    told = [found.high is not None and found.high < math.exp(distance)
            for found in centre_estimates(samples)]  # fmt: skip
    assert 0.75 <= np.mean(told) <= 0.87


def test_an_interval_is_not_cut_where_values_lie_beyond() -> None:
    """A quantity that was negative in trials can be so."""
    values = [-3.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.5]
    found = centre_estimate(values)
    assert found.low is not None and found.low < 0
    [same] = centre_estimates(np.array([values]))
    assert same.low == pytest.approx(found.low)
    above = centre_estimate([0.0, 0.1, 0.2, 3.0])
    assert above.low is not None and above.low >= 0
