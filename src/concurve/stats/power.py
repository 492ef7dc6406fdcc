"""How many trials would show a difference."""

from __future__ import annotations

import math

from concurve.stats.moments import square, t_quantile

#: What is said where the distance is within the resolution: no number of trials helps.
TOO_COARSE = "the clock is too coarse: longer trials, or a finer clock"

#: The share of repetitions of a run in which it is to decide.
POWER = 0.8

#: No larger number of trials is proposed.
TRIALS_MAX = 1000

#: The efficiency of the signed-rank and the rank-sum test against Student's t for normal errors
#: (Pitman); for heavier tails they need fewer trials.
RANKS = 3 / math.pi

#: The same of the sign test, whose interval is that of a median.
SIGNS = 2 / math.pi


def trials_to_tell(
    distance: float,
    spread: float,
    tail: float = 0.025,
    resolution: float = 0.0,
    power: float = POWER,
    efficiency: float = RANKS,
) -> int | None:
    """The number of values with the standard deviation ``spread`` whose test tells their centre
    from a bound that lies ``distance`` off, with this power, at the one-sided level ``tail``.

    ``resolution``: by how much all the values may be off, so by how much the test widens its
    interval whatever their number. Only what the distance exceeds it by can be told: d in the least
    n with (t₁₋α + t_power)² · s² / n ≤ e · d², t of n − 1 degrees of freedom, and e the
    ``efficiency`` of the test. ``None`` beyond
    :data:`TRIALS_MAX`, where the distance is within the resolution, or a square exceeds a float.
    """
    variance, apart = square(spread), efficiency * square(max(0.0, distance - resolution))
    if apart == 0 or not math.isfinite(variance + apart):
        return None
    least = (t_quantile(1 - tail, math.inf) + t_quantile(power, math.inf)) ** 2
    for n in range(max(2, math.floor(least * variance / apart)), TRIALS_MAX + 1):
        if (t_quantile(1 - tail, n - 1) + t_quantile(power, n - 1)) ** 2 * variance <= n * apart:
            return n
    return None
