"""Which level is recommended, by simulation."""

from __future__ import annotations

import pytest
from recommended import CURVES, NOISES, tally

from tests.helpers.counts import at_most, few_or_many

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("runs", few_or_many(30, 100))
def test_a_level_that_is_recommended_is_seldom_worse_than_is_alike(noise: str, runs: int) -> None:
    """By more than 5 % in at most 5 % of the runs, and two standard deviations."""
    for curve in CURVES:
        for trials in (3, 5, 10):
            found = tally(curve, noise, trials, runs)
            assert found.wrong_now * runs <= at_most(0.05, runs), (curve, trials)
            assert found.contradicted_now == 0


def test_ten_trials_of_little_noise_mostly_decide() -> None:
    """Neighbouring ratios of one pair in twenty seem to depend on each other, and are spread."""
    for curve in CURVES:
        assert tally(curve, "log-normal 2 %", 10, 100).refused <= 0.2, curve
