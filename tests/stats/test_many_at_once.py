"""What is computed of many cells at once is what each of them gives alone."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from scipy.special import bdtr

from concurve.estimate import Estimate
from concurve.stats import shape
from concurve.stats.best import best_set
from concurve.stats.blocks import MANY, Blocks, block_ratio, block_ratios
from concurve.stats.centre import centre_estimate, centre_estimates
from concurve.stats.moments import medians
from concurve.stats.sign_test import binomial_below
from concurve.stats.signed_ranks import p_values_above, ranked, values_and_intervals


def cell(generator: np.random.Generator, n: int, skewed: bool = False) -> Blocks:
    noise = generator.lognormal(0, 0.02, n)
    if skewed:
        noise += generator.exponential(0.3, n)
    return dict(enumerate((2 * noise).tolist()))


def same(first: Estimate | None, second: Estimate | None) -> bool:
    if first is None or second is None:
        return first is second
    ends = ((first.value, second.value), (first.low, second.low), (first.high, second.high))
    alike = all(
        (a is None and b is None)
        or (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-12))
        for a, b in ends
    )
    return alike and (first.n, first.confidence) == (second.n, second.confidence)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 9, 60, 61, 100, 601, 700])
@pytest.mark.parametrize("is_staged", [False, True])
def test_ratios_of_many_cells(n: int, is_staged: bool) -> None:
    generator = np.random.default_rng(n)
    pairs = [(cell(generator, n, bool(i % 2)), cell(generator, n)) for i in range(MANY)]
    off = [(0.0, 0.01, 0.0, 0.002, 0.1)[i % 5] for i in range(MANY)]
    together = block_ratios(pairs, 0.99, is_staged, off)
    alone = [
        block_ratio(*pair, 0.99, is_staged, step) for pair, step in zip(pairs, off, strict=True)
    ]
    assert all(map(same, together, alone))


def test_pairs_of_other_lengths_and_without_ratios() -> None:
    generator = np.random.default_rng(3)
    whole, short = cell(generator, 12), cell(generator, 7)
    zero: Blocks = {**whole, 3: 0.0}
    shifted: Blocks = {block + 5: value for block, value in whole.items()}
    turned: Blocks = dict(reversed(list(whole.items())))
    pairs = [
        (whole, cell(generator, 12)), (short, whole), (zero, whole), (whole, zero),
        (shifted, whole), (turned, cell(generator, 12)), ({}, whole),
    ]  # fmt: skip
    pairs *= MANY
    assert all(map(same, block_ratios(pairs), [block_ratio(*pair) for pair in pairs]))
    assert block_ratios([]) == []


def test_equal_values_have_an_interval_of_no_width() -> None:
    one: Blocks = dict.fromkeys(range(20), 3.0)
    found = block_ratios([(one, one)] * MANY)[-1]
    assert found is not None and (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


def test_rows_are_judged_as_a_sample_alone_is() -> None:
    rows = np.sort(np.random.default_rng(5).standard_normal((30, 80)) ** 3, axis=1)
    found = values_and_intervals(rows, 0.999)
    for row, value, low, high in zip(rows.tolist(), *found, strict=True):
        alone = ranked(row)
        assert alone is not None
        assert (value, low, high) == pytest.approx(alone.value_and_interval(0.999), rel=1e-12)


def test_no_shape_is_overlooked_and_most_cells_are_left_out() -> None:
    generator = np.random.default_rng(11)
    rows = np.exp(0.01 * generator.standard_normal((300, 40)))
    rows[:20, :15] *= 1.2  # two levels
    rows[20:30, 0] *= 3  # a slow trial
    rows[30:40, 0] /= 3  # a fast one
    rows[40] = 1.0
    rows[41, 0] = -1.0
    for better in ("lower", "higher", "neither"):
        judged = shape.may_have_shape(rows, better)
        has = [
            shape.two_levels(row) is not None
            or shape.slow_tail(row, better) is not None
            or shape.fast_tail(row, better) is not None
            for row in rows.tolist()
        ]
        assert not [i for i, found in enumerate(has) if found and not judged[i]]
        assert sum(has) >= 20 and judged.sum() <= 60, "of 300"


def test_few_trials_have_no_shape() -> None:
    assert not shape.may_have_shape(np.full((3, 5), 2.0), "lower").any()


@pytest.mark.parametrize("n", [1, 2, 7, 60, 1000, 10_000, 10_001])
def test_tails_of_fair_coins(n: int) -> None:
    places = {-1, 0, 1, n // 3, n // 2 - 1, n // 2, n // 2 + 1, n - 1, n, n + 1}
    for most in sorted(place for place in places if 0 <= place <= n):
        assert binomial_below(n, most) == pytest.approx(float(bdtr(most, n, 0.5)), rel=1e-11)
    assert binomial_below(min(n, 100), -1) == 0.0


def test_a_bound_that_is_enough_changes_no_best_set() -> None:
    generator = np.random.default_rng(2)
    rows = generator.normal(0.5, 0.1, (50, 12))
    exact = p_values_above(rows, np.zeros(50))
    bounded = p_values_above(rows, np.zeros(50), 0.01)
    assert (exact <= bounded).all() and (bounded[exact > 0.01] == exact[exact > 0.01]).all()
    assert (bounded <= 0.01).tolist() == (exact <= 0.01).tolist()
    cells = [cell(generator, 12) for _ in range(3)]
    slow: Blocks = {block: 2 * value for block, value in cells[0].items()}
    assert best_set([*cells, slow]).members == (0, 1, 2)


def numbers_of(figure: Estimate) -> list[float]:
    """Every number of an estimate; -1e9 for one that it has not."""
    names = ("value", "low", "high", "median", "min", "max", "stdev", "mean")
    values = [getattr(figure, name) for name in names]
    return [-1e9 if value is None else value for value in values]


@pytest.mark.parametrize("n", [1, 2, 6, 7, 40, 190])
@pytest.mark.parametrize("is_staged", [False, True])
def test_centres_of_many_cells(n: int, is_staged: bool) -> None:
    generator = np.random.default_rng(n)
    rows = np.concatenate(
        [
            generator.lognormal(0, 0.3, (20, n)),
            generator.normal(0, 1, (20, n)),  # below 0
            generator.integers(0, 3, (20, n)).astype(float),  # ties, and zeros
            np.full((2, n), 3.0),
            np.full((1, n), 1e300),
        ]
    )
    off = [(0.0, 0.1)[i % 2] for i in range(len(rows))]
    for some, steps in ((rows, off), (rows[:-1], off[:-1])):
        together = centre_estimates(some, "s", ceiling=1.0, is_staged=is_staged, resolutions=steps)
        for row, step, found in zip(some.tolist(), steps, together, strict=True):
            alone = centre_estimate(row, "s", ceiling=1.0, is_staged=is_staged, resolution=step)
            assert numbers_of(found) == pytest.approx(numbers_of(alone), rel=1e-12, abs=1e-12)
            assert (found.n, found.unit, found.confidence) == (alone.n, "s", 0.95)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_centre_of_what_is_not_finite_is_refused(odd: float) -> None:
    rows = np.ones((3, 8))
    rows[1, 2] = odd
    with pytest.raises(ValueError, match="not all finite"):
        centre_estimates(rows)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 201])
def test_the_medians_of_rows_are_those_of_each(n: int) -> None:
    rows = np.random.default_rng(n).normal(size=(7, n))
    rows[0] = 0.1
    assert medians(rows).tolist() == [statistics.median(row) for row in rows.tolist()]
