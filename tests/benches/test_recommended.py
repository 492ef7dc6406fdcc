"""Which level is recommended, by simulation."""

from __future__ import annotations

import pytest
from recommended import CURVES, NOISES, tally

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("noise", NOISES)
def test_a_level_that_is_recommended_is_seldom_worse_than_is_alike(noise: str) -> None:
    """By more than 5 % in at most 5 % of 100 runs, and two standard deviations."""
    for curve in CURVES:
        for trials in (3, 5, 10):
            found = tally(curve, noise, trials, 100)
            assert found.wrong_now <= 0.05 + 2 * 0.022, (curve, trials)
            assert found.contradicted_now == 0


def test_ten_trials_of_little_noise_mostly_decide() -> None:
    """Neighbouring ratios of one pair in twenty seem to depend on each other, and are spread."""
    for curve in CURVES:
        assert tally(curve, "log-normal 2 %", 10, 100).refused <= 0.2, curve
