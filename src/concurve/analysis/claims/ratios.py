"""Claims on the figures of cells: their ratios, one alone, and their spread."""

from __future__ import annotations

import math

import msgspec

from concurve.analysis.claims.answer import (
    Answer,
    bounded,
    levels_of,
    lower_is_better,
    setting_in_words,
)
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import (
    BestRatio,
    Cell,
    Figure,
    Ratio,
    RatioOfIndicators,
    RatioOfRatios,
    Spread,
)
from concurve.estimate import Estimate
from concurve.stats import best
from concurve.stats.blocks import Blocks, block_ratio, log_ratios, quotients
from concurve.stats.centre import centre, staged
from concurve.stats.intervals import scaled, variation_estimate
from concurve.stats.moments import mean, stdev
from concurve.stats.power import SIGNS, TOO_COARSE
from concurve.stats.resolution import relative
from concurve.stats.serial import stretched

#: A spread is said to be small from so many trials on: what befalls a tenth of them would then have
#: been seen with 95 % (an event that n trials do not show has a share of up to about 3/n; Hanley &
#: Lippman-Hand 1983).
TRIALS_OF_SPREAD = 30


def speedup(test: Ratio, samples: Samples, confidence: float) -> Answer:
    """Base over cell for times; cell over base for rates and where else higher is better."""
    inverse = lower_is_better(test.indicator, samples)
    top, bottom = (test.over, test.of) if inverse else (test.of, test.over)
    return _ratio(test, top, bottom, samples, confidence)


def ratio(test: Ratio, samples: Samples, confidence: float) -> Answer:
    """The indicator in one cell over that in another."""
    return _ratio(test, test.of, test.over, samples, confidence)


def _ratio(test: Ratio, top: Cell, bottom: Cell, samples: Samples, confidence: float) -> Answer:
    estimate = samples.ratio(top, bottom, test.indicator, confidence)
    if estimate is None:
        raise _no_ratio(test.indicator)
    found = samples.log_ratios(top, bottom, test.indicator)
    spread = None if found is None else stdev(found.values)
    off = samples.ratio_resolution(top, bottom, test.indicator)
    return bounded(estimate, test.at_least, test.at_most, spread, off)


def ratio_of_indicators(test: RatioOfIndicators, samples: Samples, confidence: float) -> Answer:
    """An indicator in one cell over another indicator in another cell, over their common blocks."""
    above = samples.by_block(test.of, test.indicator)
    below = samples.by_block(test.over, test.over_indicator)
    sides = (test.of, test.indicator, above), (test.over, test.over_indicator, below)
    off = sum(
        relative(step, list(values.values()))
        for cell, name, values in sides
        if (step := samples.resolution(cell, name))
    )
    if not above.keys() & below.keys():
        raise MissingError("no block holds both cells")
    estimate = block_ratio(above, below, confidence, samples.is_staged, off)
    if estimate is None:
        raise _no_ratio(f"{test.indicator} or {test.over_indicator}")
    found = log_ratios(above, below, off)
    spread = None if found is None else stdev(found.values)
    return bounded(estimate, test.at_least, test.at_most, spread, off)


def _no_ratio(indicator: str) -> MissingError:
    return MissingError(f"{indicator} is 0 in one of the cells, so there is no ratio")


def figure(test: Figure, samples: Samples, confidence: float) -> Answer:
    """The centre of one cell, in the unit of the indicator."""
    off = relative(
        samples.resolution(test.of, test.indicator), samples.values(test.of, test.indicator)
    )
    values = samples.values(test.of, test.indicator)
    spread = stdev([math.log(value) for value in values]) if min(values) > 0 else None
    estimate = samples.centre(test.of, test.indicator, confidence)
    return bounded(estimate, test.at_least, test.at_most, spread, off, SIGNS)


