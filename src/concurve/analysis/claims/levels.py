"""Claims on the levels of a factor: alike, the best ones, their order."""

from __future__ import annotations

from concurve import words
from concurve.analysis.claims.answer import (
    Answer,
    bounded,
    levels_of,
    lower_is_better,
    setting_in_words,
)
from concurve.analysis.claims.variation import NO_VARIATION, Variation, variation
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import BestSetting, Cell, ConstantWithin, Order, Steadier
from concurve.estimate import Estimate
from concurve.stats.best import best_set
from concurve.stats.moments import stdev


def _variation(
    factor: str, where: Cell, indicator: str, samples: Samples, confidence: float
) -> Variation | None:
    """How the figures vary over the levels of a factor, whose indices are those of the cells.

    Raises:
        MissingError: a cell or the indicator was not measured, or the factor has one level only.
    """
    cells = [{**where, factor: level} for level in levels_of(factor, samples)]
    return variation(cells, indicator, samples, confidence)


def constant_within(test: ConstantWithin, samples: Samples, confidence: float) -> Answer:
    """The greatest centre over the least one, block by block
    (:func:`~concurve.stats.blocks.range_of`)."""
    threshold = f"the greatest at most {test.within * 100:g} % above the least"
    found = _variation(test.factor, test.where, test.indicator, samples, confidence)
    if found is None:
        return Answer("undecided", NO_VARIATION, None, threshold)
    answer = bounded(found.ratio, None, 1 + test.within, found.spread, found.resolution)
    levels = levels_of(test.factor, samples)
    seen = f"greatest at {test.factor}={levels[found.greatest]}, least at {levels[found.least]}"
    reason = f"{answer.reason}; {seen}" if answer.verdict == "undecided" else seen
    return answer._replace(reason=reason, estimate=found.share, threshold=threshold)


def steadier(test: Steadier, samples: Samples, confidence: float) -> Answer:
    """The variation of one row of cells less that of the other; both intervals share the error."""
    threshold = "below 0: it varies less"
    each = 1 - (1 - confidence) / 2
    own = _variation(test.factor, test.of, test.indicator, samples, each)
    other = _variation(test.factor, test.over, test.indicator, samples, each)
    if own is None or other is None:
        return Answer("undecided", NO_VARIATION, None, threshold)
    here, there = own.share, other.share
    assert here.low is not None
    assert here.high is not None
    assert there.low is not None
    assert there.high is not None
    low, high = here.low - there.high, here.high - there.low
    apart = Estimate(
        value=here.value - there.value,
        low=low,
        high=high,
        n=min(here.n, there.n),
        confidence=confidence,
    )
    reason = (
        f"the greatest is {words.in_percent(here.value, 3)} % above the least over {test.factor}, "
        f"and {words.in_percent(there.value, 3)} % in {setting_in_words(test.over)}"
    )
    if high < 0:
        return Answer("supported", reason, apart, threshold)
    if low >= 0:
        return Answer("refuted", reason, apart, threshold)
    return Answer("undecided", f"the interval contains 0; {reason}", apart, threshold)


def best_setting(test: BestSetting, samples: Samples, confidence: float) -> Answer:
    """Is the set of levels that cannot be distinguished from the best among those named?"""
    lower = lower_is_better(test.indicator, samples)
    levels = levels_of(test.factor, samples)
    cells = [{**test.where, test.factor: level} for level in levels]
    best = best_set(
        [samples.by_block(cell, test.indicator) for cell in cells],
        lower,
        confidence,
        samples.is_staged,
        [samples.resolution(cell, test.indicator) for cell in cells],
    )
    members = [levels[index] for index in best.members]
    threshold = f"among {', '.join(map(str, test.among))}"
    said = f"cannot be distinguished from the best: {', '.join(map(str, members))}"
    named = [level in test.among for level in members]
    if all(named):
        return Answer("supported", said, None, threshold)
    if not any(named):
        # One that was not run may be the best.
        for level in test.among:
            if level not in levels:
                raise MissingError("was not run", f"{test.factor}={level}")
        return Answer("refuted", said, None, threshold)
    return Answer("undecided", said, None, threshold)


def order(test: Order, samples: Samples, confidence: float) -> Answer:
    """Every pair of neighbours, block by block, simultaneously (Bonferroni)."""
    lower = lower_is_better(test.indicator, samples)
    pairs = list(zip(test.cells, test.cells[1:], strict=False))
    if not pairs:
        raise MissingError("a single cell has no order")
    each = 1 - (1 - confidence) / len(pairs)
    steps: list[tuple[Estimate, Cell, Cell]] = []
    for ahead, behind in pairs:
        first, second = (behind, ahead) if lower else (ahead, behind)
        estimate = samples.ratio(first, second, test.indicator, each)
        if estimate is None or estimate.low is None or estimate.high is None:
            return Answer("undecided", "a cell has no interval", estimate, "in this order")
        if estimate.high < 1:
            reason = f"{setting_in_words(behind)} is ahead of {setting_in_words(ahead)}"
            return Answer("refuted", reason, estimate, "in this order")
        steps.append((estimate, first, second))
    closest, above, below = min(steps, key=lambda step: step[0].low or 0.0)
    if all(step.low is not None and step.low > 1 for step, *_ in steps):
        return Answer("supported", "every step is significant", closest, "in this order")
    found = samples.log_ratios(above, below, test.indicator)
    off = samples.ratio_resolution(above, below, test.indicator)
    spread = None if found is None else stdev(found.values)
    trials = bounded(closest, 1.0, None, spread, off).trials
    return Answer("undecided", "a step is not significant", closest, "in this order", trials)
