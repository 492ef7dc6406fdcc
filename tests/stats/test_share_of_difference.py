"""Which share of a difference a part of it is, and its interval."""

from __future__ import annotations

import random

import pytest

from concurve.stats.means import mean_difference, share_of_difference


def test_a_share_without_noise_is_exact() -> None:
    found = share_of_difference(([3.0, 3.0], [1.0, 1.0]), ([9.0, 9.0], [1.0, 1.0]))
    assert (found.value, found.low, found.high) == pytest.approx((0.25, 0.25, 0.25), abs=1e-5)


def test_a_single_trial_has_no_interval() -> None:
    found = share_of_difference(([3.0], [1.0]), ([9.0], [1.0]))
    assert found.value == 0.25 and found.low is None and found.high is None


@pytest.mark.parametrize(("part", "ends"), [(12.0, (1.0, 1.0, 1.0)), (-3.0, (0.0, 0.0, 0.0))])
def test_a_part_beyond_the_whole_is_all_of_it_or_nothing(
    part: float, ends: tuple[float, float, float]
) -> None:
    found = share_of_difference(([part] * 3, [0.0] * 3), ([8.0] * 3, [0.0] * 3))
    assert (found.value, found.low, found.high) == ends


def test_the_interval_holds_the_noise_of_the_whole() -> None:
    """The part is always the same; how much is lost is not."""
    part, whole = ([2.0] * 6, [0.0] * 6), ([3.0, 5.0, 3.5, 4.5, 2.5, 5.5], [0.0] * 6)
    found = share_of_difference(part, whole)
    assert found.value == pytest.approx(0.5)
    assert found.low is not None and found.high is not None
    assert found.low < 0.42 and found.high > 0.6


def test_a_whole_that_may_be_nothing_bounds_no_share() -> None:
    part, whole = ([2.0] * 4, [0.0] * 4), ([-3.0, 5.0, 9.0, 4.0], [0.0] * 4)
    assert (mean_difference(*whole).low or 0.0) < 0
    assert share_of_difference(part, whole).high == 1.0


def test_the_interval_covers_the_true_share() -> None:
    """A part of 0.4 of what is lost, beside a rest that varies as CPU time does."""
    rng, covered, runs = random.Random(5), 0, 300
    for _ in range(runs):

        def trials(part: float, rest: float) -> tuple[list[float], list[float]]:
            parts = [rng.gauss(part, 0.05) for _ in range(8)]
            return parts, [it + rng.gauss(rest, 0.15) for it in parts]

        (own, all_own), (before, all_before) = trials(0.4, 1.6), trials(0.0, 1.0)
        found = share_of_difference((own, before), (all_own, all_before))
        assert found.low is not None and found.high is not None
        covered += found.low <= 0.4 <= found.high
    assert covered / runs > 0.92
