"""The answer of a claim's test, and functions that the tests share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import Cell
from concurve.estimate import Estimate
from concurve.findings.claims import VerdictName
from concurve.stats.power import RANKS, TOO_COARSE, trials_to_tell
from concurve.terms import Level


class Answer(NamedTuple):
    """A verdict with its reason; the test compared the ``estimate`` with the ``threshold``.

    ``trials``: how many of each cell would decide with a power of 80 %, if the truth is as
    estimated, where that can be computed. ``differ``: by which share the cells lie apart that the
    claim needs to differ.
    """

    verdict: VerdictName
    reason: str
    estimate: Estimate | None
    threshold: str
    trials: int | None = None
    differ: Estimate | None = None


def bounded(
    estimate: Estimate,
    at_least: float | None,
    at_most: float | None,
    spread: float | None = None,
    resolution: float = 0.0,
    efficiency: float = RANKS,
) -> Answer:
    """Supported if the whole interval lies within the bounds, refuted if it lies beyond one.

    ``spread``: the standard deviation of the logarithms whose centre the estimate is; from it
    follows how many trials would decide, by a test of this ``efficiency``. ``resolution``: by which
    share its clock may be off; where that reaches as far as the bound, no number of trials decides.
    """
    threshold = " and ".join(
        f"{words} {bound:g}"
        for words, bound in (("at least", at_least), ("at most", at_most))
        if bound is not None
    )
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return Answer(
            "undecided",
            "one trial has no interval: it takes two, and more make it narrower",
            estimate,
            threshold,
        )
    least = float("-inf") if at_least is None else at_least
    most = float("inf") if at_most is None else at_most
    if least <= low and high <= most:
        return Answer("supported", "the whole interval lies within the bound", estimate, threshold)
    if high < least or low > most:
        return Answer("refuted", "the whole interval lies beyond the bound", estimate, threshold)
    reason, trials = "the interval contains the bound", None
    distance, off = _distance(estimate, (at_least, at_most)), math.log1p(resolution)
    if off and distance is not None and distance <= off:
        reason = f"{reason}; {TOO_COARSE}"
    elif distance is not None and spread is not None:
        tail = (1 - estimate.confidence) / 2
        trials = trials_to_tell(distance, spread, tail, off, efficiency=efficiency)
    return Answer("undecided", reason, estimate, threshold, trials)


def _distance(estimate: Estimate, bounds: Sequence[float | None]) -> float | None:
    """How far the estimate lies from its nearest bound, on the logarithm."""
    known = [bound for bound in bounds if bound is not None and bound > 0]
    if not known or not 0 < estimate.value < math.inf:
        return None
    return min(abs(math.log(estimate.value) - math.log(bound)) for bound in known)


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
