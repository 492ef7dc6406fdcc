"""How many trials would show a difference."""

from __future__ import annotations

import math

from concurve.stats.moments import square, t_quantile

#: No larger number of trials is proposed.
TRIALS_MAX = 1000

#: The efficiency of the signed-rank and the rank-sum test against Student's t for normal errors
#: (Pitman); for heavier tails they need fewer trials.
_EFFICIENCY = 3 / math.pi


def trials_to_tell(
    distance: float, spread: float, tail: float = 0.025, power: float = 0.8
) -> int | None:
    """The number of values with the standard deviation ``spread`` whose test tells their centre
    from a bound that lies ``distance`` off, with this power, at the one-sided level ``tail``.

    ``None`` beyond :data:`TRIALS_MAX`, without a spread or a distance, or where a square exceeds a
    float. The least n with (t₁₋α + t_power)² · s² / n ≤ 0.955 d², t of n − 1 degrees of freedom.
    """
    variance, apart = square(spread), _EFFICIENCY * square(distance)
    if apart == 0 or variance == 0 or not math.isfinite(variance + apart):
        return None
    least = (t_quantile(1 - tail, math.inf) + t_quantile(power, math.inf)) ** 2
    for n in range(max(2, math.floor(least * variance / apart)), TRIALS_MAX + 1):
        if (t_quantile(1 - tail, n - 1) + t_quantile(power, n - 1)) ** 2 * variance <= n * apart:
            return n
    return None
