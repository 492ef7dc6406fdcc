"""Claims on exact readings, which every trial gives alike: they need no interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from concurve.analysis.claims.answer import Answer, bounded, by_level
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import (
    Distinct,
    Linear,
    Mapping_,
    Overlap,
    RatioOfSteps,
    Same,
    Step,
)
from concurve.estimate import Estimate
from concurve.findings.claims import VerdictName
from concurve.terms import Level


def mapping(test: Mapping_, samples: Samples) -> Answer:
    """Does each level give the reading of the table?"""
    columns = by_level(test.factor, test.where, test.indicator, samples, needed=test.table)
    wrong = [
        f"{level} gave {_few(values)} instead of {test.table[str(level)]:g}"
        for level, values in columns.items()
        if str(level) in test.table and set(values) != {test.table[str(level)]}
    ]
    if wrong:
        return Answer("refuted", "; ".join(wrong), None, "exactly the table")
    return Answer("supported", f"all {len(test.table)} levels agree", None, "exactly the table")


def _exact(values: Sequence[float]) -> float | None:
    """A reading that every trial gave alike; ``None`` where they differ."""
    return values[0] if len(set(values)) == 1 else None


def _readings(columns: Mapping[Level, Sequence[float]]) -> dict[Level, float] | Answer:
    """The exact reading at each level, or the answer where trials of one level differ."""
    exact: dict[Level, float] = {}
    for level, values in columns.items():
        reading = _exact(values)
        if reading is None:
            return Answer("undecided", f"at {level} trials gave {_few(values)}", None, "")
        exact[level] = reading
    return exact


def step(test: Step, samples: Samples) -> Answer:
    """The difference of the readings of two cells."""
    cells = {"of": test.of, "over": test.over}
    exact = _readings({k: samples.values(cell, test.indicator) for k, cell in cells.items()})
    if isinstance(exact, Answer):
        return exact
    return _counted(exact["of"] - exact["over"], test.at_least, test.at_most,
                    f"from {exact['over']:g} to {exact['of']:g}")  # fmt: skip


def ratio_of_steps(test: RatioOfSteps, samples: Samples) -> Answer:
    """One step over another. Two steps of 0 are equal; one that is not 0 is infinitely many times
    as far as one of 0."""
    cells = {
        "of": test.of,
        "over": test.over,
        "than_of": test.than_of,
        "than_over": test.than_over,
    }
    exact = _readings({k: samples.values(cell, test.indicator) for k, cell in cells.items()})
    if isinstance(exact, Answer):
        return exact
    own, other = exact["of"] - exact["over"], exact["than_of"] - exact["than_over"]
    said = (
        f"a step of {own:g} (from {exact['over']:g} to {exact['of']:g}) against one of {other:g} "
        f"(from {exact['than_over']:g} to {exact['than_of']:g})"
    )
    if other:
        return _counted(own / other, test.at_least, test.at_most, said)
    if not own:
        equal = _counted(1.0, test.at_least, test.at_most, f"{said}: two steps of 0 are equal")
        return equal._replace(estimate=None)
    infinite = math.copysign(math.inf, own)
    return _counted(infinite, test.at_least, test.at_most, said)._replace(estimate=None)


def same(test: Same, samples: Samples) -> Answer:
    """Does every level give one and the same reading?"""
    needed = {str(level): 0.0 for level in test.among} or None
    columns = by_level(test.factor, test.where, test.indicator, samples, needed)
    seen = ", ".join(f"{level} gave {_few(values)}" for level, values in columns.items())
    if len({value for values in columns.values() for value in values}) == 1:
        return Answer("supported", seen, None, "the same at every level")
    return Answer("refuted", seen, None, "the same at every level")


def linear(test: Linear, samples: Samples) -> Answer:
    """Least squares through the exact readings; the greatest distance from the line decides."""
    threshold = f"within {test.within:g} of a line"
    exact = _readings(by_level(test.factor, test.where, test.indicator, samples))
    if isinstance(exact, Answer):
        return exact
    try:
        levels = [float(level) for level in exact]
    except ValueError as error:
        raise MissingError(f"the levels of {test.factor} are no numbers") from error
    slope, intercept = statistics.linear_regression(levels, list(exact.values()))
    furthest = max(
        abs(intercept + slope * level - reading)
        for level, reading in zip(levels, exact.values(), strict=True)
    )
    if slope == 0:
        return Answer("refuted", "the line is level", None, threshold)
    verdict: VerdictName = "supported" if furthest <= test.within else "refuted"
    reason = f"slope {slope:.3g}, greatest distance {furthest:.2g}"
    return Answer(verdict, reason, None, threshold)


def distinct(test: Distinct, samples: Samples) -> Answer:
    """How many different readings the levels give."""
    exact = _readings(by_level(test.factor, test.where, test.indicator, samples))
    if isinstance(exact, Answer):
        return exact
    seen = sorted(set(exact.values()))
    return _counted(len(seen), test.at_least, test.at_most, _listed(seen))


def overlap(test: Overlap, samples: Samples) -> Answer:
    """Do levels share a reading, over those of another factor?"""
    where: dict[float, list[Level]] = {}
    for level in test.among or samples.levels(test.factor):
        cell = {**test.where, test.factor: level}
        exact = _readings(by_level(test.across, cell, test.indicator, samples))
        if isinstance(exact, Answer):
            return exact
        for reading in set(exact.values()):
            where.setdefault(reading, []).append(level)
    shared = {reading: levels for reading, levels in sorted(where.items()) if len(levels) > 1}
    if not shared:
        return Answer("refuted", "no reading is shared", None, "shared readings")
    named = "; ".join(
        f"{reading:g} by {', '.join(map(str, levels))}" for reading, levels in shared.items()
    )
    return Answer("supported", named, None, "shared readings")


def _counted(value: float, at_least: float | None, at_most: float | None, reason: str) -> Answer:
    """The verdict on an exact figure, which needs no interval."""
    estimate = Estimate(value=float(value), low=float(value), high=float(value))
    return bounded(estimate, at_least, at_most)._replace(reason=reason)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _few(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(set(values))[:4])
