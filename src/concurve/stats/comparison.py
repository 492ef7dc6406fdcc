"""Ratios of many pairs of cells, and their verdicts.

There are three intervals of a ratio. Welch's, on the logarithm, is the default: it holds its
level from two trials on. In pairs, block by block as the cells of one run were measured, what
slows a whole block slows both; on a steady machine that finds less, as it has half the degrees
of freedom. The hierarchical bootstrap (Kalibera & Jones 2013) makes no assumption about the
shape of the errors, but is too narrow below some twenty trials (``docs/method/comparison.md``
has the figures).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from concurve.stats.moments import mean
from concurve.stats.welch import Difference, log_ratio, mean_error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

RESAMPLES = 10_000

Sessions = Sequence[Sequence[float]]
"""Values of the trials of a cell, by session: a stored run is a session."""

Method = Literal["pairs", "welch", "bootstrap"]
Direction = Literal["higher", "lower", "same", "undecided"]


class LogRatio(Protocol):
    """The logarithm of a ratio, with its p-values."""

    @property
    def value(self) -> float:
        """The logarithm itself."""
        ...

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Its bounds."""
        ...

    def p_above(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that it is at most ``bound``."""
        ...

    def p_below(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that it is at least ``bound``."""
        ...


class Resampled(NamedTuple):
    """A log ratio with its resamples, in order."""

    value: float
    draws: npt.NDArray[np.float64]

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Percentile interval."""
        import numpy as np

        tail = (1 - confidence) / 2
        low, high = np.quantile(self.draws, (tail, 1 - tail))
        return float(low), float(high)

    def p_above(self, bound: float = 0.0) -> float:
        """Share of the resamples at or below the bound."""
        return (int((self.draws <= bound).sum()) + 1) / (len(self.draws) + 1)

    def p_below(self, bound: float = 0.0) -> float:
        """Share of the resamples at or above the bound."""
        return (int((self.draws >= bound).sum()) + 1) / (len(self.draws) + 1)


def compared(
    top: Sessions,
    bottom: Sessions,
    method: Method = "welch",
    pilots: tuple[int | None, int | None] = (None, None),
    seed: int = 0,
) -> LogRatio | None:
    """Log ratio of the means of two cells; ``None`` where a mean is not above 0 or there are
    fewer than two values for a spread.

    With several sessions on a side, its unit is the session, as that is what was drawn anew.
    """
    if method == "bootstrap":
        return _bootstrap(top, bottom, seed)
    columns = [_units(sessions) for sessions in (top, bottom)]
    staged = [
        pilot if len(sessions) == 1 else None
        for pilot, sessions in zip(pilots, (top, bottom), strict=True)
    ]
    if not all(columns):
        return None
    return log_ratio(columns[0], columns[1], staged[0], staged[1])


def compared_in_pairs(
    top: Sequence[float], bottom: Sequence[float], pilot: int | None = None
) -> Difference | None:
    """Mean log ratio of two cells over the blocks that hold both: a randomised block design is
    analysed by its blocks (Student's t on the differences). ``None`` where a value is not above
    0 or there are fewer than two blocks.

    A block without one of the cells, which had reached its precision, is left out: the machine may
    have changed by then.
    """
    if len(top) < 2 or min(*top, *bottom) <= 0:
        return None
    logs = [math.log(high / low) for high, low in zip(top, bottom, strict=True)]
    error = mean_error(logs, pilot)
    return None if error is None else Difference(mean(logs), error.variance, error.df)


def _units(sessions: Sessions) -> Sequence[float]:
    """The independent draws: the trials of a single session, or the means of several sessions."""
    return sessions[0] if len(sessions) == 1 else [mean(session) for session in sessions if session]


def _bootstrap(top: Sessions, bottom: Sessions, seed: int) -> Resampled | None:
    """Hierarchical bootstrap: sessions are drawn with replacement, and in each its trials."""
    import numpy as np

    if any(len(_units(side)) < 2 for side in (top, bottom)):
        return None
    centres = [mean(_units(side)) for side in (top, bottom)]
    generator = np.random.default_rng(seed)
    draws = [_resampled_means(side, generator) for side in (top, bottom)]
    if min(centres) <= 0 or min(column.min() for column in draws) <= 0:
        return None
    return Resampled(math.log(centres[0] / centres[1]), np.sort(np.log(draws[0] / draws[1])))


def _resampled_means(sessions: Sessions, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """Means of :data:`RESAMPLES` resamples, every session with the same weight."""
    import numpy as np

    columns = [np.asarray(session, dtype=float) for session in sessions if session]
    chosen = generator.integers(len(columns), size=(RESAMPLES, len(columns)))
    total = np.zeros(RESAMPLES)
    for position in range(len(columns)):
        for index, column in enumerate(columns):
            rows = np.flatnonzero(chosen[:, position] == index)
            drawn = generator.integers(len(column), size=(len(rows), len(column)))
            total[rows] += column[drawn].mean(axis=1)
    return total / len(columns)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: those at most q hold with a share of false ones of at most q
    (Benjamini & Hochberg 1995)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    adjusted, least = [1.0] * len(p_values), 1.0
    for position, index in enumerate(order):
        rank = len(p_values) - position
        least = min(least, p_values[index] * len(p_values) / rank)
        adjusted[index] = least
    return adjusted


def directions(
    ratios: Sequence[LogRatio | None], effect: float, level: float = 0.05
) -> list[Direction]:
    """The verdicts on all ratios together, with a false discovery rate of ``level``.

    ``same``: the ratio lies within 1/(1 + effect) and 1 + effect, by two one-sided tests
    (Schuirmann 1987). ``higher`` and ``lower``: it is not 1, and it seems to be off by the
    effect at least. Else ``undecided``.
    """
    bound = math.log1p(effect)
    tested = [ratio for ratio in ratios if ratio is not None]
    unequal = benjamini_hochberg(
        [min(1.0, 2 * min(ratio.p_above(), ratio.p_below())) for ratio in tested]
    )
    alike = benjamini_hochberg(
        [max(ratio.p_above(-bound), ratio.p_below(bound)) for ratio in tested]
    )
    said = iter(
        _direction(ratio.value, bound, p <= level, q <= level)
        for ratio, p, q in zip(tested, unequal, alike, strict=True)
    )
    return ["undecided" if ratio is None else next(said) for ratio in ratios]


def _direction(value: float, bound: float, unequal: bool, alike: bool) -> Direction:
    if alike:
        return "same"
    if unequal and abs(value) >= bound:
        return "higher" if value > 0 else "lower"
    return "undecided"
