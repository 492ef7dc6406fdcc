"""Plain moments of lists, short ones without numpy, whose call overhead would dominate; and
Student's t."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

#: For samples of this length and more, numpy is faster.
LONG = 200


class Summary(NamedTuple):
    """The plain moments of a sample together; ``stdev`` as :func:`stdev`."""

    mean: float
    median: float
    min: float
    max: float
    stdev: float


def summary(values: Sequence[float]) -> Summary:
    """All moments at once: a long list is converted to an array only once.

    Raises:
        ValueError: no values, or one that is not finite.
    """
    if len(values) == 0:
        raise ValueError("no values: their mean is not finite")
    if len(values) >= LONG:
        import numpy as np

        array = np.asarray(values)
        if not np.isfinite(array).all():
            raise ValueError("the values are not all finite")
        return Summary(
            float(array.mean()),
            float(np.median(array)),
            float(array.min()),
            float(array.max()),
            float(array.std(ddof=1)),
        )
    if not all(map(math.isfinite, values)):
        raise ValueError("the values are not all finite")
    return Summary(mean(values), median(values), min(values), max(values), stdev(values))


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; of finite values always finite."""
    try:
        return statistics.fmean(values)
    except OverflowError:  # their sum is above the greatest double: divide before adding
        count = len(values)
        return math.fsum(value / count for value in values)


def median(values: Sequence[float]) -> float:
    """Middle value, mean of the middle two for an even count."""
    if len(values) >= LONG:
        import numpy as np

        return float(np.median(values))
    return statistics.median(values)


def stdev(values: Sequence[float]) -> float:
    """Sample standard deviation (n − 1); 0 for a single value."""
    if len(values) < 2:
        return 0.0
    if len(values) >= LONG:
        import numpy as np

        return float(np.std(values, ddof=1))
    # The Euclidean distance from the mean: one call in C, and as exact as a compensated sum.
    centre = mean(values)
    return math.dist(values, [centre] * len(values)) / math.sqrt(len(values) - 1)


def square(value: float) -> float:
    """The square; infinite if it exceeds the range of a float."""
    try:
        return value**2
    except OverflowError:
        return math.inf


def growth(logarithm: float) -> float:
    """The factor of a logarithm; infinite if it exceeds the range of a float."""
    return math.exp(logarithm) if logarithm < 709 else math.inf


def median_deviation(values: Sequence[float]) -> float:
    """Median of the absolute deviations from the median (MAD, not scaled)."""
    middle = median(values)
    return median([abs(value - middle) for value in values])


@lru_cache(maxsize=1024)
def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t with ``df`` degrees of freedom (may be fractional)."""
    from scipy.special import stdtrit  # 0.1 s to import; scipy.stats takes seconds

    return float(stdtrit(df, probability))


def t_upper(t: float, df: float) -> float:
    """Probability of a value above ``t``."""
    from scipy.special import stdtr

    return float(stdtr(df, -t))