def best_ratio(test: BestRatio, samples: Samples, confidence: float) -> Answer:
    """The best cell over the levels of a factor, against a figure or the best one elsewhere."""
    lower = lower_is_better(test.indicator, samples)
    levels = levels_of(test.factor, samples)
    own = [{**test.of, test.factor: level} for level in levels]
    columns = [samples.by_block(cell, test.indicator) for cell in own]
    index = _best(columns, lower)
    said = f"the best at {test.factor}={levels[index]}"
    if test.over is None:
        assert test.over_value is not None
        if not 0 < test.over_value < math.inf:  # in runs of before such a study was refused
            raise MissingError(f"over_value is {test.over_value:g}, so there is no ratio")
        resolutions = [samples.resolution(cell, test.indicator) for cell in own]
        off = relative(resolutions[index], list(columns[index].values()))
        found = best.best_centre(columns, lower, confidence, samples.is_staged, resolutions)[1]
        estimate: Estimate | None = scaled(found, 1 / test.over_value)
    else:
        others = [{**test.over, test.factor: level} for level in levels]
        beside = [samples.by_block(cell, test.indicator) for cell in others]
        off = max(
            samples.ratio_resolution(cell, other, test.indicator)
            for cell in own
            for other in others
        )
        estimate = best.best_ratio(columns, beside, lower, confidence, samples.is_staged, off)
        said += f", and at {levels[_best(beside, lower)]} in {setting_in_words(test.over)}"
    if estimate is None or estimate.value <= 0:
        raise _no_ratio(test.indicator)
    answer = bounded(estimate, test.at_least, test.at_most, resolution=off)
    coarse = f"; {TOO_COARSE}" if answer.reason.endswith(TOO_COARSE) else ""
    return answer._replace(reason=said + coarse)


def _best(columns: list[Blocks], lower: bool) -> int:
    """Which of the cells seems the best."""
    middles = [centre(list(column.values())) for column in columns]
    return middles.index(min(middles) if lower else max(middles))


def ratio_of_ratios(test: RatioOfRatios, samples: Samples, confidence: float) -> Answer:
    """A ratio over that of two other cells: how one factor changes what another does."""
    cells = test.of, test.over, test.than_of, test.than_over
    of, over, than_of, than_over = (samples.by_block(cell, test.indicator) for cell in cells)
    off = samples.ratio_resolution(test.of, test.over, test.indicator)
    off += samples.ratio_resolution(test.than_of, test.than_over, test.indicator)
    here, there = quotients(of, over), quotients(than_of, than_over)
    if here is None or there is None:
        raise _no_ratio(test.indicator)
    estimate = block_ratio(here, there, confidence, samples.is_staged, off)
    if estimate is None:
        raise MissingError("no block holds all four cells")
    both = sorted(here.keys() & there.keys())
    logs = [math.log(here[block]) - math.log(there[block]) for block in both]
    spread = stdev(stretched(logs))
    return bounded(estimate, test.at_least, test.at_most, spread, off)


def spread(test: Spread, samples: Samples, confidence: float) -> Answer:
    """The coefficient of variation with McKay's interval (1932; Vangel 1996), which takes the
    errors as normal. Readings that a coarse clock gave alike say nothing of their spread.

    Fewer than :data:`TRIALS_OF_SPREAD` trials may not hold one of a rare slow mode, so they never
    show that the spread is small, however narrow the interval is.
    """
    values = samples.values(test.of, test.indicator)
    if len(values) < 3:
        return Answer("undecided", "fewer than three trials", None, "")
    if mean(values) == 0:
        reason = f"the mean of {test.indicator} is 0, so no share of it is a spread"
        return Answer("undecided", reason, None, "")
    estimate = variation_estimate(values, staged(confidence, samples.is_staged))
    off = samples.resolution(test.of, test.indicator) / abs(mean(values))
    assert estimate.low is not None
    assert estimate.high is not None
    low, high = max(0.0, estimate.low - off), estimate.high + off
    estimate = msgspec.structs.replace(estimate, low=low, high=high, confidence=confidence)
    answer = bounded(estimate, test.at_least, test.at_most)
    limit = test.at_most if answer.verdict == "supported" else test.at_least
    if answer.verdict == "undecided" or limit is None or high > limit:
        return answer
    share = 1 - 0.05 ** (1 / len(values))
    unseen = f"{len(values)} trials may miss what befalls up to {share * 100:.0f} % of trials"
    if len(values) < TRIALS_OF_SPREAD:
        return answer._replace(
            verdict="undecided", reason=f"{unseen}: measure {TRIALS_OF_SPREAD} at least"
        )
    return answer._replace(reason=f"{answer.reason}; {unseen}")
