"""Scaling models of measured numbers: columns in, :class:`~concurve.findings.fit.Fit` out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.analysis.odd_rows import odd_rows
from concurve.errors import ConcurveError
from concurve.estimate import Estimate
from concurve.findings.fit import Expectation, Fit, FitResult, Prediction
from concurve.models import fit_all, predict
from concurve.models.cpus import Within, within_cpus
from concurve.models.curve import LEVELS_MIN
from concurve.models.predict import HELD, beyond_the_curve, curve_of, no_value
from concurve.models.sentences import Terms, answers, in_words

_CPUS_UNKNOWN = (
    "The number of CPUs is not known: if they are used up, levels beyond look like contention, and "
    "no prediction holds there; --cpus says how many there are."
)
#: Points of a drawn curve.
_STEPS = 80
#: Levels that span more than this ratio get a logarithmic axis, with even steps on it.
AXIS_LOG_SPAN = 8.0


class Numbers(NamedTuple):
    """Workers and throughput of each trial, and what their columns are called.

    ``is_time``: the column has the times of a fixed piece of work, of which throughput is the
    inverse. ``derived`` is N, X or R if Little's law gave it. ``told`` is what is to be known
    before the result is read.
    """

    n: Sequence[float]
    x: Sequence[float]
    n_name: str
    x_name: str
    is_time: bool = False
    derived: str = ""
    told: tuple[str, ...] = ()


#: A figure that fell to this share of what it was is no longer noise about a constant.
_FELL_TO = 0.75


def falls_as_times_do(n: Sequence[float], x: Sequence[float]) -> bool:
    """Does a figure fall from the least level on, further at each, as times of a program do that
    scales? Where it rises again at the end, as times do beyond the CPUs, it has fallen before."""
    centres = [
        statistics.median(value for level, value in zip(n, x, strict=True) if level == at)
        for at in sorted(set(n))
    ]
    least = centres.index(min(centres))
    falling = centres[: least + 1]
    return (
        least > 0
        and 2 * least >= len(centres) - 1
        and centres[0] == max(centres)
        and centres[least] <= _FELL_TO * centres[0]
        and falling == sorted(falling, reverse=True)
    )


def fit_numbers(
    numbers: Numbers,
    predict_at: Sequence[float],
    *,
    absolute: bool,
    confidence: float,
    cpus: float | None = None,
) -> Fit:
    """Fit every model, and say what to expect at the numbers of workers asked for.

    With ``cpus`` the levels beyond them are set apart, unless their throughput goes on growing.

    Raises:
        ConcurveError: the numbers cannot be fitted.
    """
    within = within_cpus(numbers.n, numbers.x, cpus)
    if within.said and len(set(within.n.tolist())) < LEVELS_MIN:
        raise ConcurveError(
            f"{within.said} Up to the CPUs there are fewer than {LEVELS_MIN} levels: too few for a "
            "model",
            "measure at more levels up to the CPUs, or on more CPUs",
        )
    result = fit_all(within.n, within.x, absolute=absolute, confidence=confidence)
    is_open = not within.said and result.misfit is None
    closed = [] if is_open else [n for n in predict_at if n > max(result.levels)]
    lost = beyond_the_curve(result, [n for n in predict_at if n not in closed])
    asked = [n for n in predict_at if n not in {*closed, *lost}]
    levels = _levels(result, asked)
    values = tuple(1 / x if numbers.is_time else x for x in numbers.x)
    return Fit(
        n=tuple(numbers.n),
        values=values,
        n_name=numbers.n_name,
        x_name=numbers.x_name,
        is_time=numbers.is_time,
        result=msgspec.structs.replace(
            result,
            answers=tuple(
                filter(
                    None,
                    (
                        *answers(result, Terms(numbers.is_time)),
                        _on_cpus(within, cpus),
                        _refused(closed, max(result.levels)),
                        f"{words.sentence(no_value(result, lost))}." if lost else "",
                        in_words(result),
                    ),
                )
            ),
        ),
        expectations=tuple(
            _expectations(predict(result, asked), numbers.is_time, _end_of(within, cpus))
        ),
        chosen=tuple(_chosen(result, levels, numbers.is_time)),
        expected=tuple(_expectations(predict(result, levels), numbers.is_time)),
        notes=(
            *notes_of(result, numbers.n_name, numbers.x_name, numbers.is_time, numbers.derived),
            *_on_bands(result, asked),
            *([_CPUS_UNKNOWN] if cpus is None else []),
        ),
        told=(*numbers.told, *odd_rows(numbers.n, values, numbers.n_name, numbers.x_name)),
    )


def _refused(numbers: Sequence[float], top: float) -> str:
    """Which numbers that were asked for have no prediction; empty without any."""
    if not numbers:
        return ""
    named = words.listed([f"{n:g}" for n in numbers])
    return f"Nothing is predicted beyond N = {top:g}, so not at N = {named}."


def _on_cpus(within: Within, cpus: float | None) -> str:
    """What the CPUs that were given change; empty without any, or with all levels up to them."""
    top = max(within.n)
    if within.said:
        return within.said
    if cpus is not None and top > cpus:
        return (
            f"Throughput goes on growing beyond the {cpus:g} CPUs: they were not used up, and all "
            "levels are fitted."
        )
    return ""


def _on_bands(result: FitResult, predict_at: Sequence[float]) -> Iterator[str]:
    """What the bands of the predictions asked for are."""
    bottom, top = min(result.levels), max(result.levels)
    if any(bottom <= n <= top for n in predict_at):
        yield "Within the measured levels a band is that of the measurements."
    if any(n > top for n in predict_at):
        yield f"Beyond N = {top:g}, up to twice that, it is {HELD}."


def notes_of(
    result: FitResult, n_name: str, x_name: str, is_time: bool = False, derived: str = ""
) -> tuple[str, ...]:
    """Notes on how the fit read its numbers."""
    notes = [_choice(result), f"Error model: {result.error_model}."]
    if result.trials > len(result.levels):
        notes.append(
            f"Rows of the same {n_name} are replicates: {result.trials} trials at "
            f"{len(result.levels)} levels."
        )
    if is_time:
        notes.append(f"{x_name} is a time: throughput is 1/{x_name}.")
    if derived in ("N", "X"):
        notes.append(f"{derived} was not measured but follows from Little's law.")
    notes += [f"{name} is left out: {why}." for name, why in result.left_out.items()]
    return tuple(notes)


def _choice(result: FitResult) -> str:
    """How the model was chosen, how its weight compares with that of the next, and whether the data
    tell it from others."""
    best = result.best
    few = "generalised cross-validation, since the levels are too few for AICc"
    by = "AICc" if result.criterion == "aicc" else few
    said = f"{best.name} is chosen by {by}: it has {_percent(best.weight)} of the weight"
    others = [item for item in result.models if item is not best]
    if others:
        following = max(others, key=lambda item: item.weight)
        why = ", a cap with one level on it" if following.weight > best.weight else ""
        said += f" (next: {following.name}, {_percent(following.weight)}{why})"
    if result.misfit is not None:
        return f"{said}."
    alike = [name for name in result.stated.models if name != best.name]
    if alike:
        return f"{said}. The data do not tell it from {words.listed(alike)}."
    return f"{said}. The data contradict all others." if others else f"{said}."


def _percent(weight: float) -> str:
    return f"{100 * weight:.0f} %"


def _levels(result: FitResult, predict_at: Sequence[float]) -> list[float]:
    """Even steps of the axis, from the least level to the furthest number asked for."""
    first, top = min(result.levels), max([*result.levels, *predict_at])
    steps = [step / _STEPS for step in range(_STEPS + 1)]
    if first > 0 and top / first > AXIS_LOG_SPAN:
        return [float(first * (top / first) ** step) for step in steps]
    return [first + (top - first) * step for step in steps]


def _chosen(
    result: FitResult, levels: Sequence[float], is_time: bool
) -> Iterator[tuple[float, float]]:
    for n, x in zip(levels, curve_of(result.best, levels).tolist(), strict=True):
        value = x if math.isfinite(x) else math.nan
        yield n, 1 / value if is_time else value


def _end_of(within: Within, cpus: float | None) -> float:
    """The number of workers from which on they may share CPUs that no level shows to be used up:
    infinite where the CPUs are not known, or workers beyond them got further."""
    if cpus is None or max(within.n) > cpus:
        return math.inf
    return cpus


def _expectations(
    predictions: Sequence[Prediction], is_time: bool, cpus: float = math.inf
) -> Iterator[Expectation]:
    for item in predictions:
        figure = _inverse(item.throughput) if is_time else item.throughput
        said = [item.warning] if item.warning else []
        if item.n > cpus:
            counted = "the one CPU" if cpus == 1 else f"the {cpus:g} CPUs"
            said.append(
                f"N = {item.n:g} is more than {counted}: the prediction holds only where workers "
                "do not need a CPU each"
            )
        yield Expectation(n=item.n, figure=figure, warning="; ".join(said))


def _inverse(figure: Estimate) -> Estimate:
    """A throughput with its ends as a time."""
    low = None if figure.high is None else 1 / figure.high
    high = None if figure.low is None else 1 / figure.low
    return msgspec.structs.replace(figure, value=1 / figure.value, low=low, high=high)
