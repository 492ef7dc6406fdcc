"""Two levels, slow tails and changes in time are found where they are, and rarely elsewhere."""

from __future__ import annotations

import random

import pytest

from concurve.stats.shape import level_change, slow_tail, two_levels
from tests.helpers.noise import (
    TWO_LEVELS,
    Judged,
    drift,
    log_normal,
    quantised,
    slow_trials,
    step,
)
from tests.helpers.noise import two_levels as at_two_levels

SIMULATIONS = 400


def shares(judged: Judged) -> list[tuple[int, float]]:
    """For each number of trials, the share of cells in which two levels are found."""
    found = []
    for trials in judged.trials:
        generator = random.Random(f"{judged.name}/{trials}")
        cells = ([judged.draw(generator) for _ in range(trials)] for _ in range(SIMULATIONS))
        found.append((trials, sum(two_levels(cell) is not None for cell in cells) / SIMULATIONS))
    return found


@pytest.mark.parametrize("judged", TWO_LEVELS, ids=lambda judged: judged.name)
def test_two_levels_are_found_where_they_are(judged: Judged) -> None:
    for trials, share in shares(judged):
        # A share of 2 % in 400 cells has a standard error of 0.7 %.
        assert judged.at_least <= share <= judged.at_most + 0.015, (trials, share)


def test_both_levels_are_named_with_their_trials() -> None:
    found = two_levels([*[1.0, 1.01, 0.99] * 4, 1.0, *[1.15, 1.14, 1.16] * 4])
    assert found is not None
    assert (found.trials_low, found.trials_high) == (13, 12)
    assert found.low == pytest.approx(1.0, rel=0.01)
    assert found.high == pytest.approx(1.15, rel=0.01)


def test_equal_readings_and_few_have_no_levels() -> None:
    assert two_levels([1.0] * 20) is None
    assert two_levels([1.0, 1.0, 2.0, 2.0]) is None
    assert two_levels([0.0] * 10 + [1.0] * 10) is None


def test_a_tail_is_no_second_level() -> None:
    generator = random.Random(5)
    draw = slow_trials()
    cells = [[draw(generator) for _ in range(25)] for _ in range(SIMULATIONS)]
    # Two or three slow trials that lie close together by chance look like a level.
    assert sum(two_levels(cell) is not None for cell in cells) < 0.25 * SIMULATIONS
    tails = [slow_tail(cell, "lower") for cell in cells]
    slow = [sum(value > 1.1 for value in cell) for cell in cells]
    told = [tail is not None for tail, count in zip(tails, slow, strict=True) if count]
    assert sum(told) >= 0.95 * len(told)


@pytest.mark.parametrize("trials", [8, 12, 30])
def test_normal_noise_has_no_tail(trials: int) -> None:
    generator = random.Random(trials)
    draw = log_normal(0.03)
    cells = ([draw(generator) for _ in range(trials)] for _ in range(SIMULATIONS))
    assert sum(slow_tail(cell, "lower") is not None for cell in cells) <= 0.03 * SIMULATIONS


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
        found = level_change(cells_of(step(30, 14), cells, generator))
        hits += found is not None
        near += found is not None and abs(found.block - 14) <= 1 and 1.05 < found.factor < 1.11
    assert hits >= 48
    assert near >= 45


def test_a_drift_is_found_and_calm_is_not() -> None:
    generator = random.Random(7)
    drifts = [level_change(cells_of(drift(30, generator), 4, generator)) for _ in range(50)]
    assert sum(found is not None for found in drifts) >= 25
    for blocks in (5, 8, 30):
        for cells in (1, 4, 8):
            calm = [level_change(cells_of([1.0] * blocks, cells, generator)) for _ in range(100)]
            assert sum(found is not None for found in calm) <= 5, (blocks, cells)


def test_cells_at_two_levels_are_no_change_in_time() -> None:
    generator = random.Random(8)
    draw = at_two_levels(0.5)
    found = [
        level_change([{block: draw(generator) for block in range(25)} for _ in range(3)])
        for _ in range(100)
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


def test_a_coarse_clock_is_no_pair_of_levels() -> None:
    generator = random.Random(10)
    draw = quantised(log_normal(0.01), 0.01)
    cells = [[draw(generator) for _ in range(25)] for _ in range(200)]
    assert sum(two_levels(cell) is not None for cell in cells) <= 10
