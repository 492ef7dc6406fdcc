"""Medians and their ratios, with 95 % intervals from the bootstrap.

Medians, because hyperfine and perf are compared by medians. The bootstrap draws whole rounds, so
that a slow spell of the machine meets all sides alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from concurve.estimate import Estimate

RESAMPLES = 4000
SEED = 1
Samples = Mapping[str, Sequence[float]]


def _estimate(
    statistic: Callable[[list[np.ndarray]], np.ndarray], sides: Sequence[Sequence[float]], unit: str
) -> Estimate:
    """A statistic of paired samples; ``statistic`` works along the last axis of each."""
    arrays = [np.asarray(side, dtype=float) for side in sides]
    n = len(arrays[0])
    value = float(statistic(arrays))
    if n < 2:
        return Estimate(value=value, n=n, unit=unit)
    draws = np.random.default_rng(SEED).integers(n, size=(RESAMPLES, n))
    low, high = np.percentile(statistic([array[draws] for array in arrays]), [2.5, 97.5])
    return Estimate(value=value, low=float(low), high=float(high), n=n, unit=unit)


def median(values: Sequence[float], unit: str = "") -> Estimate:
    """Median with its bootstrap interval."""
    return _estimate(lambda a: np.median(a[0], axis=-1), [values], unit)


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """Ratio of the medians of two interleaved series."""
    return _estimate(
        lambda a: np.median(a[0], axis=-1) / np.median(a[1], axis=-1), [above, below], ""
    )


def median_of_ratios(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """Median of the ratios of each round, which what slows a round down hardly changes."""
    return median([a / b for a, b in zip(above, below, strict=True)])


def difference_of_medians(
    above: Sequence[float], below: Sequence[float], factor: float = 1.0, unit: str = ""
) -> Estimate:
    """Difference of the medians of two interleaved series, times a factor."""
    return _estimate(
        lambda a: factor * (np.median(a[0], axis=-1) - np.median(a[1], axis=-1)),
        [above, below],
        unit,
    )
