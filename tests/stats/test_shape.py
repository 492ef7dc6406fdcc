"""Two levels, slow tails and changes in time are found where they are, and rarely elsewhere."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest

from concurve.stats import shape
from concurve.stats.shape import (
    BY_CHANCE,
    LevelChange,
    drift,
    explains,
    fast_tail,
    is_shared,
    level_change,
    slow_tail,
    two_levels,
)
from tests.helpers import noises
from tests.helpers.noises import Shape, log_normal, several_levels, slow_trials
from tests.helpers.shared_machine_noises import gamma_tail, left_tail, times, weibull_tail
from tests.helpers.unseen_noises import decay

SIMULATIONS = 400


class Judged(NamedTuple):
    """A noise of single trials, and how often two levels must or may be found in it."""

    name: str
    shape: Shape
    trials: tuple[int, ...]
    at_least: float = 0.0
    at_most: float = 1.0


def two_of(slow: float, cv: float = 0.02) -> Shape:
    """A share of the trials at a level that is higher by 15 %."""
    return several_levels((1.15, (slow,)), spread=cv)


#: Two levels: no more than 2 % of cells of normal noise have them; those that truly do are found.
TWO_LEVELS: tuple[Judged, ...] = (
    *(
        Judged(f"log-normal {cv:g}", log_normal(cv), (8, 12, 20, 30), at_most=0.02)
        for cv in (0.005, 0.03, 0.2)
    ),
    # The flattest noise with one mode; without a bound of its own it has two levels in half of
    # the cells of 100 trials.
    Judged(
        "uniform",
        lambda rng, n, cells: rng.uniform(0.95, 1.05, (n, cells)),
        (50, 100),
        at_most=0.02,
    ),
    *(
        Judged(f"two levels {slow:g}, {cv:g}", two_of(slow, cv), (25,), at_least)
        for slow in (0.2, 0.5)
        # At 3 % even the likelihood ratio of the mixture finds 82 and 85 %, at this level.
        for cv, at_least in ((0.01, 0.9), (0.02, 0.9), (0.03, 0.78))
    ),
)


def drawn(shape: Shape, trials: int, cells: int, seed: int) -> list[list[float]]:
    """The trials of each of so many cells."""
    values = shape(np.random.default_rng(seed), trials, cells)
    return [values[:, cell].tolist() for cell in range(cells)]


def shares(judged: Judged) -> list[tuple[int, float]]:
    """For each number of trials, the share of cells in which two levels are found."""
    found = []
    for trials in judged.trials:
        cells = drawn(judged.shape, trials, SIMULATIONS, trials)
        found.append((trials, sum(two_levels(cell) is not None for cell in cells) / SIMULATIONS))
    return found


@pytest.mark.parametrize("judged", TWO_LEVELS, ids=lambda judged: judged.name)
def test_two_levels_are_found_where_they_are(judged: Judged) -> None:
    for trials, share in shares(judged):
        # A share of 2 % in 400 cells has a standard error of 0.7 %.
        assert judged.at_least <= share <= judged.at_most + 0.015, (trials, share)


#: Noise of one level that is skewed; a normal test of the split alone finds two in half of it.
SKEWED: tuple[tuple[str, Shape], ...] = (
    ("exponential", times(log_normal(0.01), gamma_tail(0.10, 1.0))),
    ("gamma 1/2", times(log_normal(0.01), gamma_tail(0.12, 0.5))),
    ("Weibull .6", times(log_normal(0.01), weibull_tail(0.05, 0.6))),
    ("to the left", times(log_normal(0.005), left_tail(0.06))),
)


@pytest.mark.parametrize("name,shape", SKEWED, ids=[name for name, _ in SKEWED])
def test_levels_are_rarely_clear_in_a_tail(name: str, shape: Shape) -> None:
    for trials in (12, 25, 100):
        found = [two_levels(cell) for cell in drawn(shape, trials, SIMULATIONS, trials)]
        clear = sum(levels is not None and levels.clear for levels in found) / SIMULATIONS
        assert clear <= 0.10, (name, trials, clear)


def groups(share: float, gap: float, spreads: tuple[float, float]) -> Shape:
    """Two groups of trials, ``gap`` apart on the logarithm, each with a spread of its own: a
    program that is compiled in one of two ways, or a percentile that is at one of two waits."""

    def drawn(rng: np.random.Generator, trials: int, cells: int) -> np.ndarray:
        is_slow = rng.random((trials, cells)) < share
        spread = np.where(is_slow, spreads[1], spreads[0])
        return np.exp(np.where(is_slow, gap, 0.0) + spread * rng.standard_normal(is_slow.shape))

    return drawn


@pytest.mark.parametrize("trials", [10, 12, 20])
@pytest.mark.parametrize("share", [0.3, 0.5])
@pytest.mark.parametrize(("gap", "spreads"), [(1.5, (0.05, 0.2)), (0.4, (0.003, 0.03))])
def test_groups_far_apart_are_told_from_ten_trials_on_whatever_their_spreads(
    gap: float, spreads: tuple[float, float], share: float, trials: int
) -> None:
    cells = drawn(groups(share, gap, spreads), trials, SIMULATIONS, trials)
    slow = [sum(value > np.exp(gap / 2) for value in cell) for cell in cells]
    both = [cell for cell, count in zip(cells, slow, strict=True) if 3 <= count <= trials - 3]
    found = [two_levels(cell) for cell in both]
    assert sum(levels is not None and levels.clear for levels in found) >= 0.9 * len(both)


def student(freedom: float) -> Shape:
    """Noise with heavy tails on both sides."""
    return lambda rng, n, cells: np.exp(0.03 * rng.standard_t(freedom, (n, cells)))


#: The greatest share of cells of one level that were said to have clear levels before levels with
#: unlike spreads were told: they may add no more than the error of the count.
ONE_LEVEL: tuple[tuple[str, Shape, float], ...] = (
    ("normal", log_normal(0.03), 0.010),
    ("log-normal .5", log_normal(0.5), 0.010),
    ("t, 5 degrees", student(5), 0.010),
    ("t, 3 degrees", student(3), 0.010),
    ("exponential", times(log_normal(0.01), gamma_tail(0.10, 1.0)), 0.030),
)


@pytest.mark.parametrize(("name", "shape", "most"), ONE_LEVEL, ids=[it[0] for it in ONE_LEVEL])
def test_noise_of_one_level_is_rarely_told_to_be_two_groups(
    name: str, shape: Shape, most: float
) -> None:
    for trials in (8, 10, 12, 20):
        found = [two_levels(cell) for cell in drawn(shape, trials, 2 * SIMULATIONS, trials)]
        clear = sum(levels is not None and levels.clear for levels in found)
        bound = 2 * SIMULATIONS * most
        assert clear <= bound + 3 * bound**0.5, (name, trials, clear)


@pytest.mark.parametrize(
    ("slow", "spread", "least"), [(0.2, 0.01, 0.8), (0.5, 0.02, 0.95), (0.2, 0.02, 0.55)]
)
def test_levels_with_a_gap_are_clear(slow: float, spread: float, least: float) -> None:
    found = [two_levels(cell) for cell in drawn(two_of(slow, spread), 25, SIMULATIONS, 3)]
    assert sum(levels is not None and levels.clear for levels in found) >= least * SIMULATIONS
    exact = two_levels([1.0] * 10 + [1.2] * 5)
    assert exact is not None and exact.clear


def test_both_levels_are_named_with_their_trials() -> None:
    found = two_levels([*[1.0, 1.01, 0.99] * 4, 1.0, *[1.15, 1.14, 1.16] * 4])
    assert found is not None
    assert (found.trials_low, found.trials_high) == (13, 12)
    assert found.low == pytest.approx(1.0, rel=0.01)
    assert found.high == pytest.approx(1.15, rel=0.01)


def test_two_of_many_trials_are_outliers_and_no_level() -> None:
    one = [1.0 + 0.001 * (number % 7) for number in range(36)]
    assert two_levels([*one, 1.03, 1.033]) is None
    tail = slow_tail([*one, 1.03, 1.033], "lower")
    assert tail is not None and tail.trials == 2
    found = two_levels([*one, 1.03, 1.031, 1.032, 1.033])
    assert found is not None
    assert (found.trials_low, found.trials_high) == (36, 4)


def test_equal_readings_and_few_have_no_levels() -> None:
    assert two_levels([1.0] * 20) is None
    assert two_levels([1.0, 1.0, 2.0, 2.0]) is None
    assert two_levels([0.0] * 10 + [1.0] * 10) is None


def test_a_tail_is_no_second_level() -> None:
    cells = drawn(slow_trials((0.1,), spread=0.01), 25, SIMULATIONS, 5)
    # Two or three slow trials that lie close together by chance look like a level.
    assert sum(two_levels(cell) is not None for cell in cells) < 0.25 * SIMULATIONS
    tails = [slow_tail(cell, "lower") for cell in cells]
    slow = [sum(value > 1.1 for value in cell) for cell in cells]
    told = [tail is not None for tail, count in zip(tails, slow, strict=True) if count]
    assert sum(told) >= 0.95 * len(told)


@pytest.mark.parametrize("trials", [8, 12, 30])
def test_normal_noise_has_no_tail(trials: int) -> None:
    cells = drawn(log_normal(0.03), trials, SIMULATIONS, trials)
    assert sum(slow_tail(cell, "lower") is not None for cell in cells) <= 0.03 * SIMULATIONS


@pytest.mark.parametrize("trials", [8, 12, 25])
def test_as_many_cells_as_is_said_have_a_shape_by_chance(trials: int) -> None:
    cells = drawn(log_normal(0.03), trials, 2000, 7 * trials)
    found = sum(two_levels(cell) is not None or slow_tail(cell, "lower") is not None
                or fast_tail(cell, "lower") is not None for cell in cells)  # fmt: skip
    # Of 2000 cells 2.5 % are 50, with a standard error of 7.
    assert 0.5 * BY_CHANCE <= found / len(cells) <= BY_CHANCE + 0.0105


def test_a_tail_is_on_the_worse_side() -> None:
    times = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 2.0, 3.0]
    found = slow_tail(times, "lower")
    assert found is not None
    assert (found.trials, found.worst) == (2, 3.0)
    assert found.factor == pytest.approx(2.45, rel=0.02)
    assert slow_tail(times, "higher") is None
    rates = slow_tail([1 / time for time in times], "higher")
    assert rates is not None
    assert rates.factor == pytest.approx(1 / found.factor)
    assert rates.worst == pytest.approx(1 / 3)


def test_trials_far_off_are_seen_on_a_coarse_clock() -> None:
    """Most readings are equal there, so that no deviation is known but that of the clock."""
    readings = [1.0] * 20 + [1.01, 0.99] + [1.5, 2.0]
    assert slow_tail(readings, "lower") is None
    found = slow_tail(readings, "lower", 0.01)
    assert found is not None and found.trials == 2
    assert fast_tail(readings, "lower", 0.01) is None
    early = fast_tail([1.0] * 20 + [1.01, 0.99] + [0.5], "lower", 0.01)
    assert early is not None and (early.trials, early.best) == (1, 0.5)
    assert slow_tail([1.0] * 20 + [1.01, 0.99] * 3, "lower", 0.01) is None, "a tick is no tail"


def test_a_fast_tail_is_on_the_better_side() -> None:
    times = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.5, 0.4]
    assert slow_tail(times, "lower") is None
    found = fast_tail(times, "lower")
    assert found is not None
    assert (found.trials, found.best) == (2, 0.4)
    rates = fast_tail([1 / time for time in times], "higher")
    assert rates is not None and rates.best == pytest.approx(2.5)
    assert fast_tail(times, "neither") is None


def in_time(common: noises.Common, blocks: int, seed: int = 0) -> list[float]:
    """A level that all cells of a block share."""
    return list(common(np.random.default_rng(seed), blocks).tolist())


def cells_of(
    levels: list[float], cells: int, generator: random.Random, cv: float = 0.02
) -> list[dict[int, float]]:
    return [
        {
            block: (cell + 1) * level * generator.lognormvariate(0, cv)
            for block, level in enumerate(levels)
        }
        for cell in range(cells)
    ]


@pytest.mark.parametrize("cells", [1, 2, 6])
def test_a_step_is_found_with_its_block(cells: int) -> None:
    generator = random.Random(cells)
    hits, near = 0, 0
    for _ in range(50):
        found = level_change(cells_of(in_time(noises.step(14, 1.08), 30), cells, generator))
        hits += found is not None
        near += found is not None and abs(found.block - 14) <= 1 and 1.05 < found.factor < 1.11
    assert hits >= 48
    assert near >= 45


def test_a_change_too_small_to_be_told_takes_no_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def tested(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(shape, "single_change", tested)
    certain = [1.0] * 15 + [1.003] * 15
    assert level_change(cells_of(certain, 4, random.Random(1), cv=1e-5)) is None
    with pytest.raises(AssertionError):
        level_change(cells_of([1.0] * 15 + [1.01] * 15, 4, random.Random(1), cv=1e-5))


def test_a_drift_is_found_and_calm_is_not() -> None:
    generator = random.Random(7)
    drift = noises.drift(0.03, 0.95)
    drifts = [level_change(cells_of(in_time(drift, 30, seed), 4, generator)) for seed in range(50)]
    assert sum(found is not None for found in drifts) >= 25
    for blocks in (5, 8, 30):
        for cells in (1, 4, 8):
            calm = [level_change(cells_of([1.0] * blocks, cells, generator)) for _ in range(100)]
            assert sum(found is not None for found in calm) <= 5, (blocks, cells)


def test_a_drift_is_found_however_it_turns() -> None:
    generator = random.Random(8)
    common = noises.drift(0.03, 0.85)
    found = [drift(cells_of(in_time(common, 30, seed), 2, generator)) for seed in range(50)]
    assert sum(share is not None for share in found) >= 30
    assert all(0.03 < share < 0.4 for share in found if share is not None)
    for blocks in (5, 8, 30):
        calm = [drift(cells_of([1.0] * blocks, 3, generator)) for _ in range(200)]
        assert sum(share is not None for share in calm) <= 8, blocks
    assert drift([]) is None
    assert drift([dict.fromkeys(range(20), 1.0)]) is None


def test_cells_at_two_levels_are_no_change_in_time() -> None:
    found = [
        level_change([dict(enumerate(cell)) for cell in drawn(two_of(0.5), 25, 3, seed)])
        for seed in range(100)
    ]
    assert sum(change is not None for change in found) <= 5


@pytest.mark.parametrize("blocks", [5, 8, 20])
def test_noise_that_the_cells_of_a_block_share_is_no_change_in_time(blocks: int) -> None:
    generator = random.Random(9)
    found = 0
    for _ in range(100):
        shared = [generator.gauss(1, 0.02) for _ in range(blocks)]
        found += level_change(cells_of(shared, 8, generator)) is not None
    assert found <= 4


def test_a_step_explains_a_change_and_heat_does_not() -> None:
    """A machine that becomes slower and slower has the best split somewhere, too."""
    generator = random.Random(11)
    step, heat = in_time(noises.step(14, 1.08), 30), in_time(decay(0.10, 8), 30)
    explained = {"step": 0, "heat": 0}
    for _ in range(100):
        for name, levels in (("step", step), ("heat", heat)):
            cells = cells_of(levels, 2, generator, cv=0.01)
            change = level_change(cells)
            assert change is not None
            explained[name] += explains(change, cells)
    assert explained["step"] >= 93
    assert explained["heat"] <= 35


@pytest.mark.parametrize("cells", [1, 2, 8])
def test_what_all_cells_do_is_shared(cells: int) -> None:
    """Cells that follow a step, or a drift, are said to differ by chance alone: 5 %."""
    generator = random.Random(cells)
    steps, drifts = 0, 0
    for seed in range(100):
        step = cells_of(in_time(noises.step(14, 1.08), 30), cells, generator)
        steps += is_shared(step, level_change(step))
        drifts += is_shared(cells_of(in_time(noises.drift(0.03, 0.85), 30, seed), cells, generator))
    assert steps >= 90
    assert drifts >= 90


@pytest.mark.parametrize("cells", [2, 8])
def test_what_some_cells_do_is_not_shared(cells: int) -> None:
    """Half of the cells move, and the level that is the median over them does so too."""
    generator = random.Random(cells)
    found = {"step": 0, "drift": 0}
    unshared = {"step": 0, "drift": 0}
    for seed in range(60):
        still, moving = cells_of([1.0] * 30, cells, generator), cells - cells // 2
        step = still[moving:] + cells_of(in_time(noises.step(14, 1.10), 30), moving, generator)
        change = level_change(step)
        if change is not None:
            found["step"] += 1
            unshared["step"] += not is_shared(step, change)
        common = in_time(noises.drift(0.04, 0.85), 30, seed)
        wandering = still[moving:] + cells_of(common, moving, generator)
        if drift(wandering) is not None:
            found["drift"] += 1
            unshared["drift"] += not is_shared(wandering)
    assert unshared["step"] >= 0.95 * found["step"] > 50
    assert unshared["drift"] >= 0.70 * found["drift"] > 15


def test_what_a_clock_makes_of_a_change_is_no_difference() -> None:
    """A step of 8 % that a clock reads as none, and as one tick of 10 %."""
    fine = dict(enumerate([1.0] * 15 + [1.08] * 15))
    for read in (1.0, 1.1):
        coarse = dict(enumerate([1.0] * 15 + [read] * 15))
        assert not is_shared([fine, coarse], LevelChange(15, 1.08))
        assert is_shared([fine, coarse], LevelChange(15, 1.08), [0.0, 0.1])
    assert is_shared([fine, fine], LevelChange(15, 1.08))


def test_a_coarse_clock_is_no_pair_of_levels() -> None:
    cells = drawn(log_normal(0.01), 25, 200, 10)
    ticks = [[round(value / 0.01) * 0.01 for value in cell] for cell in cells]
    assert sum(two_levels(cell) is not None for cell in ticks) <= 10


@pytest.mark.parametrize(
    ("last", "expected"), [(1.1, 0.1), (0.9, -0.1), (1.0, None), (1.004, None)]
)
def test_the_course_of_a_run_is_that_of_its_last_third(last: float, expected: float | None) -> None:
    """A level that came back, or that hardly changed, has none; nor have two blocks."""
    level = [1.0] * 4 + [3.0] * 4 + [last] * 4
    cells = [{block: factor * value for block, value in enumerate(level)} for factor in (1.0, 2.0)]
    assert shape.course(cells) == (None if expected is None else pytest.approx(expected))
    assert shape.course([{block: cell[block] for block in (0, 8)} for cell in cells]) is None
    assert shape.course([]) is None
