"""Where no model describes a curve the answer begins with it; else it hardly ever does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from concurve.models import FitResult, fit_all, fit_many
from concurve.models.model import Floats
from tests.helpers.counts import at_most, few_or_many

SIXTEEN = np.arange(1.0, 17.0)
EIGHT = np.array([1, 2, 4, 8, 12, 16, 24, 32.0])

OTHERS: dict[str, Callable[[Floats], Floats]] = {
    "drop": lambda n: np.where(n <= 8, n, 4.0),
    "collapse": lambda n: np.where(n <= 6, n, 108 / n**1.6),
    "half": lambda n: np.where(n <= 8, n, 8 + 0.3 * (n - 8)),
}
LAWS: list[Callable[[Floats], Floats]] = [
    lambda n: n,
    lambda n: n / (1 + 0.05 * (n - 1)),
    lambda n: n / (1 + 0.02 * (n - 1) + 0.002 * n * (n - 1)),
    lambda n: np.minimum(n, 6.0),
    lambda n: np.ones(len(n)),
]


def said(result: FitResult) -> str:
    return " ".join(result.answers)


@pytest.mark.parametrize("shape", OTHERS)
@pytest.mark.parametrize("trials", [1, 3])
def test_a_curve_of_another_shape_gets_no_false_facts(shape: str, trials: int) -> None:
    rng = np.random.default_rng(61)
    n = np.repeat(SIXTEEN, trials)
    noise = 0.005 * (trials - 1)
    x = 1000 * OTHERS[shape](n) * np.exp(rng.normal(0, noise, len(n)))
    result = fit_all(n, x)
    text = said(result)
    misfit = result.misfit
    assert misfit is not None and result.stated.peak is None
    assert text.startswith(f"No model describes this curve: at N = {misfit.n:g} the throughput")
    assert "Superlinear" not in text and "Peak at" not in text and "bends as" not in text
    greatest = max(result.throughput)
    assert f"greatest throughput measured is {float(f'{greatest:.4g}'):,.10g}, at N = " in text
    assert misfit.pieces is not None
    last, first, before, _ = misfit.pieces
    assert 5 <= last < first <= 9 and before == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("trials", "noise"), [(1, 0.001), (1, 0.05), (5, 0.02), (5, 0.1)])
@pytest.mark.parametrize("each", few_or_many(4, 12))
def test_a_curve_that_a_model_describes_keeps_its_answer(
    trials: int, noise: float, each: int
) -> None:
    rng = np.random.default_rng(62)
    n = np.repeat(EIGHT, trials)
    curves = [
        (n, 1000 * law(n) * np.exp(rng.normal(0, noise, len(n))))
        for law in LAWS
        for _ in range(each)
    ]
    alarms = [result.misfit is not None for result in fit_many(curves)]
    assert sum(alarms) <= at_most(0.04, len(alarms), 0.0 if each == 12 else 2.0)


def test_no_peak_below_a_measured_figure_is_printed() -> None:
    rng = np.random.default_rng(63)
    x = 1000 * EIGHT / (1 + 0.03 * (EIGHT - 1) + 0.002 * EIGHT * (EIGHT - 1))
    curves = [(EIGHT, x * np.exp(rng.normal(0, 0.02, len(EIGHT)))) for _ in range(20)]
    told = 0
    for result in fit_many(curves):
        peak, text = result.stated.peak, said(result)
        if peak is None or "Peak at" not in text:
            continue
        told += 1
        is_below = peak.throughput.value < max(result.throughput)
        assert ("with a throughput of" in text) is not is_below
        assert ("The greatest throughput measured is" in text) is is_below
    assert told >= 5


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_flat_table_is_said_not_to_grow(noise: float) -> None:
    rng = np.random.default_rng(64)
    levels = np.array([1, 2, 4, 8, 16.0])
    result = fit_all(levels, 1000 * np.exp(rng.normal(0, noise, len(levels))))
    [answer] = result.answers
    assert answer.startswith("Throughput does not grow with N: from N = 1 to 16 the throughput ")
    assert not any("not clearly best" in warning for warning in result.warnings)


@pytest.mark.parametrize("trials", [1, 30])
def test_levels_that_their_trials_tell_apart_are_not_flat(trials: int) -> None:
    """Over three levels a slope is never told from none, however exact each of them is."""
    rng = np.random.default_rng(66)
    n = np.repeat([1.0, 2.0, 4.0], trials)
    x = np.repeat([1000.0, 1000.0, 1140.0], trials) * np.exp(rng.normal(0, 0.001, len(n)))
    is_flat = "Throughput does not grow with N" in said(fit_all(n, x))
    assert is_flat is (trials == 1)


def test_levels_that_differ_by_next_to_nothing_are_flat() -> None:
    rng = np.random.default_rng(67)
    n = np.repeat([1.0, 2.0, 4.0, 8.0], 30)
    x = np.repeat([1000.0, 1004.0, 998.0, 1003.0], 30) * np.exp(rng.normal(0, 0.0005, len(n)))
    assert "Throughput does not grow with N" in said(fit_all(n, x))


def test_two_shapes_that_are_not_told_apart_are_both_named() -> None:
    n = [1, 2, 3, 4, 6, 8, 12, 16.0]
    result = fit_all(n, [972, 1891, 2927, 3726, 4967, 6005, 8103, 7726.0])
    assert result.chosen == "amdahl_cap"
    first = result.answers[0]
    assert "Two shapes are not told apart: flat at C = 7,912 from N = 11.3 on" in first
    assert "or bending on without a cap (USL, " in first and "at N = 32" in first
    assert "A prediction is a mean over the models." in first
    assert not any("not clearly best" in warning for warning in result.warnings)


def test_either_or_is_said_where_one_of_two_costs_bends_the_curve() -> None:
    rng = np.random.default_rng(65)
    n = np.array([1, 2, 4, 8, 16, 32.0])
    x = 1000 * n / (1 + 0.02 * (n - 1) + 0.0005 * n * (n - 1))
    curves = [(n, x * np.exp(rng.normal(0, 0.03, len(n)))) for _ in range(20)]
    texts = [said(result) for result in fit_many(curves)]
    assert not any("α may be 0 and β may be 0" in text for text in texts)
    assert any("may be 0 without the other" in t or "each without the others" in t for t in texts)


@pytest.mark.parametrize("swing", [1.2, 1.5, 2.0])
def test_a_sawtooth_of_single_trials_is_not_called_flat(swing: float) -> None:
    """One trial a level does not tell whether that is chance; nobody may call it flat."""
    for n in (EIGHT, SIXTEEN):
        x = 1000 * np.where(np.arange(len(n)) % 2, swing, 1.0)
        result = fit_all(n, x)
        text = said(result)
        assert "is flat at" not in text and "flat at" not in text, text
        assert result.misfit is not None or "repeat each level" in " ".join(result.warnings)


def test_a_flat_curve_of_single_trials_is_flat() -> None:
    rng = np.random.default_rng(64)
    x = np.minimum(1000 * EIGHT, 6000) * np.exp(rng.normal(0, 0.01, len(EIGHT)))
    result = fit_all(EIGHT, x)
    assert "is flat at" in said(result)
    assert "repeat each level" not in " ".join(result.warnings)


def test_a_mistyped_figure_withholds_the_law() -> None:
    """One point 500 % off leaves nothing to be said of the rest."""
    result = fit_all([1, 2, 4, 8, 12, 16], [100, 195, 38.1, 700, 1000, 1250])
    assert result.misfit is not None and result.misfit.n == 4
    assert "grows with the number of workers" not in said(result)


def test_trials_that_spread_widely_are_no_misfit() -> None:
    rng = np.random.default_rng(68)
    n = np.repeat(EIGHT, 3)
    curves = [(n, 1000 * n * np.exp(rng.normal(0, 0.8, len(n)))) for _ in range(20)]
    results = fit_many(curves)
    far = [max(abs(np.log(r.throughput) - np.log(1000 * EIGHT))) > np.log(2) for r in results]
    assert sum(far) >= 5
    assert sum(result.misfit is not None for result in results) <= 2
