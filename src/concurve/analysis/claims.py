"""Claims of a study's source → verdicts, each kind by a small test of its own. Pure.

A verdict is ``supported`` or ``refuted`` only where the 95 % interval leaves no doubt; otherwise
``undecided``. A claim whose cells this run has not got (fewer CPUs, a shorter effort, a skipped
cell) is ``not testable here``, with the reason.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from concurve.definition.claim_kinds import (
    BestRatio,
    BestSetting,
    Cell,
    ClaimTest,
    ConstantWithin,
    Distinct,
    Linear,
    Mapping_,
    Order,
    Overlap,
    Ratio,
    RatioOfRatios,
    Same,
    Spread,
    Step,
    Untestable,
    at_levels,
    parse_test,
)
from concurve.definition.study import Claim, Study
from concurve.estimate import Estimate
from concurve.findings import ClaimFinding, Level, VerdictName
from concurve.stats.best import best_mean, best_set
from concurve.stats.interaction import ratio_of_ratios
from concurve.stats.intervals import paired_ratio, quotient, ratio_estimate, scaled
from concurve.stats.moments import mean
from concurve.stats.variation import variation_estimate


class MissingError(Exception):
    """A cell or an indicator that this run has not got; the text says why."""


class Samples(NamedTuple):
    """Where a claim's test reads values from: raises :class:`MissingError` with the reason.

    ``by_block`` is given where the cells of a block share their draws; ratios are then taken
    block by block.
    """

    values: Callable[[Mapping[str, Level], str], Sequence[float]]
    levels: Callable[[str], Sequence[Level]]
    better: Callable[[str], str]
    pilot: int | None
    by_block: Callable[[Mapping[str, Level], str], Mapping[int, float]] | None = None

    def ratio(
        self,
        top: Mapping[str, Level],
        bottom: Mapping[str, Level],
        indicator: str,
        confidence: float = 0.95,
    ) -> Estimate | None:
        """``indicator`` in the cell ``top`` over that in ``bottom``; ``None`` where there is none.

        Raises:
            MissingError: a cell or the indicator was not measured.
        """
        columns = self.values(top, indicator), self.values(bottom, indicator)
        if self.by_block is None:
            return ratio_estimate(*columns, confidence, self.pilot)
        above, below = self.by_block(top, indicator), self.by_block(bottom, indicator)
        both = sorted(above.keys() & below.keys())
        pairs = [above[block] for block in both], [below[block] for block in both]
        return paired_ratio(*pairs, confidence, self.pilot)


def by_indicator(chooses: Callable[[str], bool], first: Samples, second: Samples) -> Samples:
    """Samples that read the indicators that are chosen from ``first``, the others from
    ``second``."""

    def values(cell: Mapping[str, Level], indicator: str) -> Sequence[float]:
        return (first if chooses(indicator) else second).values(cell, indicator)

    def by_block(cell: Mapping[str, Level], indicator: str) -> Mapping[int, float]:
        found = (first if chooses(indicator) else second).by_block
        assert found is not None
        return found(cell, indicator)

    return first._replace(values=values, by_block=by_block if first.by_block else None)


class _Answer(NamedTuple):
    verdict: VerdictName
    reason: str
    estimate: Estimate | None
    threshold: str


def judge_claims(study: Study, samples: Samples) -> tuple[ClaimFinding, ...]:
    """A verdict on every claim of a study; on one with ``each``, a verdict at every level."""
    return tuple(
        _judge(claim, at_levels(test, levels), levels, samples)
        for claim in study.claims
        for test in [parse_test(claim, "study")]
        for levels in _combinations(test.each, samples)
    )


def _combinations(
    each: Sequence[str] | Mapping[str, Sequence[Level]], samples: Samples
) -> list[Cell]:
    named = each if isinstance(each, Mapping) else dict.fromkeys(each, ())
    columns = [levels or samples.levels(factor) for factor, levels in named.items()]
    return [dict(zip(named, levels, strict=True)) for levels in itertools.product(*columns)]


def _judge(claim: Claim, test: ClaimTest, levels: Cell, samples: Samples) -> ClaimFinding:
    try:
        answer = _TESTS[claim.kind](test, samples)
    except MissingError as missing:
        answer = _Answer("not testable here", str(missing), None, "")
    return ClaimFinding(
        id="-".join([claim.id, *map(str, levels.values())]),
        says=claim.says + _setting(levels, samples),
        source=claim.source,
        kind=claim.kind,
        verdict=answer.verdict,
        reason=answer.reason,
        threshold=answer.threshold,
        estimate=answer.estimate,
        published=test.published,
        indicator=test.indicator,
        cell=getattr(test, "of", {}),
    )


def _setting(levels: Cell, samples: Samples) -> str:
    """Where the claim was judged: the levels of factors that have several in this run."""
    varying = {name: level for name, level in levels.items() if len(samples.levels(name)) > 1}
    return f" [{_words(varying)}]" if varying else ""


# -- one function a kind --------------------------------------------------------------------


def _speedup(test: Ratio, samples: Samples) -> _Answer:
    """Times: base over cell; rates and other figures where higher is better: cell over base."""
    inverse = samples.better(test.indicator) == "lower"
    top, bottom = (test.over, test.of) if inverse else (test.of, test.over)
    return _bounded(_ratio(test.indicator, top, bottom, samples), test.at_least, test.at_most)


def _ratio_of(test: Ratio, samples: Samples) -> _Answer:
    return _bounded(
        _ratio(test.indicator, test.of, test.over, samples), test.at_least, test.at_most
    )


def _ratio(indicator: str, top: Cell, bottom: Cell, samples: Samples) -> Estimate:
    estimate = samples.ratio(top, bottom, indicator)
    if estimate is None:
        raise MissingError(f"{indicator} is 0 in one of the cells, so there is no ratio")
    return estimate


def _bounded(estimate: Estimate, at_least: float | None, at_most: float | None) -> _Answer:
    """Supported if the whole interval keeps the bounds, refuted if all of it breaks one."""
    threshold = " and ".join(
        f"{words} {bound:g}"
        for words, bound in (("at least", at_least), ("at most", at_most))
        if bound is not None
    )
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return _Answer("undecided", "one trial has no interval", estimate, threshold)
    least = float("-inf") if at_least is None else at_least
    most = float("inf") if at_most is None else at_most
    if least <= low and high <= most:
        return _Answer("supported", "the whole interval keeps the bound", estimate, threshold)
    if high < least or low > most:
        return _Answer("refuted", "the whole interval lies beyond the bound", estimate, threshold)
    return _Answer("undecided", "the interval contains the bound", estimate, threshold)


def _constant_within(test: ConstantWithin, samples: Samples) -> _Answer:
    """Each level's mean against the mean over all levels, simultaneously (Bonferroni)."""
    columns = _columns(test.factor, test.where, test.indicator, samples)
    threshold = f"within ±{test.within * 100:g} %"
    everything = [mean(values) for values in columns.values()]
    centre = mean(everything)
    if centre <= 0 or any(len(values) < 2 for values in columns.values()):
        return _Answer("undecided", "a level has one trial only", None, threshold)
    confidence = 1 - 0.05 / len(columns)
    worst: tuple[float, Level, Estimate] | None = None
    inside = True
    for level, values in columns.items():
        others = [value for name, column in columns.items() if name != level for value in column]
        estimate = ratio_estimate(values, others, confidence)
        if estimate is None or estimate.low is None or estimate.high is None:
            return _Answer("undecided", f"no interval at {test.factor}={level}", None, threshold)
        if estimate.low > 1 + test.within or estimate.high < 1 - test.within:
            reason = f"{test.factor}={level} lies beyond it"
            return _Answer("refuted", reason, estimate, threshold)
        inside &= 1 - test.within <= estimate.low and estimate.high <= 1 + test.within
        distance = abs(estimate.value - 1)
        if worst is None or distance > worst[0]:
            worst = (distance, level, estimate)
    assert worst is not None
    reason = f"furthest off at {test.factor}={worst[1]}"
    return _Answer("supported" if inside else "undecided", reason, worst[2], threshold)


