"""The results of a fit as sentences: how the curve bends, where the peak is, what is doubtful.

A curve shows no cause: a lock, a full device and CPUs that run out may bend it alike. So the
sentences name what the shape is like, and what the parameters would cost; causes are named by
``explain``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.fit import FitResult, ModelFit, PeakEstimate
from concurve.models.all_models import MODELS
from concurve.models.predict import FAR
from concurve.models.stated import doubts, growth

#: Runs of residuals of equal sign are reported below this p-value.
_ORDER = 0.01
_LEVELS_WANTED = 8
#: An end below this share of its value is written as 0.
_NOTHING_BESIDE = 1e-6
_SIGNS = {"gamma": "γ", "alpha": "α", "beta": "β", "cap": "C"}
_COSTS = {"alpha": "contention", "beta": "coherency"}


def answers(result: FitResult) -> tuple[str, ...]:
    """The answer of the chosen model, as far as the stated intervals show it."""
    return tuple(text for text in (_limit(result), _superlinear(result), _peak(result)) if text)


def in_words(result: FitResult) -> str:
    """The chosen model with what is stated of its parameters: ``USL: α = 0.03 (0.02 to 0.04)``."""
    found = [
        f"{_SIGNS[name]} = {_between(name, figure)}{_unit(figure.unit)}"
        for name, figure in result.stated.parameters.items()
    ]
    return f"{_capital(result.best.title)}: {', '.join([*found[1:], found[0]])}."


def in_digits(value: float, digits: int = 4) -> str:
    """A figure to so many digits, written out up to the billions: ``2,554,000``."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def _between(name: str, figure: Estimate) -> str:
    """A parameter and its interval. Those without a unit have no exponents, and one that cannot be
    told from 0 no interval."""
    bound = _share if name in _COSTS else _bound
    value, high = bound(figure.value), bound(figure.high)
    low = "0" if 0 < (figure.low or 0) < _NOTHING_BESIDE * figure.value else bound(figure.low)
    return value if value == low == high else f"{value} ({low} to {high})"


