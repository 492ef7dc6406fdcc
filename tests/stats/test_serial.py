"""Blocks that depend on each other widen what is said of them; independent ones hardly ever do."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from concurve.stats import best
from concurve.stats.best import best_set
from concurve.stats.blocks import MANY, block_ratio, block_ratios
from concurve.stats.comparison import directions, log_shift
from concurve.stats.serial import LENGTH_MIN, LEVEL, p_value, stretched, stretched_rows, widening
from concurve.stats.signed_ranks import ranked

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Noise = Callable[[np.random.Generator, int], Floats]

#: Noises of blocks that are independent.
INDEPENDENT: dict[str, Noise] = {
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "Student's t(2)": lambda rng, n: rng.standard_t(2, n),
    "two levels": lambda rng, n: rng.choice([0.0, 1.0], n) + rng.normal(0, 0.01, n),
    "exponential": lambda rng, n: rng.exponential(1, n),
    "a clock of few ticks": lambda rng, n: np.round(rng.normal(0, 1, n)),
}


def autoregression(rng: np.random.Generator, n: int, rho: float) -> Floats:
    """Values of which each depends on the one before, with a spread of 1."""
    steps = rng.normal(0, math.sqrt(1 - rho**2), n)
    found = np.empty(n)
    last = rng.normal()
    for place, step in enumerate(steps):
        last = rho * last + step
        found[place] = last
    return found


def cells(rng: np.random.Generator, n: int, rho: float) -> tuple[dict[int, float], ...]:
    """Two equal cells, each of which drifts for itself by 3 %."""
    logs = (0.03 * autoregression(rng, n, rho) for _ in range(2))
    return tuple(dict(enumerate(np.exp(values).tolist())) for values in logs)


@pytest.mark.parametrize("n", [LENGTH_MIN, 12, 30])
@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_values_are_widened_at_the_level_of_the_test(name: str, n: int) -> None:
    rng = np.random.default_rng(n)
    rows = np.array([INDEPENDENT[name](rng, n) for _ in range(2000)])
    is_wide = (stretched_rows(rows) != rows).any(axis=1)
    # 5 % of 2000 have a standard error of 0.5 %.
    assert 0.6 * LEVEL < is_wide.mean() < 1.4 * LEVEL


@pytest.mark.parametrize(("rho", "least"), [(0.5, 0.85), (0.7, 0.80), (0.85, 0.65)])
def test_intervals_of_cells_that_drift_alone_hold_more_often(rho: float, least: float) -> None:
    rng = np.random.default_rng(3)
    held = plain = 0
    runs = 400
    for _ in range(runs):
        top, bottom = cells(rng, 30, rho)
        ratio = block_ratio(top, bottom)
        assert ratio is not None and ratio.low is not None and ratio.high is not None
        held += ratio.low <= 1 <= ratio.high
        alone = ranked([math.log(top[block] / bottom[block]) for block in top])
        assert alone is not None
        low, high = alone.interval()
        plain += low <= 0 <= high
    assert held / runs >= least
    assert plain / runs < held / runs - 0.1


def test_the_estimate_stays_and_the_interval_widens_by_the_factor() -> None:
    values = [float(value) for value in range(20)]
    wide = stretched(values)
    before, after = ranked(values), ranked(wide)
    assert before is not None and after is not None
    assert after.value == pytest.approx(before.value)
    low, high = before.interval()
    wider = after.interval()
    assert wider[1] - wider[0] == pytest.approx(widening(values) * (high - low))
    assert widening(values) > 3


def test_the_direction_of_time_does_not_matter_and_the_order_does() -> None:
    values = autoregression(np.random.default_rng(5), 30, 0.9).tolist()
    assert widening(values) == pytest.approx(widening(values[::-1]))
    assert widening(values) > 1.5
    shuffled = np.random.default_rng(6).permutation(values).tolist()
    assert widening(shuffled) == 1


def test_few_values_and_equal_ones_say_nothing_of_time() -> None:
    assert p_value([float(value) for value in range(LENGTH_MIN - 1)]) == 1
    assert widening([1.0] * 30) == 1
    assert p_value([1.0] * 30) > LEVEL
    alternating = [float(value % 2) for value in range(30)]
    assert widening(alternating) == 1, "neighbours that differ make no interval too narrow"
    short = [0.0, 1.0, 2.0]
    assert stretched(short) is short


def test_a_step_in_one_cell_widens_its_ratio_and_a_common_one_does_not() -> None:
    rng = np.random.default_rng(7)
    noise = np.exp(rng.normal(0, 0.01, (2, 24)))
    step = np.where(np.arange(24) < 12, 1.0, 1.1)
    alone = block_ratio(dict(enumerate(noise[0] * step)), dict(enumerate(noise[1])))
    common = block_ratio(dict(enumerate(noise[0] * step)), dict(enumerate(noise[1] * step)))
    assert alone is not None and common is not None
    assert alone.low is not None and alone.high is not None
    assert alone.low < 1.0 and alone.high > 1.09
    assert (common.precision or 1) < 0.01


@pytest.mark.parametrize("n", [9, 30, 61, 601])
def test_many_series_at_once_are_what_each_is_alone(n: int) -> None:
    rng = np.random.default_rng(n)
    rows = np.array([autoregression(rng, n, rho) for rho in (0.0, 0.6, 0.95) for _ in range(8)])
    rows[3, 2] = np.nan
    rows[9, 4:6] = np.nan
    rows[17, :5] = np.nan
    together = stretched_rows(rows)
    for row, found in zip(rows, together, strict=True):
        known = ~np.isnan(row)
        assert (np.isnan(found) == ~known).all()
        assert found[known] == pytest.approx(np.array(stretched(row[known].tolist())), rel=1e-9)


def test_pairs_the_other_way_round_are_spread_alike() -> None:
    rng = np.random.default_rng(5)
    values = np.array([autoregression(rng, 60, 0.7) for _ in range(6)])
    values[1, 3], values[4, :2] = np.nan, np.nan
    rows, against = np.array([0, 1, 2, 4, 5]), (4, 3, 0, 1)
    apart = (values[rows, None, :] - values[None, against, :]).reshape(-1, 60)
    like = best._mirrors(rows, against)
    assert (like < 0).sum() == 3, "a cell and itself"
    assert (like[like >= 0] != np.flatnonzero(like >= 0)).sum() == 3, "pairs of 0, 1 and 4"
    np.testing.assert_array_equal(stretched_rows(apart, like), stretched_rows(apart))


def test_ratios_of_many_cells_that_drift_are_those_of_each() -> None:
    rng = np.random.default_rng(11)
    pairs = [cells(rng, 24, 0.8) for _ in range(MANY)]
    sides = [(top, bottom) for top, bottom in pairs]
    for found, (top, bottom) in zip(block_ratios(sides), sides, strict=True):
        alone = block_ratio(top, bottom)
        assert found is not None and alone is not None
        assert (found.value, found.low, found.high) == pytest.approx(
            (alone.value, alone.low, alone.high)
        )


def test_a_best_set_keeps_a_setting_that_only_drifted_away() -> None:
    """Without the factor, one of two equal settings leaves the set in half of the runs."""
    rng = np.random.default_rng(13)
    left = sum(len(best_set(cells(rng, 30, 0.7)).members) < 2 for _ in range(300))
    assert left / 300 < 0.15


def test_runs_that_drift_are_told_apart_less_often() -> None:
    rng = np.random.default_rng(17)
    found = {True: 0, False: 0}
    for _ in range(300):
        sides = [list(side.values()) for side in cells(rng, 30, 0.8)]
        for in_order in found:
            if not in_order:
                sides = [rng.permutation(side).tolist() for side in sides]
            (said,) = directions([log_shift([sides[0]], [sides[1]])], 0.02)
            found[in_order] += said in ("higher", "lower")
    assert found[True] < 0.6 * found[False]


def test_what_is_beyond_a_float_is_left_alone() -> None:
    rows = np.full((2, 10), math.inf)
    rows[1] = np.arange(10)
    assert (stretched_rows(rows)[0] == math.inf).all()
    huge = [math.inf if value > 4 else float(value) for value in range(10)]
    assert list(stretched(huge)) == huge
