"""The answer of a claim's test, and functions that the tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import Cell
from concurve.estimate import Estimate
from concurve.findings.claims import VerdictName
from concurve.terms import Level


class Answer(NamedTuple):
    """A verdict with its reason; the test compared the ``estimate`` with the ``threshold``."""

    verdict: VerdictName
    reason: str
    estimate: Estimate | None
    threshold: str


def bounded(estimate: Estimate, at_least: float | None, at_most: float | None) -> Answer:
    """Supported if the whole interval lies within the bounds, refuted if it lies beyond one."""
    threshold = " and ".join(
        f"{words} {bound:g}"
        for words, bound in (("at least", at_least), ("at most", at_most))
        if bound is not None
    )
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return Answer("undecided", "one trial has no interval", estimate, threshold)
    least = float("-inf") if at_least is None else at_least
    most = float("inf") if at_most is None else at_most
    if least <= low and high <= most:
        return Answer("supported", "the whole interval lies within the bound", estimate, threshold)
    if high < least or low > most:
        return Answer("refuted", "the whole interval lies beyond the bound", estimate, threshold)
    return Answer("undecided", "the interval contains the bound", estimate, threshold)


def by_level(
    factor: str,
    where: Cell,
    indicator: str,
    samples: Samples,
    needed: Mapping[str, float] | None = None,
) -> dict[Level, Sequence[float]]:
    """Values by level of a factor. ``needed`` names the levels, all of which must be there."""
    levels = samples.levels(factor)
    if needed is not None:
        known = {str(level) for level in levels}
        for name in needed:
            if name not in known:
                raise MissingError(f"{factor}={name} was not run")
        levels = [level for level in levels if str(level) in needed]
    if len(levels) < 2 and needed is None:
        raise MissingError(f"{factor} was run at one level only")
    return {level: samples.values({**where, factor: level}, indicator) for level in levels}


def setting_in_words(cell: Cell) -> str:
    """``threads=2 sync=none``."""
    return " ".join(f"{name}={level}" for name, level in cell.items())
