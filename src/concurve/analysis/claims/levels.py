"""Claims on the levels of a factor: alike, the best ones, their order."""

from __future__ import annotations

from concurve.analysis.claims.answer import (
    Answer,
    levels_of,
    lower_is_better,
    setting_in_words,
)
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import BestSetting, ConstantWithin, Order
from concurve.estimate import Estimate
from concurve.findings.claims import VerdictName
from concurve.stats.best import best_set
from concurve.stats.blocks import block_ratio, geometric_means
from concurve.terms import Level


def constant_within(test: ConstantWithin, samples: Samples, confidence: float) -> Answer:
    """Each level against the geometric mean of all levels, block by block, simultaneously
    (Bonferroni)."""
    levels = levels_of(test.factor, samples)
    threshold = f"within ±{test.within * 100:g} %"
    cells = {level: {**test.where, test.factor: level} for level in levels}
    columns = {level: samples.by_block(cell, test.indicator) for level, cell in cells.items()}
    middle = geometric_means(list(columns.values()))
    if middle is None or len(middle) < 2:
        reason = "fewer than two blocks hold every level with a value above 0"
        return Answer("undecided", reason, None, threshold)
    each = 1 - (1 - confidence) / len(levels)
    worst: tuple[float, Level, Estimate] | None = None
    inside = True
    for level, values in columns.items():
        off = max(
            samples.ratio_resolution(cells[level], other, test.indicator)
            for other in cells.values()
        )
        estimate = block_ratio(values, middle, each, samples.is_staged, off)
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        if estimate.low > 1 + test.within or estimate.high < 1 - test.within:
            reason = f"{test.factor}={level} lies beyond it"
            return Answer("refuted", reason, estimate, threshold)
        inside &= 1 - test.within <= estimate.low and estimate.high <= 1 + test.within
        distance = abs(estimate.value - 1)
        if worst is None or distance > worst[0]:
            worst = (distance, level, estimate)
    assert worst is not None
    reason = f"furthest off at {test.factor}={worst[1]}"
    return Answer("supported" if inside else "undecided", reason, worst[2], threshold)


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
    if all(level in test.among for level in members):
        return Answer("supported", said, None, threshold)
    if not any(level in test.among for level in members):
        return Answer("refuted", said, None, threshold)
    return Answer("undecided", said, None, threshold)


def order(test: Order, samples: Samples, confidence: float) -> Answer:
    """Every pair of neighbours, block by block, simultaneously (Bonferroni)."""
    lower = lower_is_better(test.indicator, samples)
    pairs = list(zip(test.cells, test.cells[1:], strict=False))
    if not pairs:
        raise MissingError("a single cell has no order")
    each = 1 - (1 - confidence) / len(pairs)
    steps = []
    for ahead, behind in pairs:
        first, second = (behind, ahead) if lower else (ahead, behind)
        estimate = samples.ratio(first, second, test.indicator, each)
        if estimate is None or estimate.low is None or estimate.high is None:
            return Answer("undecided", "a cell has no interval", estimate, "in this order")
        if estimate.high < 1:
            reason = f"{setting_in_words(behind)} is ahead of {setting_in_words(ahead)}"
            return Answer("refuted", reason, estimate, "in this order")
        steps.append(estimate)
    sure = all(step.low is not None and step.low > 1 for step in steps)
    verdict: VerdictName = "supported" if sure else "undecided"
    reason = "every step is significant" if sure else "a step is not significant"
    closest = min(steps, key=lambda step: step.low or 0.0)
    return Answer(verdict, reason, closest, "in this order")
