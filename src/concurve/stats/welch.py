"""Differences and ratios of two means whose spreads differ: Welch's t, also after two stages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from concurve.stats.moments import mean, square, stdev, t_quantile, t_upper


class MeanError(NamedTuple):
    """The squared standard error of a mean, and the sample that it comes from.

    ``staged``: the spread is that of the pilot, which set the number of trials (Stein 1945).
    """

    variance: float
    df: int
    staged: bool


class Difference(NamedTuple):
    """A difference of two means, or of their logarithms, with its squared standard error."""

    value: float
    variance: float
    df: float

    def p_above(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the difference is at most ``bound``."""
        if self.variance == 0:
            return 0.0 if self.value > bound else 1.0
        return t_upper((self.value - bound) / math.sqrt(self.variance), self.df)

    def p_below(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that the difference is at least ``bound``."""
        return Difference(-self.value, self.variance, self.df).p_above(-bound)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds of the difference."""
        if self.variance == 0:
            return self.value, self.value
        half = t_quantile((1 + confidence) / 2, self.df) * math.sqrt(self.variance)
        return self.value - half, self.value + half


def mean_error(values: Sequence[float], pilot: int | None = None) -> MeanError | None:
    """Squared standard error of a mean; ``None`` if there are too few trials."""
    if min(len(values), pilot or len(values)) < 2:
        return None
    deviation, df = deviation_of(values, pilot)
    staged = pilot is not None and df == pilot - 1 < len(values) - 1
    return MeanError(square(deviation) / len(values), df, staged)


def deviation_of(values: Sequence[float], pilot: int | None) -> tuple[float, int]:
    """Standard deviation and its degrees of freedom: of the pilot, or of all values, whichever
    gives the wider interval.

    The pilot's alone holds the level for errors that are alike throughout (Stein 1945). But a
    pilot in a quiet period, or with equal values by chance, underestimates the later noise; so its
    spread is used only if it does not give a narrower interval than that of all values.
    """
    everything = stdev(values), len(values) - 1
    if pilot is None or pilot >= len(values):
        return everything
    first = stdev(values[:pilot]), pilot - 1
    return max(first, everything, key=lambda pair: pair[0] * t_quantile(0.975, pair[1]))


def log_ratio(
    top: Sequence[float],
    bottom: Sequence[float],
    pilot: int | None = None,
    pilot_bottom: int | None = None,
) -> Difference | None:
    """Logarithm of a ratio of two means by the delta method: var(log r) = s₁²/(n₁·m₁²) +
    s₂²/(n₂·m₂²). ``None`` where a mean is not above 0 or a sample has a single trial, or where a
    mean is so large or small that its square is beyond the range of a float.

    ``pilot_bottom`` is that of the second sample where it differs from the first's.
    """
    means = mean(top), mean(bottom)
    errors = mean_error(top, pilot), mean_error(bottom, pilot_bottom or pilot)
    if min(means) <= 0 or errors[0] is None or errors[1] is None:
        return None
    squares = [square(centre) for centre in means]
    if min(squares) == 0 or not all(map(math.isfinite, (*squares, means[0] / means[1]))):
        return None
    relative = [
        error._replace(variance=error.variance / square)
        for error, square in zip(errors, squares, strict=True)
        if error is not None
    ]
    if means[0] / means[1] == 0:
        return None
    return _combined(math.log(means[0] / means[1]), *relative)


def difference(
    top: Sequence[float],
    bottom: Sequence[float],
    pilot: int | None = None,
    pilot_bottom: int | None = None,
) -> Difference | None:
    """Difference of two means; ``None`` where a sample has a single trial."""
    first, second = mean_error(top, pilot), mean_error(bottom, pilot_bottom or pilot)
    if first is None or second is None:
        return None
    return _combined(mean(top) - mean(bottom), first, second)


def growth(logarithm: float) -> float:
    """The factor of a logarithm; infinite if it exceeds the range of a float."""
    return math.exp(logarithm) if logarithm < 709 else math.inf


def _combined(value: float, first: MeanError, second: MeanError) -> Difference:
    """Degrees of freedom by Welch–Satterthwaite; where both samples went beyond their pilots,
    the smaller of the two (Cochran 1964), since sizes chosen by the spreads make the two terms
    alike whatever the spreads were."""
    variance = first.variance + second.variance
    if variance == 0 or (first.staged and second.staged):
        return Difference(value, variance, min(first.df, second.df))
    shares = sum(square(error.variance) / error.df for error in (first, second))
    if shares == 0 or not math.isfinite(square(variance)):
        return Difference(value, variance, min(first.df, second.df))
    df = square(variance) / shares
    return Difference(value, variance, df)
