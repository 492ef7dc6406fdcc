"""Against published fits and exact solutions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from concurve.errors import ConcurveError
from concurve.models import MODELS, FitResult, ModelFit, fit_all
from concurve.models.little import check, complete, deviation, violations
from tests.helpers.mva import exact_mva
from tests.models.reference import curve


def fitted(name: str, absolute: bool = False) -> FitResult:
    return fit_all(*curve(name), absolute=absolute)


def values(model: ModelFit) -> dict[str, float]:
    return {name: figure.value for name, figure in model.parameters.items()}


@pytest.mark.parametrize(
    ("name", "alpha", "beta", "gamma", "peak"),
    [
        ("cisco-mysql", 0.026715945, 7.6909391e-4, 995.64879, 35.574),
        ("specsdm91", 0.0277285, 0.0001044, 89.995233, 96.51956),
    ],
)
def test_coefficients_by_absolute_least_squares_are_the_published(
    name: str, alpha: float, beta: float, gamma: float, peak: float
) -> None:
    usl = fitted(name, absolute=True).model("usl")
    assert usl.peak is not None
    assert values(usl)["alpha"] == pytest.approx(alpha, rel=1e-4)
    # 0.0001044 is printed with four digits.
    assert values(usl)["beta"] == pytest.approx(beta, rel=1e-4 if beta > 5e-4 else 4e-4)
    assert values(usl)["gamma"] == pytest.approx(gamma, rel=1e-4)
    assert usl.peak.n.value == pytest.approx(peak, rel=1e-4)


def test_standard_errors_are_those_of_nls() -> None:
    usl = fitted("specsdm91", absolute=True).model("usl")
    errors = usl.standard_errors
    assert errors["alpha"] == pytest.approx(0.0091217, rel=0.01)
    assert errors["beta"] == pytest.approx(1.99e-5, rel=0.01)
    assert errors["gamma"] == pytest.approx(14.213, rel=0.01)
    assert usl.residual_deviation == pytest.approx(82.85, rel=1e-3)
    assert usl.df == 4


def test_a_saturating_curve_is_a_knee() -> None:
    result = fitted("sysbench-cpu")
    assert result.chosen == "knee"
    assert values(result.best)["gamma"] == pytest.approx(8283.72, rel=1e-6)
    assert values(result.best)["cap"] == pytest.approx(27345.73, rel=1e-6)
    usl, knee = result.model("usl").aicc, result.best.aicc
    assert usl is not None and knee is not None
    assert usl - knee == pytest.approx(106, abs=1)
    assert "flat at C = 27,350 from N = 3.3 on" in result.answers[0]


def test_a_curve_beyond_its_pole_is_still_capped() -> None:
    """With a slightly superlinear rise, 1 + α(N−1) is below 0 at N = 2048: that is above any cap,
    not an impossible curve."""
    model = fitted("sysbench-cpu").model("amdahl_cap")
    assert values(model)["gamma"] == pytest.approx(8272.558, rel=1e-6)
    assert values(model)["alpha"] == pytest.approx(-0.0026928, rel=1e-3)


def test_the_synthetic_curve_is_found_exactly() -> None:
    result = fitted("synthetic-usl")
    assert result.chosen == "usl"
    assert values(result.best) == pytest.approx({"gamma": 1, "alpha": 0.02, "beta": 0.02}, rel=1e-3)
    assert result.best.peak is not None and result.best.peak.established
    assert result.best.peak.n.value == pytest.approx(7, rel=1e-4)


def test_residuals_that_come_in_runs_raise_the_alarm() -> None:
    result = fitted("cisco-mysql", absolute=True)
    statistic = result.model("usl").durbin_watson
    assert statistic is not None and 0.13 <= statistic <= 0.28
    assert result.model("usl").chance_of_order < 1e-6
    assert any("come in runs" in warning for warning in result.warnings)


def test_intervals_of_the_r_package_are_too_narrow_and_ours_are_not() -> None:
    """Proper t(4) intervals are symmetric; the profile's lean, and are about as wide."""
    usl = fitted("specsdm91", absolute=True).model("usl")
    for name, low, high in (("alpha", 0.0024, 0.0531), ("beta", 4.9e-5, 1.6e-4)):
        figure = usl.parameters[name]
        assert figure.low is not None and figure.high is not None
        assert figure.high - figure.low == pytest.approx(high - low, rel=0.15)


def test_a_published_curve_of_times() -> None:
    n, seconds = curve("java-none")
    result = fit_all(n, [1 / value for value in seconds])
    assert result.chosen == "knee"
    figures = values(result.best)
    assert figures["cap"] / figures["gamma"] == pytest.approx(1.93, abs=0.02)


def test_the_curve_of_no_model_but_amdahl_has_no_peak() -> None:
    result = fitted("raytracer")
    assert result.chosen == "amdahl"
    peak = result.model("usl").peak
    assert peak is not None and not peak.established
    assert peak.n.high == math.inf
    assert result.model("usl").parameters["beta"].low == 0


def test_mva_oracle() -> None:
    n = [1, 2, 5, 10, 15, 20]
    network = exact_mva([1.0], 9.0, 20)
    throughput = network.throughput[np.array(n) - 1]
    assert throughput == pytest.approx(
        [0.1, 0.19802, 0.475092, 0.832037, 0.980132, 0.999383], rel=1e-5
    )
    amdahl = MODELS["amdahl"].evaluate(np.array(n), {"gamma": 0.1, "alpha": 0.1})
    assert amdahl == pytest.approx([0.1, 0.181818, 0.357143, 0.526316, 0.625, 0.689655], rel=1e-5)
    assert np.all(amdahl <= throughput * (1 + 1e-12)), "the synchronous bound is the worst case"
    held = network.throughput * (network.response_time + 9.0)
    assert held == pytest.approx(np.arange(1, 21)), "Little's law"
    assert network.queue_lengths[-1].sum() == pytest.approx(20 - 9 * network.throughput[-1])


def test_little_gives_the_third() -> None:
    n, x, r = [1.0, 4.0], [10.0, 20.0], [0.1, 0.2]
    assert complete(n, x, None).r == pytest.approx(r)
    assert complete(n, None, r).x == pytest.approx(x)
    assert complete(None, x, r).n == pytest.approx(n)
    assert complete(n, None, r, think_time=0.1).x == pytest.approx([5, 4 / 0.3])
    law = complete(n, x, r)
    assert law.derived == "" and deviation(law) == pytest.approx(0, abs=1e-12)


def test_little_is_a_gate() -> None:
    law = complete([1.0, 4.0], [10.0, 20.0], [0.1, 0.3])
    assert violations(law) == [1]
    with pytest.raises(ConcurveError, match="wrong measurement: 1 of 2 rows"):
        check(law)
    check(complete([1.0, 4.0], [10.0, 20.0], [0.1, 0.209]))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([1.0], None, None), "needs two"),
        (([1.0], [1.0, 2.0], None), "different lengths"),
        (([1.0], [0.0], None), "X is 0 in row 1"),
        (([1.0], [math.nan], None), "X is nan in row 1"),
    ],
)
def test_little_refuses(columns: tuple[list[float], None, None], message: str) -> None:
    with pytest.raises(ConcurveError, match=message):
        complete(*columns)
