"""Which level of a best set to use: one that is shown to be as good as the best, or none."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from concurve.stats.best import RIVALS_MAX, best_set, choose
from concurve.stats.blocks import Blocks, log_ratios
from concurve.stats.comparison import EFFECT, directions


def by_block(*columns: Iterable[float]) -> list[Blocks]:
    """Each column in the blocks 0, 1, 2, …"""
    return [dict(enumerate(map(float, column))) for column in columns]


def around(middle: float, spread: float) -> list[float]:
    """Five values whose noise is the same for every level: ratios are exact."""
    return [middle * (1 + spread * z) for z in (-1.2, -0.6, 0.0, 0.6, 1.2)]


def wavering(middle: float, spread: float) -> list[float]:
    """Five values in another order."""
    values = around(middle, spread)
    return [values[place] for place in (3, 0, 4, 1, 2)]


def chosen(*cells: Blocks, lower_is_better: bool = True) -> int | None:
    best = best_set(cells, lower_is_better)
    return choose(cells, best, best.members, lower_is_better).chosen


def test_the_smallest_that_is_shown_to_be_as_good_is_chosen() -> None:
    cells = by_block(around(1.5, 0.01), around(1.0, 0.01), wavering(1.0, 0.01))
    best = best_set(cells)
    found = choose(cells, best, best.members)
    assert best.members == (1, 2)
    assert (found.chosen, found.passed, found.others) == (1, (), (2,))


def test_a_smaller_one_that_may_be_worse_by_more_than_is_alike_is_not_chosen() -> None:
    """By the figures both are alike, and the interval of their ratio reaches from 0.8 to 1.25."""
    cells = by_block(around(1.0, 0.08), wavering(1.0, 0.08))
    best = best_set(cells)
    found = choose(cells, best, best.members)
    assert best.members == (0, 1)
    assert found.chosen is None
    assert len(found.others) == 1, "the other one may be as good"


def test_one_that_the_figures_have_far_behind_is_passed_over() -> None:
    """It is not told from the leader, which nothing has behind it by more than 5 %."""
    slow, fast = [1.0, 1.1, 1.4, 1.5, 1.2], [1.0, 0.95, 0.9, 1.02, 0.97]
    cells = by_block(slow, fast)
    best = best_set(cells, is_staged=True)
    assert best.members == (0, 1)
    found = choose(cells, best, best.members, is_staged=True)
    assert (found.chosen, found.passed, found.others) == (1, (0,), ())


def test_one_that_a_comparison_of_the_two_tells_to_be_worse_is_not_chosen_nor_as_good() -> None:
    """Among eight levels it is not told from the best; alone with it, it is."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        cells = by_block(*(m * rng.lognormal(0, 0.02, 6) for m in (1.04, 1.0, *[2.0] * 6)))
        if best_set(cells).members != (0, 1):
            continue
        told = directions([log_ratios(cells[0], cells[1])], EFFECT)
        if told == ["higher"]:
            break
    else:
        raise AssertionError("no such run in 200")
    found = choose(cells, best_set(cells), (0, 1))
    assert (found.chosen, found.passed) == (1, ())


def test_a_higher_figure_may_be_better() -> None:
    cells = by_block(around(1.0, 0.01), around(2.0, 0.01), wavering(2.0, 0.01))
    assert chosen(*cells, lower_is_better=False) == 1
    assert chosen(*cells) == 0


def test_single_trials_and_no_common_blocks_decide_nothing() -> None:
    assert chosen({0: 1.0}, {0: 2.0}) is None
    assert chosen({0: 1.0, 1: 1.0}, {2: 1.0, 3: 1.0}) is None


def test_figures_of_0_are_compared_by_their_differences() -> None:
    zero, some = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [5.0, 7.0, 6.0, 4.0, 5.0, 8.0, 5.0]
    assert chosen(*by_block(zero, some)) == 0
    assert chosen(*by_block(some, zero), lower_is_better=False) == 0
    assert chosen(*by_block([0.0] * 5, [0.0] * 5)) == 0, "equal ones are as good"


def test_a_coarse_clock_shows_no_level_to_be_as_good() -> None:
    reads = itertools.cycle((0.02, 0.03, 0.03, 0.02, 0.02))
    cells = by_block([next(reads) for _ in range(7)], [next(reads) for _ in range(7)])
    best = best_set(cells, resolutions=[0.01, 0.01])
    assert choose(cells, best, best.members, resolutions=[0.01, 0.01]).chosen is None


def test_very_many_levels_take_no_time() -> None:
    rng = np.random.default_rng(1)
    cells = by_block(*rng.lognormal(0, 0.3, (20 * RIVALS_MAX, 5)))
    best = best_set(cells)
    assert len(best.members) > RIVALS_MAX
    assert choose(cells, best, best.members).chosen is None


TIMES = st.lists(
    st.lists(st.floats(min_value=0.5, max_value=2.0), min_size=4, max_size=4),
    min_size=2,
    max_size=5,
)


@settings(max_examples=200, deadline=None)
@given(TIMES, st.floats(min_value=0.001, max_value=1.0), st.booleans())
def test_no_comparison_of_two_levels_contradicts_what_is_chosen(
    rows: list[list[float]], shrunk: float, lower: bool
) -> None:
    """Whatever the trials are: if a level is chosen, no other one is told to be better."""
    cells = by_block(*([value**shrunk for value in row] for row in rows))
    best = best_set(cells, lower)
    found = choose(cells, best, best.members, lower).chosen
    if found is None:
        return
    for index, other in enumerate(cells):
        if index != found:
            worse = "higher" if lower else "lower"
            assert directions([log_ratios(cells[found], other)], EFFECT) != [worse]
