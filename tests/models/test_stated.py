"""What is printed of a curve holds whatever model was chosen; and CPUs are no contention."""

from __future__ import annotations

import math

import numpy as np
import pytest

from concurve.models import FitResult, fit_all, fit_many
from concurve.models.cpus import within_cpus
from tests.helpers.counts import at_most, few_or_many
from tests.models.reference import curve

SIX, EIGHT = [1, 2, 4, 8, 16, 32.0], [1, 2, 4, 8, 12, 16, 24, 32.0]


def holds(result: FitResult, name: str, true: float) -> bool:
    figure = result.stated.parameters[name]
    assert figure.low is not None and figure.high is not None
    return figure.low <= true <= figure.high


@pytest.mark.parametrize(
    ("alpha", "beta", "levels", "noise"),
    [(0.02, 0.0005, SIX, 0.02), (0.08, 0.0004, EIGHT, 0.05), (0.0244, 0.0016, EIGHT, 0.02)],
)
@pytest.mark.parametrize("count", few_or_many(12, 30))
def test_printed_contention_holds(
    alpha: float, beta: float, levels: list[float], noise: float, count: int
) -> None:
    """With the chosen model's own interval these shares are 1 to 70 %."""
    rng = np.random.default_rng(41)
    n = np.array(levels)
    x = n / (1 + alpha * (n - 1) + beta * n * (n - 1))
    results = fit_many([(n, x * np.exp(rng.normal(0, noise, len(n)))) for _ in range(count)])
    missed = sum(not holds(result, "alpha", alpha) for result in results)
    assert missed <= at_most(0.1, count, 0.0 if count == 30 else 1.0)


def test_few_points_do_not_force_the_simplest_model() -> None:
    n, x = curve("raytracer")
    result = fit_all(n[:6], x[:6])
    assert result.criterion == "gcv"
    assert result.chosen != "amdahl" or any("leaves out 0" in said for said in result.warnings)


def test_a_peak_is_established_only_where_every_model_left_has_one() -> None:
    n = np.array(EIGHT)
    rng = np.random.default_rng(3)
    flat = np.minimum(n, 12) * np.exp(rng.normal(0, 0.05, len(n)))
    stated = fit_all(n, flat).stated
    assert "knee" in stated.models
    assert stated.peak is None or (not stated.peak.established and stated.peak.n.high == math.inf)


def test_the_throughput_of_the_peak_holds_for_every_model_left() -> None:
    rng = np.random.default_rng(44)
    n = np.array(EIGHT)
    x = n / (1 + 0.02 * (n - 1) + 0.002 * n * (n - 1))
    several = 0
    for result in fit_many([(n, x * np.exp(rng.normal(0, 0.03, len(n)))) for _ in range(20)]):
        left = [result.model(name) for name in result.stated.models]
        peaks = [item.peak.throughput for item in left if item.peak is not None]
        if result.stated.peak is None or not peaks:
            continue
        figure = result.stated.peak.throughput
        if any(peak.low is None or peak.high is None for peak in peaks):
            assert figure.low is None and figure.high is None
            continue
        several += len(peaks) > 1
        assert figure.low == min(peak.low for peak in peaks if peak.low is not None)
        assert figure.high == max(peak.high for peak in peaks if peak.high is not None)
    assert several >= 5


def test_levels_beyond_used_up_cpus_are_set_apart() -> None:
    n = [1, 2, 3, 4, 8, 16.0]
    x = [10, 20, 30, 40, 40, 39.0]
    within = within_cpus(n, x, 4, {8.0: 3.99, 16.0: 3.98})
    assert within.n.tolist() == [1, 2, 3, 4]
    assert "The 4 CPUs are used up" in within.said and "no model is fitted there" in within.said
    assert fit_all(within.n, within.x).chosen == "linear"


def test_one_cpu_is_used_up() -> None:
    within = within_cpus([1, 2, 4, 8, 16, 32.0], [10.0] * 6, 1)
    assert within.n.tolist() == [1]
    assert within.said.startswith("The one CPU is taken as used up")


def test_cpus_whose_use_was_not_seen_are_taken_as_used_up() -> None:
    n, x = [4, 8, 16, 20, 24.0], [40, 80, 160, 175, 181.0]
    said = within_cpus(n, x, 16).said
    assert "The 16 CPUs are taken as used up, because throughput grows by only 13 %" in said
    assert "beyond N = 16: at N = 20 and 24 more workers would share them" in said
    # A level beyond the CPUs that is kept counts: up to it throughput grew.
    said = within_cpus([1, 2, 4, 8, 16.0], [1000, 1900, 3400, 4500, 3600.0], 4).said
    assert "because throughput is not above that at N = 8" in said
    seen = within_cpus(n, x, 16, {20: 15.9, 24: 15.9}).said
    assert "The 16 CPUs are used up: at N = 20 and 24" in seen and "taken as" not in seen
    falling = within_cpus(n, [40, 80, 160, 150, 140.0], 16).said
    assert "because throughput is not above that at N = 16" in falling


def test_workers_that_sleep_scale_beyond_the_cpus() -> None:
    n, x = [1, 2, 4, 8.0], [10, 20, 40, 80.0]
    assert within_cpus(n, x, 1).said == ""
    assert within_cpus(n, x, 1, {2.0: 0.1, 4.0: 0.2, 8.0: 0.4}).said == ""
    assert within_cpus(n, x, None).said == ""


def test_slow_trials_do_not_bend_the_curve() -> None:
    """A third of the trials is slow from N = 16 on, as where neighbours wake up: the centres are
    those of a straight line, the means bend."""
    n = np.repeat(EIGHT, 9)
    rng = np.random.default_rng(11)
    curves = []
    for _ in range(20):
        slow = (np.arange(len(n)) % 9 < 3) & (n >= 16)
        x = 10 * n * np.exp(rng.normal(0, 0.01, len(n))) / np.where(slow, 1.5, 1)
        curves.append((n, x))
    alphas = [result.model("amdahl").parameters["alpha"].value for result in fit_many(curves)]
    assert abs(np.median(alphas)) < 0.0005, "0.006 with means"


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("count", few_or_many(12, 30))
def test_printed_parameters_hold_with_slow_trials_and_two_levels(share: float, count: int) -> None:
    rng = np.random.default_rng(12)
    n = np.repeat(EIGHT, 5)
    x = n / (1 + 0.02 * (n - 1) + 0.0005 * n * (n - 1))
    curves = []
    for _ in range(count):
        slow = rng.random(len(n)) < share
        by = 1.15 if share == 0.5 else 1 + rng.exponential(0.5, len(n))
        curves.append((n, x * np.exp(rng.normal(0, 0.02, len(n))) / np.where(slow, by, 1)))
    results = fit_many(curves)
    usl = [result for result in results if result.chosen not in ("usl_log", "usl_sqrt")]
    deviations = 0.0 if count == 30 else 1.0
    for some, name, true in ((results, "alpha", 0.02), (usl, "beta", 0.0005)):
        missed = sum(not holds(result, name, true) for result in some)
        assert missed <= at_most(0.1, len(some), deviations)
