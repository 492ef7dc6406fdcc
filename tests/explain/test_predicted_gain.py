"""What a lock that is held longer says of one that is held shorter, on known truth."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from concurve.estimate import Estimate
from concurve.explain.predicted_gain import (
    BEYOND,
    BLOCKS_MIN,
    CURVED,
    Bound,
    gain_of,
    signed_mean,
    slope_at_zero,
)
from tests.helpers.mva import exact_mva

DOSES = (0.0, 0.25, 0.5, 1.0)
Times = Callable[[float], float]


def blocks(times: Times, count: int = 8, noise: float = 0.0, seed: int = 1) -> list[list[float]]:
    """Times at each dose, with noise of each trial and of each block."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        of_block = rng.lognormvariate(0, 5 * noise)
        made.append([of_block * rng.gauss(1, noise) * times(dose) for dose in DOSES])
    return made


def slope_of(times: Times, **more: float) -> Estimate:
    found = slope_at_zero(DOSES, blocks(times, **more))  # type: ignore[arg-type]
    assert found is not None
    return found


# -- the slope --------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [0.0, 0.3, 1.0])
def test_a_straight_line_has_its_slope(slope: float) -> None:
    found = slope_of(lambda dose: 3.0 * (1 + slope * dose))
    assert found.value == pytest.approx(slope, abs=1e-12)
    assert found.low == pytest.approx(slope, abs=1e-9) == found.high


def test_a_parabola_has_its_slope_at_zero() -> None:
    assert slope_of(lambda dose: 1 + 0.4 * dose + 0.2 * dose**2).value == pytest.approx(0.4)


def test_what_all_trials_of_a_block_share_does_not_count() -> None:
    slow = [[factor * (1 + 0.5 * dose) for dose in DOSES] for factor in (1.0, 7.0, 0.1)]
    found = slope_at_zero(DOSES, slow)
    assert found is not None and found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5)


def test_two_doses_have_the_slope_between_them() -> None:
    found = slope_at_zero((0.0, 1.0), [[2.0, 3.0]] * 3)
    assert found is not None and found.value == pytest.approx(0.5)


def test_few_blocks_say_nothing() -> None:
    assert slope_at_zero(DOSES, blocks(lambda dose: 1 + dose, BLOCKS_MIN - 1)) is None


def test_the_interval_holds_the_slope_as_often_as_it_says() -> None:
    truth, hits = 0.6, 0
    for seed in range(400):
        found = slope_of(lambda dose: 1 + truth * dose, noise=0.02, seed=seed)
        assert found.low is not None and found.high is not None
        hits += found.low <= truth <= found.high
    assert 365 <= hits <= 394, hits


def test_a_harmless_lock_costs_nothing_in_most_runs() -> None:
    """Less than 1 in 20 may be said to cost anything: the lower end of 95 % is above 0 in 1 of
    40."""
    accused = sum(
        (slope_of(lambda dose: 1.0, noise=0.02, seed=seed).low or 0.0) > 0 for seed in range(400)
    )
    assert accused <= 20, accused


# -- the gain ---------------------------------------------------------------------------------


def exact(slope: float) -> Estimate:
    return Estimate(value=slope, low=slope, high=slope, n=8)


def test_a_lock_for_all_of_the_time_held_half_as_long_gains_twice_as_much() -> None:
    gain = gain_of(exact(1.0), 0.5, None)
    assert gain.times.value == pytest.approx(2.0) and not gain.is_bounded


def test_a_gain_is_no_more_than_what_the_lock_becomes_shorter() -> None:
    """A queue at a lock may make the slope steeper than that; then the interval says so."""
    gain = gain_of(Estimate(value=1.4, low=0.9, high=3.0, n=8), 0.5, None)
    assert gain.times.value == pytest.approx(2.0)
    assert gain.times.high == pytest.approx(2.0 * BEYOND)
    assert gain.times.low == pytest.approx(1 + CURVED * (1 / 0.55 - 1))
    steeper = gain_of(Estimate(value=1.0, low=0.95, high=1.1, n=8), 0.5, None)
    assert steeper.times.high == pytest.approx(1 / 0.45)


def test_a_gain_that_reaches_its_bound_is_in_its_interval_as_often_as_measured() -> None:
    """A lock for all of the time: the gain is 2, and a measurement of it is above that as often as
    below."""
    rng, hits = random.Random(5), 0
    for seed in range(200):
        gain = gain_of(slope_of(lambda dose: 1 + dose, noise=0.01, seed=seed), 0.5, None).times
        rounds = [2 * rng.gauss(1, 0.01) / rng.gauss(1, 0.01) for _ in range(7)]
        assert gain.low is not None and gain.high is not None
        hits += gain.low <= sorted(rounds)[3] <= gain.high
    assert hits >= 180, hits


