"""Bands: within the measured levels those of the measurements, beyond them of a prediction."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from concurve.errors import ConcurveError
from concurve.models import fit_all, fit_many, predict
from concurve.models.predict import _gap, beyond_the_curve, curve_of
from concurve.stats.centre import centre_estimate

LEVELS = np.array([1, 2, 4, 8, 16, 32.0])


def usl(n: np.ndarray) -> np.ndarray:
    return np.asarray(100 * n / (1 + 0.02 * (n - 1) + 0.0005 * n * (n - 1)))


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_at_a_level_the_band_is_the_interval_of_its_centre(noise: float) -> None:
    rng = np.random.default_rng(5)
    n = np.repeat(LEVELS, 5)
    x = usl(n) * np.exp(rng.normal(0, noise, len(n)))
    for item in predict(fit_all(n, x), LEVELS):
        own = centre_estimate(x[n == item.n].tolist())
        assert item.throughput.low == pytest.approx(own.low)
        assert item.throughput.high == pytest.approx(own.high)


def test_the_band_holds_the_true_curve_at_the_levels_and_between() -> None:
    rng = np.random.default_rng(6)
    n = np.concatenate([LEVELS, np.sqrt(LEVELS[1:] * LEVELS[:-1])])
    for trials in (1, 5):
        own = np.repeat(LEVELS, trials)
        curves = [(own, usl(own) * np.exp(rng.normal(0, 0.03, len(own)))) for _ in range(30)]
        held, widths = [], []
        for result in fit_many(curves):
            bands = [item.throughput for item in predict(result, n)]
            low = np.array([band.low for band in bands], float)
            high = np.array([band.high for band in bands], float)
            held += ((low <= usl(n)) & (usl(n) <= high)).tolist()
            widths += [np.median(np.log(high / low)[6:]) / np.median(np.log(high / low)[:6])]
        assert np.mean(held) >= 0.93
        assert np.median(widths) <= 1.3


def half_width(n: np.ndarray, x: np.ndarray, at: float) -> float:
    """That of log X in the prediction of a number of workers."""
    [found] = predict(fit_all(n, x), [at])
    assert found.throughput.low is not None and found.throughput.high is not None
    return 0.5 * float(np.log(found.throughput.high / found.throughput.low))


def test_beyond_the_levels_the_noise_is_that_of_the_nearest_one() -> None:
    """Noise that grows with N is greater there than on the average, and the other way round."""
    rng = np.random.default_rng(8)
    n = np.repeat(LEVELS, 8)
    grows, falls = (
        usl(n) * np.exp(0.01 * spread * rng.standard_normal(len(n))) for spread in (n, 32 / n)
    )
    assert half_width(n, grows, 64) > 4 * half_width(n, grows, 0.5)
    assert half_width(n, falls, 0.5) > 1.5 * half_width(n, falls, 64)


def test_a_band_widens_on_both_sides_of_the_levels() -> None:
    """No model is true below the least level either, however exact the measurements are."""
    n = 8 * LEVELS
    for far, at in [(2, 4), (8, 1)]:
        below, above = half_width(n, usl(n), at), half_width(n, usl(n), 256 * far)
        assert below >= 1.9 * 0.1 * np.log(far)
        assert above >= 1.9 * 0.1 * np.log(far)


def test_a_band_of_points_known_well_is_narrow_although_models_differ() -> None:
    """A kink: no model but one describes it, and their mixture was off by half at some levels."""
    rng = np.random.default_rng(7)
    n = np.repeat([1, 2, 4, 8, 12, 16, 24.0], 5)
    x = 100 * np.minimum(n, 4) * np.exp(rng.normal(0, 0.02, len(n)))
    for item in predict(fit_all(n, x), np.unique(n)):
        assert item.throughput.low is not None and item.throughput.high is not None
        assert item.throughput.high / item.throughput.low < 1.15


def test_nothing_is_predicted_where_the_chosen_model_has_no_value() -> None:
    """A superlinear curve, whose pole is at N = 23.2. Without the models that have one there a cap
    on its last level was left, with a narrow band about what was measured there."""
    rng = np.random.default_rng(1)
    n = np.repeat(np.arange(1, 17.0), 5)

    def truth(level: np.ndarray) -> np.ndarray:
        return np.asarray(100 * level / (1 - 0.045 * (level - 1)))

    result = fit_all(n, truth(n) * np.exp(rng.normal(0, 0.01, len(n))))
    assert result.chosen == "amdahl"
    before = np.array([17, 18, 20.0])
    for item, true in zip(predict(result, before), truth(before), strict=True):
        assert item.throughput.low is not None and item.throughput.high is not None
        assert item.throughput.low <= true <= item.throughput.high
    assert beyond_the_curve(result, [0.5, 8, 20, 32, 64]) == [32, 64]
    with pytest.raises(
        ConcurveError, match=r"nothing is predicted at N = 32: by Amdahl, .* bounds"
    ):
        predict(result, [20, 32])


def test_nothing_is_predicted_beyond_a_gap_of_the_chosen_model() -> None:
    """The curve has no value from N = 9.0 to 11.0, and falls to a few beyond: no such program."""
    rng = np.random.default_rng(1)
    n = np.repeat([1, 2, 4, 6, 8.0], 3)
    x = np.repeat([1, 2.51, 8.8, 29.3, 176.0], 3) * np.exp(rng.normal(0, 0.02, len(n)))
    result = fit_all(n, x)
    assert result.chosen == "usl" and np.isfinite(curve_of(result.best, [16, 1e6])).all()
    assert beyond_the_curve(result, [0.5, 5, 8.5, 10, 16, 1e6]) == [10, 16, 1e6]
    assert beyond_the_curve(result, [8.5]) == []
    for target in (12.0, 16.0, 20.0):
        assert beyond_the_curve(result, [target]) == [target], "the gap lies on the way"


@pytest.mark.parametrize("name", ["usl", "usl_sqrt", "usl_log"])
@pytest.mark.parametrize("width", [1e-3, 1e-5, 1e-7])
def test_a_narrow_gap_is_found_on_a_long_way(name: str, width: float) -> None:
    """The denominator is below 0 by ``width`` about N = 10, and nowhere else."""
    phi, slope = {
        "usl": (10.0, 1.0),
        "usl_sqrt": (10**0.5, 0.5 * 10**-0.5),
        "usl_log": (float(np.log(10)), 0.1),
    }[name]
    # 1 + 9 alpha + 9 phi beta = -width, and its slope, alpha + (phi + 9 slope) beta, is 0.
    beta = (1 + width) / (81 * slope)
    alpha = -(phi + 9 * slope) * beta
    n = np.array([1, 2, 4, 6, 8.0])
    item = fit_all(n, 10 * n / (1 + 0.05 * (n - 1))).model(name)
    item = msgspec.structs.replace(item, coordinates=(0.0, alpha, beta))
    for far in (11.0, 16.0, 1e4):
        found = _gap(item, 8.0, far)
        assert found is not None and not np.isfinite(curve_of(item, [found])).any()
    assert _gap(item, 8.0, 9.0) is None
    assert _gap(item, 0.1, 1.0) is None