def _best_setting(test: BestSetting, samples: Samples) -> _Answer:
    columns = _columns(test.factor, test.where, test.indicator, samples)
    better = samples.better(test.indicator)
    best = best_set(list(columns.values()), lower_is_better=better != "higher", pilot=samples.pilot)
    levels = [list(columns)[index] for index in best.members]
    threshold = f"among {', '.join(map(str, test.among))}"
    said = f"cannot be told from the best: {', '.join(map(str, levels))}"
    if all(level in test.among for level in levels):
        return _Answer("supported", said, None, threshold)
    if not any(level in test.among for level in levels):
        return _Answer("refuted", said, None, threshold)
    return _Answer("undecided", said, None, threshold)


def _best_ratio(test: BestRatio, samples: Samples) -> _Answer:
    best = partial(_best_mean, test, samples)
    if test.over is None:
        assert test.over_value is not None
        own, level = best(test.of, 0.95)
        estimate = scaled(own, 1 / test.over_value)
        said = f"the best at {test.factor}={level}"
    else:
        # Both intervals hold together with 95 % (Bonferroni).
        (own, level), (other, beside) = best(test.of, 0.975), best(test.over, 0.975)
        estimate = quotient(own, other)
        said = f"the best at {test.factor}={level}, and at {beside} in {_words(test.over)}"
    return _bounded(estimate, test.at_least, test.at_most)._replace(reason=said)


