"""What must hold of every fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from concurve.errors import ConcurveError
from concurve.models import MODELS, FitResult, fit_all, fit_many, predict
from concurve.models.batch import stack
from concurve.models.curve import make_curve
from concurve.models.fit import fit, interval
from concurve.models.solver import minimise, residuals
from tests.helpers.counts import few_or_many

#: Shrinking a failure takes minutes and does not help here.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)

LEVELS = np.array([1, 2, 4, 8, 12, 16, 24, 32.0])

gammas = st.floats(1e-3, 1e6)
alphas = st.floats(-0.02, 0.5)
betas = st.floats(1e-4, 0.05)
ratios = st.floats(5, 14)


def exact(name: str, **parameters: float) -> NDArray[np.float64]:
    return MODELS[name].evaluate(LEVELS, parameters)


def noisy(
    seed: int, noise: float = 0.05, trials: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    n = np.repeat(LEVELS, trials)
    x = 50 * n / (1 + 0.03 * (n - 1) + 0.001 * n * (n - 1))
    return n, x * np.exp(rng.normal(0, noise, len(n)))


def figures(result: FitResult, name: str) -> dict[str, float]:
    return {key: figure.value for key, figure in result.model(name).parameters.items()}


@given(gammas, alphas, betas, ratios)
@settings(max_examples=2, deadline=None, phases=PHASES)
def test_data_without_noise_are_recovered(
    gamma: float, alpha: float, beta: float, ratio: float
) -> None:
    are_recovered(gamma, alpha, beta, ratio)


@pytest.mark.soak
@given(gammas, alphas, betas, ratios)
@settings(max_examples=20, deadline=None, phases=PHASES)
def test_many_data_without_noise_are_recovered(
    gamma: float, alpha: float, beta: float, ratio: float
) -> None:
    are_recovered(gamma, alpha, beta, ratio)


def are_recovered(gamma: float, alpha: float, beta: float, ratio: float) -> None:
    """Each model finds the parameters of its own curve."""
    truths: dict[str, dict[str, float]] = {
        "linear": {"gamma": gamma},
        "amdahl": {"gamma": gamma, "alpha": alpha},
        "usl": {"gamma": gamma, "alpha": alpha, "beta": beta},
        "usl_log": {"gamma": gamma, "alpha": alpha, "beta": beta + 0.05},
        "usl_sqrt": {"gamma": gamma, "alpha": alpha, "beta": beta + 0.05},
        "knee": {"gamma": gamma, "cap": gamma * ratio},
        "amdahl_cap": {"gamma": gamma, "alpha": abs(alpha) / 10, "cap": gamma * ratio},
    }
    curves = [(LEVELS, exact(name, **truth)) for name, truth in truths.items()]
    for absolute in (False, True):
        results = fit_many(curves, absolute=absolute)
        for (name, truth), result in zip(truths.items(), results, strict=True):
            assert figures(result, name) == pytest.approx(truth, rel=1e-5, abs=1e-7), name


@given(st.integers(0, 1000), st.floats(1e-6, 1e6))
@settings(max_examples=5, deadline=None, phases=PHASES)
def test_another_unit_changes_gamma_and_cap_alone(seed: int, factor: float) -> None:
    n, x = noisy(seed)
    first, second = fit_many([(n, x), (n, factor * x)])
    assert second.chosen == first.chosen
    for before, after in zip(first.models, second.models, strict=True):
        assert after.weight == pytest.approx(before.weight, rel=1e-4, abs=1e-9)
        for name, figure in before.parameters.items():
            scale = factor if name in ("gamma", "cap") else 1.0
            own = after.parameters[name]
            for a, b in (
                (figure.value, own.value), (figure.low, own.low), (figure.high, own.high),
            ):  # fmt: skip
                assert a is not None and b is not None
                assert b == pytest.approx(a * scale, rel=1e-3, abs=1e-9)


def test_the_order_of_rows_does_not_matter() -> None:
    n, x = noisy(1, trials=3)
    order = np.random.default_rng(2).permutation(len(n))
    assert fit_all(n, x) == fit_all(n[order], x[order])


def test_a_batch_gives_what_each_curve_gives_alone() -> None:
    curves = [noisy(seed, trials=1 + seed % 3) for seed in range(6)]
    curves[3] = (curves[3][0][:12], curves[3][1][:12])
    together = fit_many(curves)
    for (n, x), result in zip(curves, together, strict=True):
        alone = fit_all(n, x)
        assert alone.chosen == result.chosen
        for one, other in zip(alone.models, result.models, strict=True):
            for name, figure in one.parameters.items():
                assert other.parameters[name].value == pytest.approx(figure.value, rel=1e-6)
                assert other.parameters[name].high == pytest.approx(figure.high, rel=1e-3)


@pytest.mark.parametrize("name", list(MODELS))
def test_derivatives_are_those_of_the_curve(name: str) -> None:
    model = MODELS[name]
    u = np.array([[0.3, 0.04, 0.002]]) if model.peak else np.array([[0.3, 0.04, 1.9]])
    u = u[:, [0, *range(1, model.size)]] if name != "knee" else u[:, [0, 2]]
    n = LEVELS[None]
    _, slopes = model.log_curve(n, u)
    for i in range(model.size):
        step = np.zeros(model.size)
        step[i] = 1e-6
        up, _ = model.log_curve(n, u + step)
        down, _ = model.log_curve(n, u - step)
        assert slopes[0, :, i] == pytest.approx((up - down)[0] / 2e-6, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", ["usl", "usl_log", "usl_sqrt"])
def test_charts_of_the_peak_are_inverse_and_their_derivatives_right(name: str) -> None:
    peak = MODELS[name].peak
    assert peak is not None
    u = np.array([[2.0, 0.05, 0.01]])
    top = peak.position(peak.inverse.of(u))
    near = top * np.array([0.999, 1, 1.001])
    x = np.exp(MODELS[name].log_curve(near[None], u)[0][0])
    assert x[1] == max(x), "N* is where X is greatest"
    assert peak.throughput.of(u)[0] == pytest.approx(x[1])
    for quantity in (peak.inverse, peak.throughput):
        v = quantity.unchart(u)
        back, slopes = quantity.chart(v)
        assert back == pytest.approx(u)
        for i in range(3):
            step = np.zeros(3)
            step[i] = 1e-6
            numeric = (quantity.chart(v + step)[0] - quantity.chart(v - step)[0])[0] / 2e-6
            assert slopes[0, :, i] == pytest.approx(numeric, abs=1e-5)


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("trials", [1, 4])
def test_interval_ends_lie_on_the_threshold(name: str, trials: int) -> None:
    """By brute force: just inside an end some curve stays below the threshold, just outside none
    of many starts does."""
    from scipy.special import stdtrit

    model = MODELS[name]
    n, x = noisy(7, 0.06, trials)
    if model.capped:
        x = np.minimum(x, 400 * np.exp(np.random.default_rng(3).normal(0, 0.06, len(x))))
    batch = stack([make_curve(n, x, absolute=False)])
    fitted = fit(model, batch)
    variance, df = batch.variance(fitted.relaxed_squares, model.size)
    threshold = fitted.relaxed_squares + variance * stdtrit(df, 0.975) ** 2
    for quantity in model.parameters:
        ends = [float(end[0]) for end in interval(fitted, quantity, 0.95)]
        for end, outward in zip(ends, (-1, 1), strict=True):
            if not math.isfinite(end) or end in (quantity.lower, quantity.upper):
                continue
            shift = 0.01 * (ends[1] - ends[0]) * outward if math.isfinite(ends[1]) else 0.01 * end
            for place, inside in ((end - shift, True), (end + shift, False)):
                least = profile_by_force(model.name, batch, quantity.name, place)
                assert (least <= threshold[0]) == inside, (quantity.name, outward)


def profile_by_force(name: str, batch, quantity_name: str, value: float) -> float:  # type: ignore[no-untyped-def]
    """Least sum of squares with a parameter held, from many random starts."""
    model = MODELS[name]
    quantity = next(q for q in model.parameters if q.name == quantity_name)
    best = fit(model, batch).relaxed
    rng = np.random.default_rng(5)
    starts = quantity.unchart(best) + np.concatenate(
        [np.zeros((1, model.size)), rng.normal(0, 1, (300, model.size)) * 0.3]
    )
    starts[:, quantity.index] = np.log(value) if quantity.log else value

    def charted(levels, v):  # type: ignore[no-untyped-def]
        u, slopes = quantity.chart(v)
        fitted, own = model.log_curve(levels, u)
        return fitted, np.matmul(own, slopes)

    points = batch.points.repeated(len(starts))
    free = np.ones(starts.shape, bool)
    free[:, quantity.index] = False
    wide = np.full(model.size, np.inf)
    _, squares = minimise(charted, points, starts, free, -wide, wide)
    assert residuals(charted, points, starts)[0].shape == squares.shape
    return float(squares.min())


def test_superlinear_curves_are_told_and_not_cut_off() -> None:
    x = exact("amdahl", gamma=10, alpha=-0.02) * np.exp(0.005 * np.sin(np.arange(8) * 9.0))
    result = fit_all(LEVELS, x)
    amdahl = result.model("amdahl")
    assert amdahl.superlinear
    assert amdahl.parameters["alpha"].value == pytest.approx(-0.02, abs=0.002)
    assert any("uperlinear" in sentence for sentence in result.answers)


def test_no_peak_is_established_where_beta_may_be_0() -> None:
    n, x = noisy(3, 0.08)
    result = fit_all(n, x * (1 + 0.001 * n) / (1 + 0.0005 * n))
    usl = result.model("usl")
    assert usl.parameters["beta"].low == 0
    assert usl.peak is None or (usl.peak.n.high == math.inf and not usl.peak.established)


def test_a_falling_curve_keeps_alpha_at_most_1() -> None:
    result = fit_all(LEVELS, 100 / LEVELS**0.3)
    for item in result.models:
        if "alpha" in item.parameters:
            assert item.parameters["alpha"].value <= 1
        if "beta" in item.parameters:
            assert item.parameters["beta"].value >= 0


def test_a_cap_that_no_level_reaches_is_infinite() -> None:
    result = fit_all(LEVELS, 10 * LEVELS * np.exp(0.01 * np.cos(np.arange(8) * 5.0)))
    assert result.chosen == "linear"
    cap = result.model("knee").parameters["cap"]
    assert cap.high == math.inf
    assert cap.low is not None and cap.low > 250


def test_one_level_on_a_cap_is_no_plateau() -> None:
    result = fit_all([1, 2, 3, 4, 6, 8, 12], [10, 20, 30, 40, 60, 80, 90])
    assert result.model("knee").levels_on_cap == 1
    assert result.chosen not in ("knee", "amdahl_cap")


def test_replicates_tell_of_misfit() -> None:
    n = np.repeat(LEVELS, 5)
    rng = np.random.default_rng(4)
    x = 10 * n / (1 + 0.05 * n) * (1 + 0.2 * np.sin(n)) * np.exp(rng.normal(0, 0.002, len(n)))
    result = fit_all(n, x)
    assert result.observations == "levels"
    best = result.best
    assert best.chance_of_misfit is not None and best.chance_of_misfit < 1e-6
    assert result.misfit is not None
    assert result.answers[0].startswith("No model describes this curve")
    assert "pooled" in result.error_model


def test_levels_of_very_different_spread_are_weighed() -> None:
    rng = np.random.default_rng(8)
    n = np.repeat(LEVELS, 10)
    spread = np.where(n >= 16, 0.2, 0.005)
    x = 10 * n / (1 + 0.05 * (n - 1)) * np.exp(rng.normal(0, 1, len(n)) * spread)
    weighed = fit_all(n, x)
    assert "differs between the levels" in weighed.error_model
    alpha = weighed.model("amdahl").parameters["alpha"]
    assert alpha.low is not None and alpha.high is not None
    assert alpha.low <= 0.05 <= alpha.high
    assert alpha.high - alpha.low < 0.01, "the quiet levels settle it"


def test_few_levels_leave_models_out_with_the_reason() -> None:
    result = fit_all([1, 2, 4], [10, 19, 35])
    assert set(result.left_out) == {"amdahl_cap", "usl", "usl_log", "usl_sqrt"}
    assert "too few" in result.left_out["usl"]
    assert result.criterion == "gcv"
    assert any(
        "too few to choose a model with confidence" in warning for warning in result.warnings
    )


@pytest.mark.parametrize(
    ("n", "x", "message"),
    [
        ([1, 2], [1, 2], "at least 3 different numbers of workers; there are 2"),
        ([1, 2, 2, 1], [1, 2, 3, 4], "there are 2"),
        ([1, 2, 3], [1, 0, 3], "throughput 0 in row 2"),
        ([1, 2, 3], [1, -2, 3], "throughput -2 in row 2"),
        ([1, 2, 3], [1, math.nan, 3], "throughput nan in row 2"),
        ([1, 2, 3], [1, math.inf, 3], "throughput inf in row 2"),
        ([0, 2, 3], [1, 2, 3], "number of workers 0 in row 1"),
        ([1, 2, 3], [1, 2], "3 numbers of workers stand against 2"),
        ([], [], "there are 0"),
    ],
)
def test_bad_numbers_are_refused(n: list[float], x: list[float], message: str) -> None:
    with pytest.raises(ConcurveError, match=message):
        fit_all(n, x)


def test_processes_change_nothing() -> None:
    curves = [noisy(seed) for seed in range(4)]
    for one, other in zip(fit_many(curves), fit_many(curves, processes=2), strict=True):
        assert other.chosen == one.chosen
        assert other.best.aicc == pytest.approx(one.best.aicc)


def test_no_curves_no_results() -> None:
    assert fit_many([]) == []


def any_curve(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    n = rng.choice(np.arange(1, 65), rng.integers(4, 12), replace=False).astype(float)
    return n, rng.lognormal(0, rng.choice([0.01, 0.3, 2]), len(n)) * n ** rng.uniform(-1, 2)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("count", few_or_many(5, 60))
@given(st.integers(0, 1000))
@settings(max_examples=1, deadline=None, phases=PHASES)
def test_any_curve_gets_an_answer(absolute: bool, count: int, part: int) -> None:
    """Nonsense in, no crash and no figure outside its interval out. Many at once: alone, each takes
    as long as all together."""
    curves = [any_curve(seed) for seed in range(count * part, count * part + count)]
    for result in fit_many(curves, absolute=absolute):
        assert sum(item.weight for item in result.models) == pytest.approx(1)
        for item in result.models:
            for figure in item.parameters.values():
                assert figure.low is not None and figure.high is not None
                assert figure.low <= figure.value <= figure.high


@pytest.mark.parametrize("absolute", [False, True])
def test_aicc_is_that_of_the_density_of_the_throughputs(absolute: bool) -> None:
    """With the error variance as a parameter, so that both kinds of error are on one scale."""
    from scipy import stats

    n, x = noisy(11)
    item = fit_all(n, x, absolute=absolute).model("usl")
    fitted = MODELS["usl"].evaluate(n, figures(fit_all(n, x, absolute=absolute), "usl"))
    rest = x - fitted if absolute else np.log(x / fitted)
    deviation = np.sqrt(np.mean(rest**2))
    density = (
        stats.norm.logpdf(x, fitted, deviation)
        if absolute
        else stats.lognorm.logpdf(x, deviation, scale=fitted)
    )
    k = 4
    expected = -2 * float(np.sum(density)) + 2 * k + 2 * k * (k + 1) / (len(n) - k - 1)
    assert item.aicc == pytest.approx(expected, rel=1e-6)


def test_bands_widen_even_where_the_models_agree() -> None:
    near, far = predict(fit_all(LEVELS, 10 * LEVELS), [32, 64])
    assert near.throughput.precision == pytest.approx(0, abs=1e-6)
    assert far.throughput.precision is not None and far.throughput.precision > 0.1
