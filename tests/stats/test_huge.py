"""Figures at the limits of a float: no error, and ordinary figures exactly as without care."""

from __future__ import annotations

import math
import statistics

import pytest

from concurve.stats.best import best_set, gap
from concurve.stats.centre import centre_estimate
from concurve.stats.comparison import log_shift
from concurve.stats.means import mean_difference, mean_estimate
from concurve.stats.moments import mean, square, stdev

HUGE = [[1e308] * 3, [1e308, 1.0, 2.0], [1e308, -1e308, 1e308], [1e300, 1e-300, 1.0], [5e-324] * 3]


def test_the_mean_of_huge_values_is_finite() -> None:
    assert mean([1e308] * 4) == pytest.approx(1e308)
    assert mean([-1e308] * 3) == pytest.approx(-1e308)
    assert mean([1e308] * 5) == pytest.approx(1e308)


def test_an_ordinary_mean_is_that_of_the_standard_library_bit_for_bit() -> None:
    for count in range(1, 150):
        values = [math.sin(n) * 10.0 ** (n % 13 - 6) for n in range(count)]
        assert mean(values) == statistics.fmean(values)
        assert square(values[-1]) == values[-1] ** 2


def test_a_square_beyond_a_float_is_infinite() -> None:
    assert square(1e200) == square(-1e200) == math.inf


@pytest.mark.parametrize("first", HUGE)
@pytest.mark.parametrize("second", [*HUGE, [1.0, 2.0, 3.0]])
def test_statistics_of_huge_values_end_without_an_error(
    first: list[float], second: list[float]
) -> None:
    for is_staged in (False, True):
        assert math.isfinite(mean_estimate(first, is_staged=is_staged).value)
        assert not math.isnan(mean_difference(first, second, is_staged=is_staged).value)
        assert math.isfinite(centre_estimate(first, is_staged=is_staged).value)
    cells = dict(enumerate(first)), dict(enumerate(second))
    apart = gap(*cells)
    if apart is not None:
        apart.trials(0.01, 0.98)
        apart.is_within(0.01, 0.98)
        assert apart.share >= 0
    assert best_set(cells).members
    shift = log_shift([first], [second])
    assert shift is None or math.isfinite(shift.value)
    assert stdev(first) >= 0
