"""Claims on the levels of a factor: alike, the best ones, their order."""

from __future__ import annotations

from concurve.analysis.claims.answer import Answer, by_level, setting_in_words
from concurve.analysis.samples import Samples
from concurve.definition.claim_kinds import BestSetting, ConstantWithin, Order
from concurve.estimate import Estimate
from concurve.findings.claims import VerdictName
from concurve.stats.best import best_set
from concurve.stats.intervals import ratio_estimate
from concurve.stats.moments import mean
from concurve.terms import Level


def constant_within(test: ConstantWithin, samples: Samples) -> Answer:
    """Each level's mean against the mean over all levels, simultaneously (Bonferroni)."""
    columns = by_level(test.factor, test.where, test.indicator, samples)
    threshold = f"within ±{test.within * 100:g} %"
    everything = [mean(values) for values in columns.values()]
    centre = mean(everything)
    if centre <= 0 or any(len(values) < 2 for values in columns.values()):
        return Answer("undecided", "a level has one trial only", None, threshold)
    confidence = 1 - 0.05 / len(columns)
    worst: tuple[float, Level, Estimate] | None = None
    inside = True
    for level, values in columns.items():
        others = [value for name, column in columns.items() if name != level for value in column]
        estimate = ratio_estimate(values, others, confidence)
        if estimate is None or estimate.low is None or estimate.high is None:
            return Answer("undecided", f"no interval at {test.factor}={level}", None, threshold)
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


def best_setting(test: BestSetting, samples: Samples) -> Answer:
    """Is the set of levels that cannot be distinguished from the best among those named?"""
    columns = by_level(test.factor, test.where, test.indicator, samples)
    better = samples.better(test.indicator)
    best = best_set(list(columns.values()), lower_is_better=better != "higher", pilot=samples.pilot)
    levels = [list(columns)[index] for index in best.members]
    threshold = f"among {', '.join(map(str, test.among))}"
    said = f"cannot be distinguished from the best: {', '.join(map(str, levels))}"
    if all(level in test.among for level in levels):
        return Answer("supported", said, None, threshold)
    if not any(level in test.among for level in levels):
        return Answer("refuted", said, None, threshold)
    return Answer("undecided", said, None, threshold)


def order(test: Order, samples: Samples) -> Answer:
    """Every neighbouring pair, simultaneously (Bonferroni)."""
    lower = samples.better(test.indicator) != "higher"
    pairs = list(zip(test.cells, test.cells[1:], strict=False))
    sure, closest = True, None
    for ahead, behind in pairs:
        first, second = (behind, ahead) if lower else (ahead, behind)
        confidence = 1 - 0.05 / max(1, len(pairs))
        estimate = samples.ratio(first, second, test.indicator, confidence)
        if estimate is None or estimate.low is None or estimate.high is None:
            return Answer("undecided", "a cell has no interval", estimate, "in this order")
        if estimate.high < 1:
            reason = f"{setting_in_words(behind)} is ahead of {setting_in_words(ahead)}"
            return Answer("refuted", reason, estimate, "in this order")
        sure &= estimate.low > 1
        if closest is None or estimate.value < closest.value:
            closest = estimate
    verdict: VerdictName = "supported" if sure else "undecided"
    reason = "every step is significant" if sure else "a step is not significant"
    return Answer(verdict, reason, closest, "in this order")
