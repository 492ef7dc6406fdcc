"""The settings that cannot be distinguished from the best, and how many trials would separate
them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.stats.intervals import mean_estimate
from concurve.stats.moments import mean, square, t_quantile
from concurve.stats.welch import deviation_of, mean_error, p_above_others

#: Each setting is compared with at most this many others, to save time with thousands of cells.
RIVALS_MAX = 200

#: No larger number of trials a setting is proposed.
TRIALS_MAX = 1000


class BestSet(NamedTuple):
    """``members``: indices that cannot be distinguished from the best, in the order given;
    ``p_values``: how likely data like these are if that setting is the best; ``ranking``: all
    indices, the best mean first."""

    members: tuple[int, ...]
    p_values: tuple[float, ...]
    ranking: tuple[int, ...]

    @property
    def leader(self) -> int:
        """The setting with the best mean; always a member."""
        return self.ranking[0]

    @property
    def rival(self) -> int | None:
        """The member with the next best mean."""
        return next((index for index in self.ranking[1:] if index in self.members), None)


def best_set(
    columns: Sequence[Sequence[float]],
    lower_is_better: bool = True,
    confidence: float = 0.95,
    pilot: int | None = None,
) -> BestSet:
    """Subset selection: it contains the best setting with at least this confidence.

    Each setting is held against every other by a one-sided Welch test of "that one is better",
    and leaves the set if one of them is, at the level (1 − confidence) / (settings − 1): the
    best leaves only if one of so many true hypotheses is rejected (Bonferroni), whatever the
    others are. Only the :data:`RIVALS_MAX` best means are compared with: fewer tests reject no
    more. This is Gupta's subset selection for spreads that differ (Hsu 1996, ch. 4). A
    setting with a single trial cannot be distinguished from any other and stays.
    """
    sign = 1 if lower_is_better else -1
    centres = [sign * mean(column) for column in columns]
    errors = [mean_error(column, pilot) for column in columns]
    ranking = tuple(sorted(range(len(columns)), key=centres.__getitem__))
    least = p_above_others(centres, errors, ranking[:RIVALS_MAX])
    p_values = tuple(min(1.0, p * max(1, len(columns) - 1)) for p in least)
    members = tuple(index for index, p in enumerate(p_values) if p > 1 - confidence)
    return BestSet(members, p_values, ranking)


def best_mean(
    columns: Sequence[Sequence[float]],
    lower_is_better: bool = True,
    confidence: float = 0.95,
    pilot: int | None = None,
) -> tuple[int, Estimate]:
    """The best of the true means: the index of the setting with the best mean, and an interval.

    The best of the observed means is biased: noise contributes to its being the best. So the
    interval runs from the best of the lower bounds to the best of the upper bounds of simultaneous
    intervals (Bonferroni), between which the best true mean lies if each true mean lies in its own.
    Positive figures are assumed. No interval where a setting has a single trial.
    """
    each = 1 - (1 - confidence) / len(columns)
    found = [mean_estimate(column, confidence=each, pilot=pilot) for column in columns]
    best = min if lower_is_better else max
    index = best(range(len(found)), key=lambda position: found[position].value)
    lows = [estimate.low for estimate in found if estimate.low is not None]
    highs = [estimate.high for estimate in found if estimate.high is not None]
    sure = len(lows) == len(highs) == len(found)
    return index, Estimate(
        value=found[index].value,
        low=best(lows) if sure else None,
        high=best(highs) if sure else None,
        n=min(estimate.n for estimate in found),
        confidence=confidence,
    )


def trials_to_tell(
    first: Sequence[float],
    second: Sequence[float],
    others: int = 1,
    confidence: float = 0.95,
    power: float = 0.8,
    pilot: int | None = None,
) -> int | None:
    """Trials of each of two settings that would show their difference with this power, if it is as
    large as observed, and this is one of ``others`` comparisons; ``None`` beyond
    :data:`TRIALS_MAX`, or if there is no spread or no difference, or a square exceeds a float.

    The least n with (t₁₋α + t_power)² · (s₁² + s₂²) / n ≤ d², t of n − 1 degrees of freedom.
    """
    if min(len(first), len(second)) < 2:
        return None
    distance = abs(mean(first) - mean(second))
    variance = sum(square(deviation_of(column, pilot)[0]) for column in (first, second))
    apart = square(distance)
    if apart == 0 or variance == 0 or not math.isfinite(variance + apart):
        return None
    level = 1 - (1 - confidence) / others
    least = (t_quantile(level, math.inf) + t_quantile(power, math.inf)) ** 2
    for n in range(max(2, math.floor(least * variance / apart)), TRIALS_MAX + 1):
        if (t_quantile(level, n - 1) + t_quantile(power, n - 1)) ** 2 * variance <= n * apart:
            return n
    return None


def without_block_effects(cells: Sequence[Mapping[int, float]]) -> list[list[float]]:
    """The positive values of cells by block → columns of equal length, each value divided by its
    block's geometric mean over the cells and multiplied by that of all blocks.

    In a two-way layout (cell × block on the logarithm) this leaves the effect of the cell and the
    error. Only blocks that all cells with values hold are kept. The error then has a few degrees
    of freedom less than the columns seem to have: one in ``len(cells)``.
    """
    held = [set(cell) for cell in cells if cell]
    blocks = sorted(set.intersection(*held)) if held else []
    logs = [[math.log(cell[block]) for block in blocks] if cell else [] for cell in cells]
    shared = [mean([column[i] for column in logs if column]) for i in range(len(blocks))]
    centre = mean(shared) if shared else 0.0
    return [
        [math.exp(value - effect + centre) for value, effect in zip(column, shared, strict=True)]
        if column
        else []
        for column in logs
    ]