def _best_mean(
    test: BestRatio, samples: Samples, where: Cell, confidence: float
) -> tuple[Estimate, Level]:
    """The best mean over the levels of the factor, and the level that it seems to be at."""
    columns = _columns(test.factor, where, test.indicator, samples)
    lower = samples.better(test.indicator) != "higher"
    index, estimate = best_mean(list(columns.values()), lower, confidence, samples.pilot)
    if estimate.value <= 0:
        raise MissingError(f"{test.indicator} is 0 in one of the cells, so there is no ratio")
    return estimate, list(columns)[index]


def _ratio_of_ratios(test: RatioOfRatios, samples: Samples) -> _Answer:
    estimate = ratio_of_ratios(
        samples.values(test.of, test.indicator),
        samples.values(test.over, test.indicator),
        samples.values(test.than_of, test.indicator),
        samples.values(test.than_over, test.indicator),
        pilot=samples.pilot,
    )
    if estimate is None:
        raise MissingError(f"{test.indicator} is 0 in one of the cells, so there is no ratio")
    return _bounded(estimate, test.at_least, test.at_most)


def _mapping(test: Mapping_, samples: Samples) -> _Answer:
    columns = _columns(test.factor, test.where, test.indicator, samples, needed=test.table)
    wrong = [
        f"{level} gave {_few(values)} instead of {test.table[str(level)]:g}"
        for level, values in columns.items()
        if str(level) in test.table and set(values) != {test.table[str(level)]}
    ]
    if wrong:
        return _Answer("refuted", "; ".join(wrong), None, "exactly the table")
    return _Answer("supported", f"all {len(test.table)} levels agree", None, "exactly the table")


def _exact(values: Sequence[float]) -> float | None:
    """A reading that every trial gave alike; ``None`` where they differ."""
    return values[0] if len(set(values)) == 1 else None


def _readings(columns: Mapping[Level, Sequence[float]]) -> dict[Level, float] | _Answer:
    """The exact reading at each level, or the answer where trials of one level differ."""
    exact: dict[Level, float] = {}
    for level, values in columns.items():
        reading = _exact(values)
        if reading is None:
            return _Answer("undecided", f"at {level} trials gave {_few(values)}", None, "")
        exact[level] = reading
    return exact


def _step(test: Step, samples: Samples) -> _Answer:
    cells = {"of": test.of, "over": test.over}
    exact = _readings({k: samples.values(cell, test.indicator) for k, cell in cells.items()})
    if isinstance(exact, _Answer):
        return exact
    return _counted(exact["of"] - exact["over"], test.at_least, test.at_most,
                    f"from {exact['over']:g} to {exact['of']:g}")  # fmt: skip


def _same(test: Same, samples: Samples) -> _Answer:
    needed = {str(level): 0.0 for level in test.among} or None
    columns = _columns(test.factor, test.where, test.indicator, samples, needed)
    seen = ", ".join(f"{level} gave {_few(values)}" for level, values in columns.items())
    if len({value for values in columns.values() for value in values}) == 1:
        return _Answer("supported", seen, None, "the same at every level")
    return _Answer("refuted", seen, None, "the same at every level")