def _share(value: float | None) -> str:
    return words.in_decimals(value, 3) if value is not None and abs(value) < 1e-4 else _bound(value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""


def _bound(value: float | None) -> str:
    if value is None:
        return "–"
    return ("∞" if value > 0 else "-∞") if math.isinf(value) else in_digits(value, 3)


def _limit(result: FitResult) -> str:
    best, top = result.best, max(result.levels)
    grows = growth([result.model(name) for name in result.stated.models], result.levels)
    if grows > 0:
        return (
            "Throughput grew faster than the number of workers from "
            f"N = {min(result.levels):g} to N = {top:g}: no limit is shown."
        )
    if best.name == "linear":
        return f"Throughput grows with the number of workers: no bend is seen up to N = {top:g}."
    if "cap" in best.parameters and math.isfinite(best.parameters["cap"].value):
        return _cap(result)
    return _costs(result, grows)


def _cap(result: FitResult) -> str:
    best, cap = result.best, result.stated.parameters["cap"]
    if cap.high is None or math.isinf(cap.high):
        return f"No limit is shown: a cap may lie anywhere from C = {_bound(cap.low)} on."
    reached = max(_level_of_cap(best), min(result.levels))
    before = ""
    if "alpha" in best.parameters and _is_shown(result, "alpha"):
        alpha = best.parameters["alpha"].value
        before = f", and bends before that as with contention of α = {alpha:.3g}"
    return (
        f"The curve is flat at {in_digits(cap.value)} from N = {reached:.3g} on, as where a "
        f"resource is used up{before}."
    )


def _level_of_cap(best: ModelFit) -> float:
    """N where the rising curve meets the cap: N = c(1−α)/(1−αc), c = C/γ."""
    ratio = best.parameters["cap"].value / best.parameters["gamma"].value
    alpha = best.parameters["alpha"].value if "alpha" in best.parameters else 0.0
    return ratio * (1 - alpha) / (1 - alpha * ratio)


def _is_shown(result: FitResult, name: str) -> bool:
    """Does the whole stated interval lie above 0?"""
    figure = result.stated.parameters.get(name)
    return figure is not None and figure.low is not None and figure.low > 0


def _may_be_0(result: FitResult) -> str:
    """The parameters whose stated intervals hold 0, as a clause."""
    names = [
        _SIGNS[name]
        for name in _COSTS
        if (figure := result.stated.parameters.get(name)) is not None
        and (figure.low is None or figure.low <= 0)
        and (figure.high is None or figure.high >= 0)
    ]
    return " and ".join(f"{name} may be 0" for name in names)


def _costs(result: FitResult, grows: int) -> str:
    """What the parameters that are shown would cost, at the greatest level."""
    top = max(result.levels)
    costs = {name: cost for name, cost in _at(result.best, top) if _is_shown(result, name)}
    reason = _may_be_0(result)
    if not costs:
        beginning = (
            "Throughput grows more slowly than N, but no limit is shown"
            if grows < 0
            else "No limit is shown"
        )
        return f"{beginning}: {reason}." if reason else f"{beginning}."
    larger, *smaller = sorted(costs, key=lambda name: costs[name], reverse=True)
    said = (
        f"The curve bends as with {_COSTS[larger]}: at N = {top:g} it would cost "
        f"{_bound(costs[larger])} times the work itself"
    )
    said += "".join(f", {_COSTS[name]} {_bound(costs[name])} times" for name in smaller) + "."
    if result.best.name == "amdahl":
        return f"{said} {_most(result)}"
    others = [what for name, what in _COSTS.items() if name not in costs]
    return f"{said} {_capital(others[0])} is not shown: {reason}." if others and reason else said


def _at(best: ModelFit, top: float) -> Iterator[tuple[str, float]]:
    """The costs of contention and coherency at N = ``top``, in units of the work itself."""
    if "alpha" in best.parameters:
        yield "alpha", best.parameters["alpha"].value * (top - 1)
    phi = MODELS[best.name].phi
    if phi is not None:
        yield "beta", best.parameters["beta"].value * float(phi(np.array(top))) * (top - 1)


def _most(result: FitResult) -> str:
    """The limit γ/α of Amdahl's law, between the ends that the stated intervals give it."""
    gamma, alpha = (result.stated.parameters[name] for name in ("gamma", "alpha"))
    least = None if gamma.low is None or alpha.high is None else gamma.low / alpha.high
    most = None if gamma.high is None or alpha.low is None else gamma.high / alpha.low
    return (
        f"Without coherency throughput stays below γ/α = {in_digits(gamma.value / alpha.value)} "
        f"({_bound(least)} to {_bound(most)})."
    )


def _superlinear(result: FitResult) -> str:
    alpha = result.stated.parameters.get("alpha")
    if alpha is None or alpha.high is None or alpha.high >= 0:
        return ""
    return (
        f"Superlinear: α = {alpha.value:.3g} is below 0 (at most {alpha.high:.3g}); "
        "it grows as where more workers add resources, such as cache or memory."
    )


def _peak(result: FitResult) -> str:
    best, peak = result.best, result.stated.peak
    if peak is not None and (peak.established or "cap" not in best.parameters):
        return peak_sentence(peak, result)
    if "beta" in best.parameters or best.name == "amdahl":
        return "No peak established."
    return ""


def peak_sentence(peak: PeakEstimate, result: FitResult) -> str:
    """The peak with its interval, or that no peak is established.

    Where the lowest level has the greatest throughput measured, a peak before the next level is a
    guess: throughput is said to fall.
    """
    lowest, second = result.levels[:2]
    low = "–" if peak.n.low is None else f"{peak.n.low:.3g}"
    if not peak.established or peak.n.high is None:
        return (
            f"No peak established: it may lie anywhere from N = {low} on, "
            "since a curve without a peak is not excluded."
        )
    falls = result.throughput[0] == max(result.throughput) and peak.n.value < second
    if falls or peak.n.value <= lowest:
        latest = f" (from N = {peak.n.high:.3g} at the latest)" if peak.n.high > lowest else ""
        return f"Throughput falls from N = {lowest:g} on{latest}."
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
            f"{_measured(result)} are too few to choose a model by AICc: the choice rests on "
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


def _measured(result: FitResult) -> str:
    """What was measured, in levels: more of them is what is asked for."""
    levels = f"{len(result.levels)} levels"
    if result.observations == "levels" or result.trials == len(result.levels):
        return levels
    return f"{result.trials} trials at {levels}"
