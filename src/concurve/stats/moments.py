"""Plain moments of lists, short ones without numpy, whose call overhead would dominate; and
Student's t."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: For samples of this length and more, numpy is faster.
LONG = 200


class Difference(NamedTuple):
    """A difference of two means, its standard error, and the degrees of freedom of that."""

    value: float
    error: float
    df: float


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

        return float(medians(np.asarray(values, dtype=float)[None, :])[0])
    return statistics.median(values)


def medians(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The median of each row of finite values. Numpy's own imports masked arrays, which takes as
    long as a view of a run."""
    import numpy as np

    n = rows.shape[1]
    parted = np.partition(rows, sorted({(n - 1) // 2, n // 2}), axis=1)
    low, high = parted[:, (n - 1) // 2], parted[:, n // 2]
    found: npt.NDArray[np.float64] = low / 2 + high / 2
    return found


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


def welch(top: Sequence[float], bottom: Sequence[float]) -> Difference:
    """The difference of two means whose spreads may differ (Welch 1947), of two values each at
    least; where squares exceed the range of a float, with the fewer degrees of freedom."""
    first, second = (square(stdev(side)) / len(side) for side in (top, bottom))
    total = first + second
    shares = square(first) / (len(top) - 1) + square(second) / (len(bottom) - 1)
    least = min(len(top), len(bottom)) - 1
    df = square(total) / shares if shares and math.isfinite(square(total)) else least
    return Difference(mean(top) - mean(bottom), math.sqrt(total), df)
