"""The results of a fit as sentences: how the curve bends, where the peak is, what is doubtful.

A curve shows no cause: a lock, a full device and CPUs that run out may bend it alike. So the
sentences name what the shape is like, and what the parameters would cost; causes are named by
``explain``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.fit import FitResult, Misfit, ModelFit, PeakEstimate
from concurve.models.all_models import MODELS
from concurve.models.predict import FAR, curve_of
from concurve.models.stated import doubts, growth

#: Runs of residuals of equal sign are reported below this p-value.
_ORDER = 0.01
#: A model misses the levels where their trials' spread explains the distance with less chance.
_MISSED = 0.05
_LEVELS_WANTED = 8
#: An end below this share of its value is written as 0.
_NOTHING_BESIDE = 1e-6
#: A model with more than this part of the chosen one's weight is not told apart from it.
_RIVAL = 3
#: Throughput that differs by less than this factor between all levels, without a trend, is flat.
_FLAT = 1.15
#: Levels that differ by less are the same, however sure that is.
_DIFFER = 1.02
#: A model that misses a level with a single trial by more than this share is doubtful.
_OFF = 0.1
#: A model that has this share less than the single trial of the greatest level misses the top.
_ABOVE = 0.05
#: A slope in logarithms that comes from rounding.
_NO_SLOPE = 1e-6
#: A power of N this close to 0 or 1 is told as that.
_LEVEL = 0.05
_SIGNS = {"gamma": "γ", "alpha": "α", "beta": "β", "cap": "C"}
_COSTS = {"alpha": "contention", "beta": "coherency"}


class Terms(NamedTuple):
    """How a throughput is told: where ``is_time``, as the time that it is the inverse of."""

    is_time: bool = False

    @property
    def name(self) -> str:
        """What was measured."""
        return "time" if self.is_time else "throughput"

    def figure(self, throughput: float, digits: int = 4) -> str:
        """The figure as it was measured."""
        return in_digits(1 / throughput if self.is_time else throughput, digits)


_RATES = Terms()


def answers(result: FitResult, terms: Terms = _RATES) -> tuple[str, ...]:
    """The answer of the chosen model, as far as the stated intervals show it; without it where no
    model describes the curve, or throughput does not grow at all."""
    if result.misfit is not None:
        said = _misfit(result, result.misfit, terms)
    elif _is_flat(result):
        said = [_flat(result, terms)]
    else:
        said = [_limit(result, terms), _superlinear(result), _peak(result, terms)]
    return tuple(filter(None, said))


def in_words(result: FitResult) -> str:
    """The chosen model with what is stated of the parameters that it has: ``USL: α = 0.03 (0.02 to
    0.04)``; empty where they mean nothing."""
    if result.misfit is not None or _is_flat(result):
        return ""
    found = [
        f"{_SIGNS[name]} = {_between(name, figure)}{_unit(figure.unit)}"
        for name, figure in result.stated.parameters.items()
        if name in result.best.parameters
    ]
    return f"{_capital(result.best.title)}: {', '.join([*found[1:], found[0]])}."


def in_digits(value: float, digits: int = 4) -> str:
    """A figure to so many digits, written out up to the billions: ``2,554,000``."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def _between(name: str, figure: Estimate) -> str:
    """A parameter and its interval. Those without a unit have no exponents, and one that cannot be
    told from 0 no interval. A cap has the digits that the answer gives it: to fewer, it would look
    like another figure."""
    bound = {"cap": _whole}.get(name, _share if name in _COSTS else _bound)
    value, high = bound(figure.value), bound(figure.high)
    low = "0" if 0 < (figure.low or 0) < _NOTHING_BESIDE * figure.value else bound(figure.low)
    return value if value == low == high else f"{value} ({low} to {high})"


