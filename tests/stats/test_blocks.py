"""What the trials of a block share drops out."""

from __future__ import annotations

import random

import pytest

from concurve.stats.best import without_block_effects
from concurve.stats.intervals import paired_ratio, ratio_estimate


def drawn(blocks: int, seed: int) -> list[dict[int, float]]:
    """Two cells whose blocks vary by a factor of e; the second is 5 % slower."""
    random_ = random.Random(seed)
    effects = [random_.lognormvariate(0, 1) for _ in range(blocks)]
    return [
        {
            block: factor * effect * random_.lognormvariate(0, 0.01)
            for block, effect in enumerate(effects)
        }
        for factor in (1.0, 1.05)
    ]


def test_a_difference_shows_that_the_blocks_hide() -> None:
    first, second = drawn(10, 1)
    columns = list(second.values()), list(first.values())
    apart, paired = ratio_estimate(*columns), paired_ratio(*columns)
    assert apart is not None
    assert paired is not None
    assert apart.low is not None
    assert apart.low < 1 < (apart.high or 0)
    assert paired.low is not None
    assert 1.03 < paired.low < 1.05 < (paired.high or 0) < 1.07
    left = without_block_effects([first, second])
    assert max(left[0]) < min(left[1])


def test_the_interval_in_pairs_covers() -> None:
    covered = 0
    for seed in range(400):
        first, second = drawn(6, seed)
        found = paired_ratio(list(second.values()), list(first.values()))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.05 <= found.high
    assert 0.92 <= covered / 400 <= 0.98


def test_only_blocks_that_all_cells_hold_are_kept() -> None:
    left = without_block_effects([{0: 1.0, 1: 2.0, 2: 4.0}, {1: 2.0, 2: 4.0}, {}])
    assert left[2] == []
    assert left[0] == pytest.approx(left[1])
    assert len(left[0]) == 2


def test_there_is_no_ratio_without_pairs_or_of_nothing() -> None:
    assert paired_ratio([], []) is None
    assert paired_ratio([1.0, 0.0], [1.0, 1.0]) is None
    single = paired_ratio([3.0], [2.0])
    assert single is not None
    assert single.value == pytest.approx(1.5)
    assert single.low is None
