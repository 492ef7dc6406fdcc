"""Claims on ratios of means, and on their spread."""

from __future__ import annotations

from functools import partial

from concurve.analysis.claims.answer import Answer, bounded, by_level, setting_in_words
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import BestRatio, Cell, Ratio, RatioOfRatios, Spread
from concurve.estimate import Estimate
from concurve.stats import intervals
from concurve.stats.best import best_mean
from concurve.stats.intervals import quotient, scaled, variation_estimate
from concurve.stats.moments import mean
from concurve.terms import Level


def speedup(test: Ratio, samples: Samples) -> Answer:
    """Base over cell for times; cell over base for rates and where else higher is better."""
    inverse = samples.better(test.indicator) == "lower"
    top, bottom = (test.over, test.of) if inverse else (test.of, test.over)
    return bounded(_ratio(test.indicator, top, bottom, samples), test.at_least, test.at_most)


def ratio(test: Ratio, samples: Samples) -> Answer:
    """The indicator in one cell over that in another."""
    return bounded(_ratio(test.indicator, test.of, test.over, samples), test.at_least, test.at_most)


def _ratio(indicator: str, top: Cell, bottom: Cell, samples: Samples) -> Estimate:
    estimate = samples.ratio(top, bottom, indicator)
    if estimate is None:
        raise MissingError(f"{indicator} is 0 in one of the cells, so there is no ratio")
    return estimate


def best_ratio(test: BestRatio, samples: Samples) -> Answer:
    """The best mean over the levels of a factor, against a figure or the best one elsewhere."""
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
        said = (
            f"the best at {test.factor}={level}, and at {beside} in {setting_in_words(test.over)}"
        )
    return bounded(estimate, test.at_least, test.at_most)._replace(reason=said)


def _best_mean(
    test: BestRatio, samples: Samples, where: Cell, confidence: float
) -> tuple[Estimate, Level]:
    """The best mean over the levels of the factor, and the level that it seems to be at."""
    columns = by_level(test.factor, where, test.indicator, samples)
    lower = samples.better(test.indicator) != "higher"
    index, estimate = best_mean(list(columns.values()), lower, confidence, samples.pilot)
    if estimate.value <= 0:
        raise MissingError(f"{test.indicator} is 0 in one of the cells, so there is no ratio")
    return estimate, list(columns)[index]


def ratio_of_ratios(test: RatioOfRatios, samples: Samples) -> Answer:
    """A ratio over that of two other cells: how one factor changes what another does."""
    estimate = intervals.ratio_of_ratios(
        samples.values(test.of, test.indicator),
        samples.values(test.over, test.indicator),
        samples.values(test.than_of, test.indicator),
        samples.values(test.than_over, test.indicator),
        pilot=samples.pilot,
    )
    if estimate is None:
        raise MissingError(f"{test.indicator} is 0 in one of the cells, so there is no ratio")
    return bounded(estimate, test.at_least, test.at_most)


def spread(test: Spread, samples: Samples) -> Answer:
    """The coefficient of variation with McKay's interval (1932; Vangel 1996)."""
    values = samples.values(test.of, test.indicator)
    if len(values) < 3 or mean(values) == 0:
        return Answer("undecided", "fewer than three trials", None, "")
    estimate = variation_estimate(values)
    return bounded(estimate, test.at_least, test.at_most)
