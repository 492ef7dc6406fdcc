"""The answer of a claim's test, and functions that the tests share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import Cell
from concurve.estimate import Estimate
from concurve.findings.claims import VerdictName
from concurve.stats.power import trials_to_tell
from concurve.terms import Level


class Answer(NamedTuple):
    """A verdict with its reason; the test compared the ``estimate`` with the ``threshold``.

    ``trials``: how many of each cell would decide with a power of 80 %, if the truth is as
    estimated, where that can be computed.
    """

    verdict: VerdictName
    reason: str
    estimate: Estimate | None
    threshold: str
    trials: int | None = None


def bounded(
    estimate: Estimate,
    at_least: float | None,
    at_most: float | None,
    spread: float | None = None,
) -> Answer:
    """Supported if the whole interval lies within the bounds, refuted if it lies beyond one.

    ``spread``: the standard deviation of the logarithms whose centre the estimate is; from it
    follows how many trials would decide.
    """
    threshold = " and ".join(
        f"{words} {bound:g}"
        for words, bound in (("at least", at_least), ("at most", at_most))
        if bound is not None
    )
    low, high = estimate.low, estimate.high
    trials = _trials(estimate, (at_least, at_most), spread)
    if low is None or high is None:
        return Answer(
            "undecided", "one trial has no interval: measure five at least", estimate, threshold
        )
    least = float("-inf") if at_least is None else at_least
    most = float("inf") if at_most is None else at_most
    if least <= low and high <= most:
        return Answer("supported", "the whole interval lies within the bound", estimate, threshold)
    if high < least or low > most:
        return Answer("refuted", "the whole interval lies beyond the bound", estimate, threshold)
    return Answer("undecided", "the interval contains the bound", estimate, threshold, trials)


def _trials(estimate: Estimate, bounds: Sequence[float | None], spread: float | None) -> int | None:
    """Trials that would tell the estimate from its nearest bound."""
    known = [bound for bound in bounds if bound is not None and bound > 0]
    if spread is None or not known or not 0 < estimate.value < math.inf:
        return None
    distance = min(abs(math.log(estimate.value) - math.log(bound)) for bound in known)
    return trials_to_tell(distance, spread, (1 - estimate.confidence) / 2)


def levels_of(
    factor: str, samples: Samples, needed: Mapping[str, float] | None = None
) -> Sequence[Level]:
    """The levels of a factor in this run, at least two. ``needed`` names the levels, all of which
    must be there."""
    levels = samples.levels(factor)
    if needed is not None:
        known = {str(level) for level in levels}
        for name in needed:
            if name not in known:
                raise MissingError(f"{factor}={name} was not run")
        return [level for level in levels if str(level) in needed]
    if len(levels) < 2:
        raise MissingError(f"{factor} was run at one level only")
    return levels


def by_level(
    factor: str,
    where: Cell,
    indicator: str,
    samples: Samples,
    needed: Mapping[str, float] | None = None,
) -> dict[Level, Sequence[float]]:
    """Values by level of a factor; ``needed`` as in :func:`levels_of`."""
    levels = levels_of(factor, samples, needed)
    return {level: samples.values({**where, factor: level}, indicator) for level in levels}


def lower_is_better(indicator: str, samples: Samples) -> bool:
    """Whether less of an indicator is better.

    Raises:
        MissingError: it has no better direction. A study with such a claim is refused when it is
            read; runs of older versions may have one.
    """
    better = samples.better(indicator)
    if better == "neither":
        raise MissingError(f"{indicator} has no better direction")
    return better == "lower"


def setting_in_words(cell: Cell) -> str:
    """``threads=2 sync=none``."""
    return " ".join(f"{name}={level}" for name, level in cell.items())