def test_the_cpu_time_that_remains_bounds_the_gain() -> None:
    """Two threads, held for half of each operation, that alternate: the lock is the limit, and so
    are the CPUs."""
    bound = Bound(cpu=4.0, held=2.0, wall=2.0, cpus=2)
    assert bound.least(0.5) == pytest.approx(0.75)
    gain = gain_of(exact(1.0), 0.5, bound)
    assert gain.is_bounded and gain.times.value == pytest.approx(1 / 0.75)
    assert gain.times.low == pytest.approx(1 + CURVED / 3) and gain.times.high == pytest.approx(2.0)


def test_a_lock_whose_contention_costs_more_than_its_work_may_gain_more() -> None:
    """Threads that together do less than one alone: with half of the lock, hardly any meet."""
    bound = Bound(cpu=6.0, held=4.0, wall=3.0, cpus=2, alone=1.0)
    slope = Estimate(value=0.9, low=0.8, high=1.0, n=8)
    gain = gain_of(slope, 0.5, bound).times
    known = gain_of(slope, 0.5, bound._replace(alone=None)).times
    assert (gain.low, gain.value) == (known.low, known.value)
    assert gain.high == pytest.approx(3.0 * 2 / 0.5)


@pytest.mark.parametrize(
    "bound",
    [
        pytest.param(Bound(cpu=1.1, held=0.7, wall=1.2, cpus=2, alone=1.0), id="as much CPU time"),
        pytest.param(Bound(cpu=1.9, held=0.7, wall=0.95, cpus=2, alone=1.0), id="more is done"),
        pytest.param(Bound(cpu=6.0, held=4.0, wall=3.0, cpus=2), id="not known"),
    ],
)
def test_without_such_a_collapse_the_upper_end_is_that_of_the_slope(bound: Bound) -> None:
    for slope in (Estimate(value=0.9, low=0.8, high=1.0, n=8), exact(-0.1)):
        known = gain_of(slope, 0.5, bound._replace(alone=None)).times
        assert gain_of(slope, 0.5, bound).times == known


def test_the_ends_of_a_gain_are_in_order() -> None:
    rng = random.Random(3)
    for _ in range(500):
        slopes = sorted(rng.uniform(-1, 2) for _ in range(3))
        alone = rng.choice([None, rng.uniform(0.1, 1)])
        bound = Bound(rng.uniform(0.1, 4), rng.uniform(0.1, 2), rng.uniform(0.5, 3), 2, alone)
        times = gain_of(Estimate(value=slopes[1], low=slopes[0], high=slopes[2], n=8), 0.5,
                        rng.choice([bound, None])).times  # fmt: skip
        assert times.low is not None and times.high is not None
        assert times.low <= times.value <= times.high


def queue(threads: int, held: float, apart: float) -> float:
    """The time of an operation of threads that queue for one lock, by exact mean value analysis."""
    return 1 / float(exact_mva([held], apart, threads).throughput[-1])


def test_the_gain_of_a_queue_is_predicted() -> None:
    """Threads hold a lock for exponential times: what truly becomes of them with half of it."""
    rng = random.Random(7)
    held, misses = 1.0, []
    cases = 200
    for seed in range(cases):
        threads, apart = rng.choice([2, 3, 4, 8]), rng.uniform(0.2, 3.0)
        now = queue(threads, held, apart)
        slope = slope_of(
            lambda dose, n=threads, z=apart: queue(n, held * (1 + dose), z),  # type: ignore[misc]
            noise=0.02,
            seed=seed,
        )
        gain = gain_of(slope, 0.5, Bound(held + apart, held, now, threads)).times
        truth = now / queue(threads, held / 2, apart)
        assert gain.low is not None and gain.high is not None
        if not gain.low <= truth <= gain.high:
            misses.append((threads, round(apart, 2), round(truth, 3), gain))
    assert len(misses) <= 0.1 * cases, misses


@pytest.mark.parametrize("threads", [2, 3, 4, 8, 16])
def test_the_curve_of_a_queue_takes_no_more_than_is_allowed_for(threads: int) -> None:
    for apart in (0.05, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0):
        now, step = queue(threads, 1.0, apart), 1e-4
        rise = queue(threads, 1 + step, apart) - queue(threads, 1 - step, apart)
        gain = gain_of(exact(rise / (2 * step) / now), 0.5, None).times
        truth = now / queue(threads, 0.5, apart)
        assert gain.low is not None and gain.high is not None
        assert gain.low <= truth <= gain.high + 1e-6, (threads, apart)


def test_the_mean_of_values_of_either_sign_has_an_interval_of_either_sign() -> None:
    found = signed_mean([-1.0, 1.0, 0.0])
    assert found.value == 0 and found.low is not None and found.low < 0 < (found.high or 0)
