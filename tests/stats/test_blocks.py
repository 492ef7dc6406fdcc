"""What the trials of a block share drops out of the ratio of two cells."""

from __future__ import annotations

import random

from concurve.stats.blocks import block_ratio
from concurve.stats.comparison import log_shift


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
    apart = log_shift([list(second.values())], [list(first.values())])
    paired = block_ratio(second, first)
    assert apart is not None
    assert paired is not None
    low, high = apart.interval()
    assert low < 0 < high
    assert paired.low is not None
    assert 1.03 < paired.low < 1.05 < (paired.high or 0) < 1.07


def test_the_interval_by_blocks_covers() -> None:
    covered = 0
    for seed in range(400):
        first, second = drawn(6, seed)
        found = block_ratio(second, first)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.05 <= found.high
    assert 0.93 <= covered / 400 <= 0.99


def test_there_is_no_ratio_without_a_common_block_or_of_nothing() -> None:
    assert block_ratio({}, {}) is None
    assert block_ratio({0: 1.0}, {1: 1.0}) is None
    assert block_ratio({0: 1.0, 1: 0.0}, {0: 1.0, 1: 1.0}) is None
    single = block_ratio({0: 3.0, 1: 7.0}, {0: 2.0})
    assert single is not None
    assert single.value == 1.5
    assert single.low is None


def test_what_slows_a_block_drops_out_of_its_ratio() -> None:
    generator = random.Random(3)
    slow = [1 + generator.random() * 5 for _ in range(8)]
    top = {block: 2 * share * generator.gauss(1, 0.001) for block, share in enumerate(slow)}
    bottom = {block: share * generator.gauss(1, 0.001) for block, share in enumerate(slow)}
    del bottom[3]
    ratio = block_ratio(top, bottom)
    assert ratio is not None
    assert ratio.n == 7
    assert ratio.low is not None
    assert ratio.high is not None
    assert 1.99 < ratio.low < ratio.high < 2.01
