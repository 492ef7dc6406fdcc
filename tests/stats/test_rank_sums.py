"""The rank-sum test, against published tables and against scipy."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.stats.rank_sums import shifted

FINITE = st.floats(min_value=-1e6, max_value=1e6)


def test_the_rank_sum_test_agrees_with_scipy() -> None:
    from scipy.stats import mannwhitneyu

    generator = random.Random(11)
    for n, m in ((4, 5), (5, 5), (8, 6), (12, 20), (30, 30)):
        top = [generator.gauss(0.4, 1) for _ in range(n)]
        bottom = [generator.gauss(0, 1) for _ in range(m)]
        found = shifted(top, bottom)
        assert found is not None
        assert min(top) < max(bottom)
        greater = mannwhitneyu(top, bottom, alternative="greater", method="exact").pvalue
        less = mannwhitneyu(top, bottom, alternative="less", method="exact").pvalue
        assert found.p_above() == pytest.approx(greater)
        assert found.p_below() == pytest.approx(less)


def test_the_interval_of_a_shift_has_published_bounds() -> None:
    """Hollander & Wolfe (1999), example 4.1: permeability of membranes, at term and before."""
    at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
    before = [1.15, 0.88, 0.90, 0.74, 1.21]
    found = shifted(at_term, before)
    assert found is not None
    assert found.value == pytest.approx(0.305)
    assert found.p_above() == pytest.approx(0.1272, abs=1e-4)
    low, high = found.interval()
    assert low == pytest.approx(-0.15)
    assert high == pytest.approx(0.76)


@given(
    st.lists(FINITE, min_size=2, max_size=12),
    st.lists(FINITE, min_size=2, max_size=12),
    FINITE,
    st.sampled_from([0.8, 0.95, 0.999]),
)
def test_the_interval_of_a_shift_holds_what_its_test_does_not_reject(
    top: list[float], bottom: list[float], bound: float, confidence: float
) -> None:
    found = shifted(top, bottom)
    assert found is not None
    low, high = found.interval(confidence)
    tail = (1 - confidence) / 2
    scale = 1e-9 * (1 + max(map(abs, [*top, *bottom])))
    assert low - scale <= found.value <= high + scale
    if bound < low - scale:
        assert found.p_above(bound) <= tail * (1 + 1e-9)
    if low + scale < bound < high - scale:
        assert found.p_above(bound) > tail * (1 - 1e-9)
    assert shifted([1.0], bottom) is None


def test_many_values_of_two_samples_are_taken_as_normal() -> None:
    from scipy.stats import mannwhitneyu

    generator = random.Random(12)
    top, bottom = ([generator.gauss(shift, 1) for _ in range(80)] for shift in (0.3, 0))
    found = shifted(top, bottom)
    assert found is not None
    expected = mannwhitneyu(top, bottom, alternative="greater", method="asymptotic").pvalue
    assert found.p_above() == pytest.approx(expected, rel=1e-3)
    low, high = found.interval(1 - 2 * found.p_above())
    assert abs(low) < 0.02 < high


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [6, 9, 20, 70])
def test_the_bounds_are_the_first_values_that_are_not_rejected(n: int, confidence: float) -> None:
    """Between each two adjacent differences the test changes its p-value."""
    generator = random.Random(n)
    tail = (1 - confidence) / 2
    top, bottom = ([generator.gauss(0, 1) for _ in range(n)] for _ in "ab")
    found = shifted(top, bottom)
    assert found is not None
    low, high = found.interval(confidence)
    for step in (1e-9, 1e-3):
        assert found.p_above(low - step) <= tail < found.p_above(low + step)
        assert found.p_below(high + step) <= tail < found.p_below(high - step)
