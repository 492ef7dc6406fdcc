"""The signed-rank test, against published tables and by simulation of what it promises."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.stats import signed_ranks
from concurve.stats.signed_ranks import p_values_above, ranked

FINITE = st.floats(min_value=-1e6, max_value=1e6)


def test_signed_ranks_agree_with_scipy_and_skewed_values_with_the_sign_test_too() -> None:
    from scipy.stats import binomtest, wilcoxon

    generator = random.Random(1)
    skewed = set()
    for n in (3, 5, 8, 20, 40) * 4:
        values = [generator.gauss(0.3, 1) for _ in range(n)]
        found = ranked(values)
        assert found is not None
        if not min(values) < 0 < max(values):
            continue
        skewed.add(found.is_skewed)
        positive = sum(value > 0 for value in values)
        above = float(wilcoxon(values, alternative="greater", method="exact").pvalue)
        below = float(wilcoxon(values, alternative="less", method="exact").pvalue)
        if found.is_skewed:
            above = max(above, binomtest(positive, n, alternative="greater").pvalue)
            below = max(below, binomtest(positive, n, alternative="less").pvalue)
        assert found.p_above() == pytest.approx(above)
        assert found.p_below() == pytest.approx(below)
    assert skewed == {False, True}


def test_ratios_of_cells_with_different_shapes_hold_the_ratio_of_their_medians() -> None:
    """One cell is slow in 35 % of its trials, the other in 10 %: the signed-rank test alone holds
    less than nine in ten."""
    generator = random.Random(3)
    held, runs, apart_medians = 0, 300, 0.00597

    def trial(share: float) -> float:
        slow = math.log(1.15) if generator.random() < share else 0.0
        return generator.gauss(0, 0.01) + slow

    for _ in range(runs):
        found = ranked([trial(0.35) - trial(0.10) for _ in range(30)])
        assert found is not None
        bounds = found.interval()
        held += bounds[0] <= apart_medians <= bounds[1]
    assert held / runs >= 0.93


def test_very_many_values_have_the_same_bounds_without_a_list_of_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = random.Random(4)
    for n in (61, 200, 333):
        found = ranked([round(generator.gauss(1, 0.2), 2) for _ in range(n)])
        assert found is not None
        listed = found.value, *found.interval()
        with monkeypatch.context() as patch:
            patch.setattr(signed_ranks, "_LISTED_MOST", 60)
            assert (found.value, *found.interval()) == pytest.approx(listed, abs=1e-8)


def test_the_interval_of_the_signed_rank_test_has_published_bounds() -> None:
    """Hollander & Wolfe (1999), example 3.3: Hamilton depression scale, nine patients."""
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    found = ranked([second - first for first, second in zip(before, after, strict=True)])
    assert found is not None
    assert found.value == pytest.approx(-0.46)
    low, high = found.interval(0.96)
    assert low == pytest.approx(-0.786)
    assert high == pytest.approx(-0.010)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [6, 9, 20, 70])
def test_the_bounds_are_the_first_values_that_are_not_rejected(n: int, confidence: float) -> None:
    """Between each two adjacent means of pairs the test changes its p-value."""
    generator = random.Random(n)
    tail = (1 - confidence) / 2
    found = ranked([generator.gauss(0, 1) for _ in range(n)])
    assert found is not None
    low, high = found.interval(confidence)
    for step in (1e-9, 1e-3):
        assert found.p_above(low - step) <= tail < found.p_above(low + step)
        assert found.p_below(high + step) <= tail < found.p_below(high - step)


def test_few_values_have_the_wider_of_range_and_student() -> None:
    found = ranked([1.0, 1.0, 3.0, 5.0, 5.0])
    assert found is not None
    low, high = found.interval()
    assert low == pytest.approx(3 - 2.7764 * math.sqrt(4 / 5), abs=1e-3)
    assert high == pytest.approx(6 - low)
    skewed = ranked([1.0, 1.0, 1.0, 1.0, 5.0])
    assert skewed is not None
    assert skewed.interval()[1] == 5.0


@given(st.lists(FINITE, min_size=2, max_size=30), FINITE, st.sampled_from([0.8, 0.95, 0.99]))
def test_an_interval_holds_what_its_test_does_not_reject(
    values: list[float], bound: float, confidence: float
) -> None:
    found = ranked(values)
    assert found is not None
    low, high = found.interval(confidence)
    assert low <= found.value + 1e-6 * abs(found.value) + 1e-9
    tail = (1 - confidence) / 2
    scale = 1e-9 * (1 + max(map(abs, values)))
    if bound < low - scale:
        assert found.p_above(bound) <= tail * (1 + 1e-9)
    if low + scale < bound < high - scale:
        assert found.p_above(bound) > tail * (1 - 1e-9)


#: Values that tie, lie around the bound symmetrically, or are alike.
TYING = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0]) | FINITE


@given(
    st.lists(
        st.tuples(st.lists(TYING, max_size=12), st.sampled_from([-1.0, 0.0, 0.5])),
        min_size=1,
        max_size=8,
    )
)
def test_many_samples_at_once_are_tested_like_each_alone(
    samples: list[tuple[list[float], float]],
) -> None:
    import numpy as np

    rows = np.full((len(samples), 13), np.nan)
    for row, (values, _) in zip(rows, samples, strict=True):
        row[: len(values)] = values
        row[:] = np.roll(row, len(values))
    bounds = np.array([bound for _, bound in samples])
    found = p_values_above(rows, bounds)
    for p, (values, bound) in zip(found.tolist(), samples, strict=True):
        alone = ranked(values)
        assert p == pytest.approx(1.0 if alone is None else alone.p_above(bound), abs=1e-12)


def test_very_many_values_that_floats_can_hardly_part_have_an_interval() -> None:
    ulp = math.ulp(1.0)
    for steps in (1, 2, 3):
        values = [1.0 + ulp * (index % (steps + 1)) for index in range(3000)]
        found = ranked(values)
        assert found is not None
        low, high = found.interval()
        assert 1.0 <= low <= high <= 1.0 + steps * ulp


def test_of_very_many_values_on_one_side_students_t_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It could be no less than the ranks say, and scipy takes long to import."""

    def asked(*_: object) -> float:
        raise AssertionError("Student's t was asked")

    monkeypatch.setattr(signed_ranks, "t_upper", asked)
    rng = random.Random(1)
    many = ranked([rng.gauss(5, 1) + 10 for _ in range(1_200)])
    assert many is not None
    assert many.p_above(0.0) == 0.0 == many.p_below(40.0)
    few = ranked(many.values[:50])
    assert few is not None
    with pytest.raises(AssertionError, match="Student"):
        few.p_above(0.0)
    with pytest.raises(AssertionError, match="Student"):
        few.p_below(40.0)


def test_values_below_a_bound_say_what_the_mirrored_ones_do() -> None:
    rng = random.Random(2)
    for n in (5, 40, 1_200):
        found = ranked([rng.expovariate(1) for _ in range(n)], resolution=0.01)
        assert found is not None
        mirrored = ranked([-value for value in found.values], resolution=0.01)
        assert mirrored is not None
        for bound in (-1.0, 0.0, 0.3, 0.7, 1.0, 3.0, found.values[-1], found.values[-1] + 0.02):
            assert found.p_below(bound) == mirrored.p_above(-bound)