def _share(value: float | None) -> str:
    return words.in_decimals(value, 3) if value is not None and abs(value) < 1e-4 else _bound(value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""


def _bound(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "–"
    return ("∞" if value > 0 else "-∞") if math.isinf(value) else in_digits(value, digits)


def _whole(value: float | None) -> str:
    return _bound(value, 4)


def _misfit(result: FitResult, misfit: Misfit, terms: Terms) -> list[str]:
    """That no model describes the curve, what does, and what is known all the same."""
    said = (
        f"No model describes this curve: at N = {misfit.n:g} the {terms.name} measured is "
        f"{terms.figure(misfit.measured)}, and {result.best.title}, the best of them, has "
        f"{terms.figure(misfit.fitted)}."
    )
    pieces = ""
    lowest, top = min(result.levels), max(result.levels)
    if misfit.pieces is not None:
        last, first, before, after = misfit.pieces
        if min(before, after) > 1 + _LEVEL:
            pieces = f"{_faster(lowest, top)}."
        elif max(before, after) < -_LEVEL:
            pieces = f"Throughput falls from N = {lowest:g} on."
        else:
            pieces = (
                f"Two pieces are closer: up to N = {last:g} throughput {_power(before)}, from "
                f"N = {first:g} on it {_power(after)}. Look for what changes there."
            )
    return [
        said,
        pieces,
        f"{_greatest(result, terms)} No limit, no peak and nothing beyond N = {top:g} is told.",
    ]


def _faster(lowest: float, top: float) -> str:
    return f"Throughput grew faster than the number of workers from N = {lowest:g} to N = {top:g}"


def _power(exponent: float) -> str:
    """``grows as N``, ``grows as N^0.43``."""
    if abs(exponent) < _LEVEL:
        return "stays the same"
    power = "N" if abs(exponent - 1) < _LEVEL else f"N^{exponent:.2g}"
    return f"{'grows' if exponent > 0 else 'falls'} as {power}"


def _greatest(result: FitResult, terms: Terms) -> str:
    """``The greatest throughput measured is 8,000, at N = 8.``"""
    at = _top(result)
    which = "shortest" if terms.is_time else "greatest"
    return (
        f"The {which} {terms.name} measured is {terms.figure(result.throughput[at])}, at "
        f"N = {result.levels[at]:g}."
    )


def _is_flat(result: FitResult) -> bool:
    """Does throughput stay about the same over all levels, without a trend, or a level above
    another, that can be told from none?"""
    lowest, top = min(result.levels), max(result.levels)
    if top < 2 * lowest or max(result.throughput) > _FLAT * min(result.throughput):
        return False
    if _levels_differ(result):
        return False
    n, x = np.log(result.levels), np.log(result.throughput)
    n, x = n - n.mean(), x - x.mean()
    slope = float((n * x).sum() / (n * n).sum())
    error = math.sqrt(float(((x - slope * n) ** 2).sum() / (n * n).sum()) / (len(n) - 2))
    return abs(slope) <= float(stdtrit(len(n) - 2, 0.975)) * error + _NO_SLOPE


def _levels_differ(result: FitResult) -> bool:
    """Do the trials of the greatest level, by throughput, lie above those of the least one? A slope
    over a few levels does not tell."""
    least, most = (pick(result.centres, key=lambda it: it.value) for pick in (min, max))
    if least.high is None or most.low is None:
        return False
    return most.low > least.high and most.value > _DIFFER * least.value


def _flat(result: FitResult, terms: Terms) -> str:
    least, most = _ends(result.throughput, terms)
    stays = f"is {least}" if least == most else f"stays between {least} and {most}"
    return (
        f"Throughput does not grow with N: from N = {min(result.levels):g} to "
        f"{max(result.levels):g} the {terms.name} {stays}."
    )


def _ends(throughput: Sequence[float], terms: Terms) -> tuple[str, str]:
    """The least and the greatest figure, as they were measured."""
    low, high = terms.figure(min(throughput)), terms.figure(max(throughput))
    return (high, low) if terms.is_time else (low, high)


def _limit(result: FitResult, terms: Terms) -> str:
    best, top = result.best, max(result.levels)
    grows = growth([result.model(name) for name in result.stated.models], result.levels)
    if grows > 0:
        return f"{_faster(min(result.levels), top)}: no limit is shown."
    fallen = "" if _is_any_cost_shown(result) else _fallen(result, terms)
    if fallen:
        return fallen
    if best.name == "linear":
        return f"Throughput grows with the number of workers: no bend is seen up to N = {top:g}."
    if "cap" in best.parameters and math.isfinite(best.parameters["cap"].value):
        return _cap(result, terms)
    return _costs(result, grows, terms)


def _cap(result: FitResult, terms: Terms) -> str:
    best, cap = result.best, result.stated.parameters["cap"]
    if cap.high is None or math.isinf(cap.high):
        return f"No limit is shown: a cap may lie anywhere from C = {_bound(cap.low)} on."
    reached = max(_level_of_cap(best), min(result.levels))
    above = [x for n, x in zip(result.levels, result.throughput, strict=True) if n >= reached]
    if _is_single(result) and above and max(above) > _FLAT * min(above):
        least, most = _ends(above, terms)
        return (
            f"From N = {reached:.3g} on the {terms.name} does not go on growing: it goes up and "
            f"down between {least} and {most}."
        )
    before = ""
    if "alpha" in best.parameters and _is_shown(result, "alpha"):
        alpha = best.parameters["alpha"].value
        before = f", and bends before that as with contention of α = {alpha:.3g}"
    rival = _bending_rival(result)
    if rival is not None:
        return _cap_or_bend(result, rival, cap.value, reached, terms)
    return (
        f"The curve is flat at {_level(cap.value, terms)} from N = {reached:.3g} on, as where a "
        f"resource is used up{before}."
    )


def _level(cap: float, terms: Terms) -> str:
    """Where a curve is flat: by the name that its parameter has, as the two are one."""
    return terms.figure(cap) if terms.is_time else f"C = {terms.figure(cap)}"


def _rivals(result: FitResult) -> list[ModelFit]:
    """The models that are not clearly worse than the chosen one, the best first."""
    best = result.best
    found = [m for m in result.models if m.name != best.name and m.weight > best.weight / _RIVAL]
    return sorted(found, key=lambda item: -item.weight)


def _bending_rival(result: FitResult) -> ModelFit | None:
    """The best rival of a model with a cap that has none."""
    return next((item for item in _rivals(result) if "cap" not in item.parameters), None)


def _says_both(result: FitResult) -> bool:
    """Does the answer name a rival of the chosen model?"""
    cap = result.stated.parameters.get("cap")
    is_capped = cap is not None and cap.high is not None and math.isfinite(cap.high)
    return is_capped and _bending_rival(result) is not None


def _cap_or_bend(
    result: FitResult, rival: ModelFit, cap: float, reached: float, terms: Terms
) -> str:
    """The chosen model has a cap and a rival has none: both, and what they say further out."""
    twice = FAR * max(result.levels)
    ahead = float(curve_of(rival, [twice])[0])
    best = result.best
    return (
        f"Two shapes are not told apart: flat at {_level(cap, terms)} from N = {reached:.3g} on, "
        f"as where a resource is used up ({best.title}, weight {100 * best.weight:.0f} %), or "
        f"bending on without a cap ({rival.title}, {100 * rival.weight:.0f} %), to "
        f"{terms.figure(ahead, 3)} at N = {twice:g}. A prediction is a mean over the models."
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


def _is_any_cost_shown(result: FitResult) -> bool:
    """Does the chosen model show a limit: a cost of its own, or a cap with both ends?"""
    cap = result.stated.parameters.get("cap")
    is_capped = cap is not None and cap.high is not None and math.isfinite(cap.high)
    own = [name for name, _ in _at(result.best, max(result.levels))]
    return is_capped or any(_is_shown(result, name) for name in own)


def _fallen(result: FitResult, terms: Terms) -> str:
    """That throughput was measured to fall, whatever the models leave open; empty where the last
    level is not shown to lie below the greatest.

    Single trials have no spread of their own, and the models' distance from them is none: there a
    fall counts that a flat curve does not have.
    """
    top = _top(result)
    greatest, last = result.throughput[top], result.throughput[-1]
    if _is_single(result):
        is_below = greatest > _FLAT * last
    else:
        told_apart = _is_above(result.centres[top], result.centres[-1])
        is_below = told_apart and greatest > _DIFFER * last
    if not is_below:
        return ""
    change = greatest / last - 1 if terms.is_time else 1 - last / greatest
    return (
        f"{_capital(terms.name)} {'rises' if terms.is_time else 'falls'} beyond "
        f"N = {result.levels[top]:g}: from {terms.figure(greatest)} to "
        f"{terms.figure(last)} at N = {result.levels[-1]:g}, by "
        f"{words.in_percent(change)} %."
    )


def _top(result: FitResult) -> int:
    """The number of the level with the greatest throughput measured."""
    return max(range(len(result.levels)), key=lambda at: result.throughput[at])


def _is_above(one: Estimate, other: Estimate) -> bool:
    """Do the intervals leave no doubt that one is above the other?"""
    return one.low is not None and other.high is not None and one.low > other.high


def _around_top(result: FitResult) -> str:
    """Where the peak is by the measurements alone: between the levels beside the greatest one and
    those that its trials do not tell from it."""
    top = _top(result)
    greatest = result.centres[top]
    alike = [
        at
        for at, figure in enumerate(result.centres)
        if at == top or not (_is_single(result) or _is_above(greatest, figure))
    ]
    before, after = min(alike) - 1, max(alike) + 1
    levels = result.levels
    if before < 0 and after == len(levels):
        return ""
    if before < 0:
        return f"By the measurements the peak lies below N = {levels[after]:g}."
    if after == len(levels):
        return f"By the measurements the peak lies beyond N = {levels[before]:g}."
    return (
        f"By the measurements the peak lies between N = {levels[before]:g} and "
        f"N = {levels[after]:g}."
    )


def _may_be_0(result: FitResult) -> str:
    """The parameters whose stated intervals hold 0, as a clause. If both do, a line says whether
    both may be 0 at once."""
    names = [
        _SIGNS[name]
        for name in _COSTS
        if (figure := result.stated.parameters.get(name)) is not None
        and (figure.low is None or figure.low <= 0)
        and (figure.high is None or figure.high >= 0)
    ]
    if len(names) < 2:
        return "".join(f"{name} may be 0" for name in names)
    if "linear" in result.stated.models:
        return "contention (α) and coherency (β) may both be 0, as on a straight line"
    if any("cap" in result.model(name).parameters for name in result.stated.models):
        return "contention (α), coherency (β) or a cap may bend the curve, each without the others"
    return "contention (α) or coherency (β) bends the curve, and either may be 0 without the other"


def _costs(result: FitResult, grows: int, terms: Terms) -> str:
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
        return f"{said} {_most(result, terms)}"
    others = [what for name, what in _COSTS.items() if name not in costs]
    return f"{said} {_capital(others[0])} is not shown: {reason}." if others and reason else said


def _at(best: ModelFit, top: float) -> Iterator[tuple[str, float]]:
    """The costs of contention and coherency at N = ``top``, in units of the work itself."""
    if "alpha" in best.parameters:
        yield "alpha", best.parameters["alpha"].value * (top - 1)
    phi = MODELS[best.name].phi
    if phi is not None:
        yield "beta", best.parameters["beta"].value * float(phi(np.array(top))) * (top - 1)


def _most(result: FitResult, terms: Terms) -> str:
    """The limit γ/α of Amdahl's law, between the ends that the stated intervals give it."""
    gamma, alpha = (result.stated.parameters[name] for name in ("gamma", "alpha"))
    least = None if gamma.low is None or alpha.high is None else gamma.low / alpha.high
    most = None if gamma.high is None or alpha.low is None else gamma.high / alpha.low
    if terms.is_time:
        least, most = (None if end is None else 1 / end for end in (most, least))
    what = "the time stays above α/γ" if terms.is_time else "throughput stays below γ/α"
    return (
        f"Without coherency {what} = {terms.figure(gamma.value / alpha.value)} "
        f"({_bound(least)} to {_bound(most)})."
    )


def _superlinear(result: FitResult) -> str:
    """Superlinear growth, where the parameter and the measurements show it, and a model is close:
    where a model misses the shape, α below 0 does no more than mend its beginning."""
    alpha = result.stated.parameters.get("alpha")
    if alpha is None or not _is_below_0(alpha) or _is_missed(result):
        return ""
    if not _rises_per_worker(result):
        return ""
    return (
        f"Superlinear: α = {alpha.value:.3g} is below 0 (at most {alpha.high:.3g}); "
        "it grows as where more workers add resources, such as cache or memory."
    )


def _is_below_0(figure: Estimate) -> bool:
    return figure.high is not None and figure.high < 0


def _rises_per_worker(result: FitResult) -> bool:
    """Is throughput per worker at some level above that of the least, by both intervals?"""
    least, *others = zip(result.levels, result.centres, strict=True)
    (lowest, first) = least
    return first.high is not None and any(
        figure.low is not None and figure.low / n > first.high / lowest for n, figure in others
    )


def _is_missed(result: FitResult) -> bool:
    """Does the chosen model miss levels: by more than their trials spread, or, with one trial a
    level, by a large share?"""
    chance = result.best.chance_of_misfit
    by_spread = chance is not None and chance < _MISSED
    return by_spread or (_is_single(result) and _off(result).most > _OFF)


def _peak(result: FitResult, terms: Terms) -> str:
    best, peak = result.best, result.stated.peak
    if peak is not None and (peak.established or "cap" not in best.parameters):
        return peak_sentence(peak, result, terms)
    if "beta" in best.parameters or best.name == "amdahl":
        return _not_established("No peak established.", result, terms)
    return ""


def _not_established(said: str, result: FitResult, terms: Terms) -> str:
    """That the models show no peak; where throughput was measured to fall, what the measurements
    say of its place."""
    if not _fallen(result, terms):
        return said
    return f"The models do not establish the peak. {_around_top(result)}".strip()


def peak_sentence(peak: PeakEstimate, result: FitResult, terms: Terms) -> str:
    """The peak with its interval, or that no peak is established. A throughput there that is below
    one that was measured is not told: that one is.

    Where the lowest level has the greatest throughput measured, a peak before the next level is a
    guess: throughput is said to fall.
    """
    lowest, second = result.levels[:2]
    low = "–" if peak.n.low is None else f"{peak.n.low:.3g}"
    if not peak.established or peak.n.high is None:
        greatest = result.levels[_top(result)]
        # The greatest level may have the peak, whatever a model says, unless the curve goes on.
        if peak.n.low is not None and greatest < min(peak.n.low, result.levels[-1]):
            low = f"{greatest:.3g}"
        return _not_established(
            f"No peak established: it may lie anywhere from N = {low} on, "
            "since a curve without a peak is not excluded.",
            result,
            terms,
        )
    falls = result.throughput[0] == max(result.throughput) and peak.n.value < second
    if falls or peak.n.value <= lowest:
        latest = f" (from N = {peak.n.high:.3g} at the latest)" if peak.n.high > lowest else ""
        return f"Throughput falls from N = {lowest:g} on{latest}."
    if _is_top_missed(peak, result):
        return (
            f"{_capital(result.best.title)} misses the top: by the models the peak is at "
            f"N = {peak.n.value:.3g} ({low} to {peak.n.high:.3g}). {_greatest(result, terms)} "
            f"{_around_top(result)}"
        ).strip()
    place = f"Peak at N = {peak.n.value:.3g} ({low} to {peak.n.high:.3g})"
    if peak.throughput.value < max(result.throughput):
        return f"{place}. {_greatest(result, terms)}"
    return f"{place} with a {terms.name} of {terms.figure(peak.throughput.value)}."


def _is_top_missed(peak: PeakEstimate, result: FitResult) -> bool:
    """Is the level with the greatest throughput outside the interval of the peak, and above the
    chosen curve by more than its trials explain? Single trials tell no such chance: there a share
    counts that matters."""
    at = _top(result)
    level, figure = result.levels[at], result.centres[at]
    if peak.n.high is None or (peak.n.low or 0) <= level <= peak.n.high:
        return False
    if level == result.levels[-1] < peak.n.value:
        return False
    fitted = float(curve_of(result.best, [level])[0])
    if _is_single(result):
        return figure.value > (1 + _ABOVE) * fitted
    return figure.low is not None and figure.low > fitted


def warnings(result: FitResult) -> tuple[str, ...]:
    """The reasons for doubts about the fit."""
    if result.misfit is not None:
        return ()
    best = result.best
    title = best.title
    found = []
    if best.chance_of_misfit is not None and best.chance_of_misfit < _MISSED:
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
            f"{_measured(result)} are too few to choose a model with confidence: measure at "
            f"{_LEVELS_WANTED} levels or more."
        )
    off = _off(result)
    if _is_single(result) and off.most > _OFF:
        found.append(
            f"At N = {off.n:g} {title} is {100 * off.most:.0f} % off: one trial a level does not "
            "tell chance from another shape; repeat each level."
        )
    alpha = result.stated.parameters.get("alpha")
    per_worker = [x / n for n, x in zip(result.levels, result.throughput, strict=True)]
    # Single trials may rise and not show it: that is no reason to doubt the shape.
    if alpha is not None and _is_below_0(alpha) and max(per_worker) <= per_worker[0]:
        found.append(
            f"α is below 0, although no level has shown more throughput per worker than "
            f"N = {result.levels[0]:g}: {title} misses the shape, and its parameters mean little."
        )
    rivals = [item.title for item in _rivals(result)]
    if rivals and not (_is_flat(result) or _says_both(result)):
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


class _Off(NamedTuple):
    """The level that the chosen model misses most, and by which share of what was measured."""

    n: float
    most: float


def _off(result: FitResult) -> _Off:
    fitted = curve_of(result.best, result.levels).tolist()
    pairs = zip(result.levels, result.throughput, fitted, strict=True)
    return max((_Off(n, abs(x - y) / x) for n, x, y in pairs), key=lambda off: off.most)


def _is_single(result: FitResult) -> bool:
    """Has each level one trial, so that nothing says how far chance moves it?"""
    return result.trials == len(result.levels)


def _measured(result: FitResult) -> str:
    """What was measured, in levels: more of them is what is asked for."""
    levels = f"{len(result.levels)} levels"
    if result.observations == "levels" or result.trials == len(result.levels):
        return levels
    return f"{result.trials} trials at {levels}"
