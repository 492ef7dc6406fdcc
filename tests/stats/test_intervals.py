"""Estimates in other units, the interval of a coefficient of variation, and plain moments."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from concurve.stats.centre import centre_estimate
from concurve.stats.intervals import scaled, variation_estimate
from concurve.stats.moments import mean, median_deviation, stdev


def test_a_scaled_estimate_scales_every_figure() -> None:
    estimate = scaled(centre_estimate([1.0, 2.0, 3.0], "s"), 10.0, "ds")
    assert (estimate.value, estimate.median, estimate.min, estimate.max) == (20, 20, 10, 30)
    assert (estimate.unit, estimate.mean) == ("ds", 20)
    assert estimate.stdev == pytest.approx(10)


def test_the_interval_of_a_variation_covers_at_its_level() -> None:
    held, runs = 0, 2000
    for values in np.random.default_rng(5).normal(10, 0.5, (runs, 8)).tolist():
        found = variation_estimate(values)
        assert found.low is not None and found.high is not None
        held += found.low <= 0.05 <= found.high
    assert held / runs == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("name", ["t(5)", "exponential", "two levels", "normal"])
def test_the_interval_of_a_variation_knows_of_tails(name: str) -> None:
    rng = np.random.default_rng(6)
    shapes: dict[str, Callable[[], np.ndarray[tuple[int, ...], np.dtype[np.float64]]]] = {
        "t(5)": lambda: rng.standard_t(5, 30) / math.sqrt(5 / 3),
        "exponential": lambda: rng.exponential(1, 30) - 1,
        "two levels": lambda: rng.choice([-0.5, 2.0], 30, p=[0.8, 0.2]),
        "normal": lambda: rng.normal(0, 1, 30),
    }
    held, runs = 0, 1000
    for _ in range(runs):
        found = variation_estimate((10 + 0.3 * shapes[name]()).tolist())
        assert found.low is not None and found.high is not None
        held += found.low <= 0.03 <= found.high
    # That for normal values holds in 81 % of the samples of t(5), and in 73 % of exponential ones.
    assert held / runs >= 0.85


def test_moments() -> None:
    values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
    assert mean(values) == 5.0
    assert stdev(values) == pytest.approx(math.sqrt(32 / 7))
    assert stdev([1.0]) == 0.0
    assert median_deviation([1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]) == 1.0
