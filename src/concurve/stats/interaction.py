"""Whether an effect is stronger here than there: the ratio of two ratios of means."""

from __future__ import annotations

from collections.abc import Sequence

from concurve.estimate import Estimate
from concurve.stats.moments import mean
from concurve.stats.welch import Difference, growth, log_ratio


def ratio_of_ratios(
    of: Sequence[float],
    over: Sequence[float],
    than_of: Sequence[float],
    than_over: Sequence[float],
    confidence: float = 0.95,
    pilot: int | None = None,
) -> Estimate | None:
    """(of / over) / (than_of / than_over) of four means of independent positive samples, with its
    interval on the logarithm: the variances of the two log ratios add up, degrees of freedom by
    Welch-Satterthwaite. ``None`` where a mean is not above 0; one trial has no interval.
    """
    samples = of, over, than_of, than_over
    means = [mean(values) for values in samples]
    if min(means) <= 0:
        return None
    n, ratio = min(map(len, samples)), means[0] / means[1] / (means[2] / means[3])
    here, there = log_ratio(of, over, pilot), log_ratio(than_of, than_over, pilot)
    if here is None or there is None:
        return Estimate(value=ratio, n=n, confidence=confidence)
    both = Difference(here.value - there.value, here.variance + there.variance, _df(here, there))
    low, high = (ratio * growth(bound - both.value) for bound in both.interval(confidence))
    return Estimate(value=ratio, low=low, high=high, n=n, confidence=confidence)


def _df(here: Difference, there: Difference) -> float:
    total = here.variance + there.variance
    if total == 0:
        return min(here.df, there.df)
    return total**2 / (here.variance**2 / here.df + there.variance**2 / there.df)
