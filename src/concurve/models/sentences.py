"""The results of a fit as sentences: how the curve bends, where the peak is, what is doubtful.

A curve shows no cause: a lock, a full device and CPUs that run out may bend it alike. So the
sentences name what the shape is like, and what the parameters would cost; causes are named by
``explain``.
"""

from __future__ import annotations

import math

import numpy as np

from concurve.findings.fit import FitResult, ModelFit, PeakEstimate
from concurve.models.all_models import MODELS
from concurve.models.predict import FAR
from concurve.models.stated import doubts

#: Runs of residuals of equal sign are reported below this p-value.
_ORDER = 0.01
_LEVELS_WANTED = 8
_SIGNS = {"gamma": "γ", "alpha": "α", "beta": "β", "cap": "C"}


def answers(result: FitResult) -> tuple[str, ...]:
    """The answer of the chosen model."""
    best = result.best
    return tuple(
        text for text in (_limit(result, best), _superlinear(result), _peak(result)) if text
    )


def in_words(result: FitResult) -> str:
    """The chosen model with what is stated of its parameters: ``USL: α = 0.03 (0.02 to 0.04)``."""
    found = [
        f"{_SIGNS[name]} = {_bound(figure.value)} ({_bound(figure.low)} to {_bound(figure.high)})"
        f"{_unit(figure.unit)}"
        for name, figure in result.stated.parameters.items()
    ]
    return f"{_capital(result.best.title)}: {', '.join([*found[1:], found[0]])}."


def in_digits(value: float, digits: int = 4) -> str:
    """A figure to so many digits, written out up to the billions: ``2,554,000``."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""


def _bound(value: float | None) -> str:
    if value is None:
        return "–"
    return ("∞" if value > 0 else "-∞") if math.isinf(value) else in_digits(value, 3)


def _limit(result: FitResult, best: ModelFit) -> str:
    top = max(result.levels)
    if best.name == "linear":
        return f"Throughput grows with the number of workers: no bend is seen up to N = {top:g}."
    if "cap" in best.parameters and math.isfinite(best.parameters["cap"].value):
        return _cap(best)
    return _costs(best, top)


def _cap(best: ModelFit) -> str:
    cap = best.parameters["cap"].value
    reached = _level_of_cap(best)
    before = ""
    if "alpha" in best.parameters and best.parameters["alpha"].value > 0:
        alpha = best.parameters["alpha"].value
        before = f", and bends before that as with contention of α = {alpha:.3g}"
    return (
        f"The curve is flat at {in_digits(cap)} from N = {reached:.3g} on, as where a resource is "
        f"used up{before}."
    )


def _level_of_cap(best: ModelFit) -> float:
    """N where the rising curve meets the cap: N = c(1−α)/(1−αc), c = C/γ."""
    ratio = best.parameters["cap"].value / best.parameters["gamma"].value
    alpha = best.parameters["alpha"].value if "alpha" in best.parameters else 0.0
    return ratio * (1 - alpha) / (1 - alpha * ratio)


def _costs(best: ModelFit, top: float) -> str:
    """Contention against coherency where it counts, at the greatest level."""
    alpha = best.parameters["alpha"].value
    contention = alpha * (top - 1)
    if best.name == "amdahl":
        if alpha <= 0:
            return ""
        limit = best.parameters["gamma"].value / alpha
        return (
            f"The curve bends as with contention: at N = {top:g} it would cost {contention:.3g} "
            f"times the work itself. Without coherency throughput stays below γ/α = "
            f"{in_digits(limit)}."
        )
    phi = MODELS[best.name].phi
    assert phi is not None  # all models with β have it
    coherency = best.parameters["beta"].value * float(phi(np.array(top))) * (top - 1)
    larger, smaller = ("coherency", "contention")
    if contention > coherency:
        larger, smaller = smaller, larger
    costs = {"contention": contention, "coherency": coherency}
    if costs[larger] <= 0:
        return ""
    return (
        f"The curve bends as with {larger}: at N = {top:g} it would cost {costs[larger]:.3g} times "
        f"the work itself, {smaller} {costs[smaller]:.3g} times."
    )


def _superlinear(result: FitResult) -> str:
    alpha = result.stated.parameters.get("alpha")
    if alpha is None or alpha.value >= 0 or alpha.high is None:
        return ""
    if alpha.high < 0:
        return (
            f"Superlinear: α = {alpha.value:.3g} is below 0 (at most {alpha.high:.3g}); "
            "it grows as where more workers add resources, such as cache or memory."
        )
    return (
        f"α = {alpha.value:.3g} is not significantly different from 0: the curve may be straight."
    )


def _peak(result: FitResult) -> str:
    peak = result.stated.peak
    if peak is not None and (peak.established or "cap" not in result.best.parameters):
        return peak_sentence(peak)
    if "beta" not in result.best.parameters:
        return "No peak established." if result.best.name == "amdahl" else ""
    return (
        f"No peak established: {'β is 0' if result.best.parameters['beta'].value == 0 else 'none'}."
    )


def peak_sentence(peak: PeakEstimate) -> str:
    """The peak with its interval, or that no peak is established."""
    low = "–" if peak.n.low is None else f"{peak.n.low:.3g}"
    if not peak.established or peak.n.high is None:
        return (
            f"No peak established: it may lie anywhere beyond N = {low}, "
            "since a curve without a peak is not excluded."
        )
    return (
        f"Peak at N = {peak.n.value:.3g} ({low} to {peak.n.high:.3g}) with a throughput of "
        f"{in_digits(peak.throughput.value)}."
    )


def warnings(result: FitResult) -> tuple[str, ...]:
    """The reasons for doubts about the fit."""
    best = result.best
    title = best.title
    found = []
    if best.chance_of_misfit is not None and best.chance_of_misfit < 0.05:
        found.append(
            f"No model is as close as the trials' spread would allow; {title} misses the "
            "levels, and its intervals are computed from these residuals."
            if result.observations == "levels"
            else f"{_capital(title)} misses the levels by more than the trials' spread explains."
        )
    if best.chance_of_order < _ORDER and best.durbin_watson is not None:
        found.append(
            f"The residuals of {title} come in runs (Durbin–Watson {best.durbin_watson:.2f}, "
            "2 without): the curve has another shape, and intervals are too narrow."
        )
    if result.criterion == "gcv":
        found.append(
            f"{_observations(result)} are too few to choose a model by AICc: the choice rests on "
            f"generalised cross-validation; measure at {_LEVELS_WANTED} levels or more."
        )
    rivals = [m.title for m in result.models if m.name != best.name and m.weight > best.weight / 3]
    if rivals:
        found.append(
            f"{_capital(title)} is not clearly best: {'; '.join(rivals)} "
            f"{'does' if len(rivals) == 1 else 'do'} about as well."
        )
    found += doubts(result.models, best)
    peak = result.stated.peak
    top = max(result.levels)
    if peak is not None and peak.established and peak.n.value > top:
        far = peak.n.value / top
        guess = f" {far:.3g} times, where it is a guess" if far > FAR else ""
        found.append(
            f"The peak lies beyond the greatest level measured, N = {top:g}{',' if guess else ''}"
            f"{guess}: measure there before relying on it."
        )
    return tuple(found)


def _observations(result: FitResult) -> str:
    count = len(result.levels) if result.observations == "levels" else result.trials
    return f"{count} {result.observations}"
