"""Intervals hold what they promise: a light, seeded version of benches/coverage.py."""

from __future__ import annotations

import numpy as np
import pytest

from concurve.models import fit_many, predict
from concurve.models.batch import stack
from concurve.models.curve import make_curve
from concurve.models.fit import fit, interval
from concurve.models.predict import beyond_the_curve
from concurve.models.usl import MODEL as USL
from tests.helpers.mva import exact_mva
from tests.models.reference import curve

#: A share of 95 % in so many experiments has a standard error of 0.8 %.
EXPERIMENTS = 800
ALPHA, BETA = 0.03, 0.001


@pytest.mark.parametrize(("trials", "noise"), [(1, 0.03), (5, 0.08)])
def test_profile_intervals_cover(trials: int, noise: float) -> None:
    rng = np.random.default_rng(20264)
    n = np.repeat([1, 2, 4, 8, 12, 16, 24, 32.0], trials)
    x = n / (1 + ALPHA * (n - 1) + BETA * n * (n - 1))
    curves = [
        make_curve(n, x * np.exp(rng.normal(0, noise, len(n))), absolute=False)
        for _ in range(EXPERIMENTS)
    ]
    fitted = fit(USL, stack(curves))
    assert USL.peak is not None
    truths = ((USL.parameters[1], ALPHA), (USL.parameters[2], BETA))
    for quantity, truth in (*truths, (USL.peak.inverse, BETA / (1 - ALPHA))):
        low, high = interval(fitted, quantity, 0.95)
        share = ((low <= truth) & (truth <= high)).mean()
        assert share == pytest.approx(0.95, abs=0.025), quantity.name


def test_bands_cover_what_was_measured_later() -> None:
    """Published curves cut short, and networks that no model describes."""
    curves = [curve(name) for name in ("cisco-mysql", "raytracer", "specsdm91", "sysbench-cpu")]
    levels = [1, 2, 4, 6, 8, 12, 16, 24, 32]
    for demands, think in (([0.5, 0.3, 0.2], 5.0), ([0.9, 0.1], 1.0), ([0.4, 0.4, 0.2], 0.0)):
        x = exact_mva(demands, think, 32).throughput[np.array(levels) - 1]
        curves.append(([float(level) for level in levels], x.tolist()))
    cases = []
    for n, x in curves:
        for k in range(5, len(n)):
            ahead = [i for i in range(k, len(n)) if 1.3 * n[k - 1] <= n[i] <= 2.05 * n[k - 1]]
            if ahead:
                cases.append((n[:k], x[:k], n[ahead[-1]], x[ahead[-1]]))
    held = 0
    for (_, _, level, figure), result in zip(
        cases, fit_many([(n, x) for n, x, _, _ in cases]), strict=True
    ):
        band = predict(result, [level])[0].throughput
        assert band.low is not None and band.high is not None
        held += band.low <= figure <= band.high
    assert len(cases) > 30
    assert held / len(cases) >= 0.85


def test_bands_widen_with_the_distance_and_warn() -> None:
    result = fit_many([curve("cisco-mysql")])[0]
    inside, near, far = predict(result, [20, 60, 100])
    widths = []
    for item in (inside, near, far):
        assert item.throughput.low is not None and item.throughput.high is not None
        widths.append(item.throughput.high / item.throughput.low)
    assert widths[0] < widths[1] < widths[2]
    assert inside.warning is None and near.warning is None
    assert far.warning is not None and "3.12 times the greatest level" in far.warning


def test_a_superlinear_pole_ends_the_predictions() -> None:
    n = np.array([1, 2, 4, 8, 16, 24.0])
    result = fit_many([(n, 10 * n / (1 - 0.03 * (n - 1)))])[0]
    assert result.chosen == "amdahl"
    figure = predict(result, [30])[0].throughput
    assert np.isfinite(figure.value) and figure.value > 0
    assert beyond_the_curve(result, [30, 48]) == [48]