def _linear(test: Linear, samples: Samples) -> _Answer:
    """Least squares through the exact readings; the greatest distance from the line decides."""
    threshold = f"within {test.within:g} of a line"
    exact = _readings(_columns(test.factor, test.where, test.indicator, samples))
    if isinstance(exact, _Answer):
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
        return _Answer("refuted", "the line is level", None, threshold)
    verdict: VerdictName = "supported" if furthest <= test.within else "refuted"
    reason = f"slope {slope:.3g}, greatest distance {furthest:.2g}"
    return _Answer(verdict, reason, None, threshold)


def _distinct(test: Distinct, samples: Samples) -> _Answer:
    exact = _readings(_columns(test.factor, test.where, test.indicator, samples))
    if isinstance(exact, _Answer):
        return exact
    seen = sorted(set(exact.values()))
    return _counted(len(seen), test.at_least, test.at_most, _listed(seen))


def _overlap(test: Overlap, samples: Samples) -> _Answer:
    where: dict[float, list[Level]] = {}
    for level in test.among or samples.levels(test.factor):
        cell = {**test.where, test.factor: level}
        exact = _readings(_columns(test.across, cell, test.indicator, samples))
        if isinstance(exact, _Answer):
            return exact
        for reading in set(exact.values()):
            where.setdefault(reading, []).append(level)
    shared = {reading: levels for reading, levels in sorted(where.items()) if len(levels) > 1}
    if not shared:
        return _Answer("refuted", "no reading is shared", None, "shared readings")
    named = "; ".join(
        f"{reading:g} by {', '.join(map(str, levels))}" for reading, levels in shared.items()
    )
    return _Answer("supported", named, None, "shared readings")


def _counted(value: float, at_least: float | None, at_most: float | None, reason: str) -> _Answer:
    """The verdict on an exact figure, which needs no interval."""
    estimate = Estimate(value=float(value), low=float(value), high=float(value))
    return _bounded(estimate, at_least, at_most)._replace(reason=reason)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _untestable(test: Untestable, samples: Samples) -> _Answer:
    raise MissingError(test.reason)


def _few(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(set(values))[:4])


def _spread(test: Spread, samples: Samples) -> _Answer:
    """The coefficient of variation with McKay's interval (1932; Vangel 1996)."""
    values = samples.values(test.of, test.indicator)
    if len(values) < 3 or mean(values) == 0:
        return _Answer("undecided", "fewer than three trials", None, "")
    estimate = variation_estimate(values)
    return _bounded(estimate, test.at_least, test.at_most)


def _order(test: Order, samples: Samples) -> _Answer:
    """Every neighbouring pair, simultaneously (Bonferroni)."""
    lower = samples.better(test.indicator) != "higher"
    pairs = list(zip(test.cells, test.cells[1:], strict=False))
    sure, closest = True, None
    for ahead, behind in pairs:
        first, second = (behind, ahead) if lower else (ahead, behind)
        confidence = 1 - 0.05 / max(1, len(pairs))
        estimate = samples.ratio(first, second, test.indicator, confidence)
        if estimate is None or estimate.low is None or estimate.high is None:
            return _Answer("undecided", "a cell has no interval", estimate, "in this order")
        if estimate.high < 1:
            return _Answer("refuted", f"{_words(behind)} is ahead of {_words(ahead)}", estimate,
                           "in this order")  # fmt: skip
        sure &= estimate.low > 1
        if closest is None or estimate.value < closest.value:
            closest = estimate
    verdict: VerdictName = "supported" if sure else "undecided"
    reason = "every step is sure" if sure else "a step cannot be told from none"
    return _Answer(verdict, reason, closest, "in this order")


def _words(cell: Cell) -> str:
    return " ".join(f"{name}={level}" for name, level in cell.items())


def _columns(
    factor: str,
    where: Cell,
    indicator: str,
    samples: Samples,
    needed: Mapping[str, float] | None = None,
) -> dict[Level, Sequence[float]]:
    """Values by level of a factor; with ``needed`` only those levels, and all of them."""
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


_TESTS: dict[str, Callable[[Any, Samples], _Answer]] = {
    "speedup": _speedup,
    "ratio": _ratio_of,
    "constant_within": _constant_within,
    "best_setting": _best_setting,
    "best_ratio": _best_ratio,
    "mapping": _mapping,
    "spread": _spread,
    "order": _order,
    "ratio_of_ratios": _ratio_of_ratios,
    "step": _step,
    "same": _same,
    "linear": _linear,
    "distinct": _distinct,
    "overlap": _overlap,
    "untestable": _untestable,
}
