"""Measured throughput against workers as input of fits: levels, centres, weights, error model.

Trials of one level are replicates. Where each level has three or more, fits see each level's median
(of log X where errors are relative), which a slow trial does not move. The trials' spread is that
for which a mean would be as uncertain as these medians are. With fewer trials a level, fits see
means. The sum of squares within the levels is added to that of the fit: for means and least squares
this equals fitting every trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaincc, polygamma, psi

from concurve import words
from concurve.errors import ConcurveError
from concurve.models.model import Floats, Integers

LEVELS_MIN = 3

#: Levels get different weights if Bartlett's test (1937) rejects equal spreads at this level.
_UNEQUAL = 0.01
#: A level needs at least this many replicates for its spread to be used.
REPLICATES_MIN = 3
#: Residuals beyond this multiple of a level's median residual are cut before spreads are compared:
#: four standard deviations of normal noise.
_FAR_OUT = 6.0


@dataclass(frozen=True)
class Curve:
    """One measured curve.

    ``weights`` are relative to the pooled variance of a single trial: of constant spread, the
    number of trials of each level. ``within`` is the weighted sum of squares of the trials about
    their levels' means, as far as it makes the fitted values uncertain, on ``within_df`` degrees of
    freedom. ``log_density`` is what the
    transformation and the weights add to the log-likelihood of the trials, whatever the model.
    ``measured`` are the throughputs of each level's trials, in ascending order.
    """

    levels: Floats
    values: Floats
    weights: Floats
    trials: int
    within: float
    within_df: int
    log_density: float
    absolute: bool
    error_model: str
    measured: tuple[tuple[float, ...], ...]

    @property
    def replicates(self) -> float:
        """Mean number of trials a level."""
        return self.trials / len(self.levels)

    @property
    def throughput(self) -> Floats:
        """Fitted throughput of each level: the median of its trials, of fewer than three the mean
        (geometric where errors are relative)."""
        return self.values if self.absolute else np.asarray(np.exp(self.values))


def make_curve(n: Sequence[float] | Floats, x: Sequence[float] | Floats, absolute: bool) -> Curve:
    """Trials → curve. Equal ``n`` are replicates; their order does not matter.

    Raises:
        ConcurveError: lengths that differ, numbers that are not finite or not above 0, or fewer
            than three levels.
    """
    ns, xs = _checked(n, x)
    levels, group = np.unique(ns, return_inverse=True)
    if len(levels) < LEVELS_MIN:
        raise ConcurveError(
            f"a curve needs at least {LEVELS_MIN} different numbers of workers; "
            f"there are {len(levels)} ({', '.join(f'{level:g}' for level in levels)})",
            "measure at more levels; at least 6 to fit every model",
        )
    # In an order of their own, so that sums come out alike whatever the order of the rows.
    order = np.lexsort((xs, group))
    group, xs = group[order], xs[order]
    counts = np.bincount(group)
    measured = tuple(tuple(own.tolist()) for own in np.split(xs, np.cumsum(counts)[:-1]))
    values = xs if absolute else np.log(xs)
    means = np.bincount(group, values) / counts
    rests = values - means[group]
    squares = np.bincount(group, rests**2).astype(float)
    by_median = bool(counts.min() >= REPLICATES_MIN)
    judged = squares
    if by_median:
        by_level = np.split(rests, np.cumsum(counts)[:-1])
        judged = np.array([np.sum(_without_tails(own) ** 2) for own in by_level])
    shares, error_model = _shares(counts, judged, absolute, means, levels)
    within = float(np.sum(shares * squares))
    if by_median:
        means = np.array([np.median(own) for own in np.split(values, np.cumsum(counts)[:-1])])
        within *= _uncertainty_of_medians(rests * np.sqrt(shares)[group], group, counts)
        error_model += "; levels' medians"
    density = 0.5 * float(np.sum(counts * np.log(shares)))
    return Curve(
        levels=levels,
        values=means,
        weights=counts * shares,
        trials=len(xs),
        within=within,
        within_df=len(xs) - len(levels),
        log_density=density if absolute else density - float(np.sum(values)),
        absolute=absolute,
        error_model=error_model,
        measured=measured,
    )


def _checked(n: Sequence[float] | Floats, x: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    ns, xs = np.asarray(n, float).ravel(), np.asarray(x, float).ravel()
    if len(ns) != len(xs):
        raise ConcurveError(
            f"{len(ns)} numbers of workers stand against {len(xs)} throughputs",
            "one throughput for each number of workers",
        )
    for name, values in (("number of workers", ns), ("throughput", xs)):
        bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if len(bad):
            raise ConcurveError(
                f"{name} {values[bad[0]]:g} in row {bad[0] + 1} is not a finite number above 0",
                "leave out rows without a measurement",
            )
    return ns, xs


def _shares(
    counts: Integers, squares: Floats, absolute: bool, means: Floats, levels: Floats
) -> tuple[Floats, str]:
    """Weight of one trial at each level, and the error model in words.

    Few replicates give a poor estimate of a level's own variance, and weights from it alone would
    do more harm than good: the pooled variance stands unless Bartlett's test rejects it, and then
    each level's variance is drawn towards their common trend in N (Smyth 2004).
    """
    kind = "absolute" if absolute else "relative"
    ones = np.ones(len(counts))
    df = counts - 1
    total = int(df.sum())
    if total == 0:
        return ones, f"constant {kind} error, estimated from the residuals"
    pooled = squares.sum() / total
    size = _spread(pooled, absolute, means)
    if counts.min() < REPLICATES_MIN or pooled == 0 or not _unequal(df, squares, pooled):
        return ones, f"constant {kind} error, pooled over all levels ({size})"
    variances = _squeezed(df, squares, np.log(levels))
    return (
        pooled / variances,
        f"{kind} error that differs between the levels (pooled {size}; variances squeezed)",
    )


def _without_tails(rests: Floats) -> Floats:
    """A level's residuals cut where they lie far out: one slow trial is no wider spread."""
    from_median = rests - np.median(rests)
    most = _FAR_OUT * float(np.median(np.abs(from_median)))
    return np.clip(from_median, -most, most)


def _uncertainty_of_medians(rests: Floats, group: Integers, counts: Integers) -> float:
    """The variance of the levels' medians against that of their means: 1.4 for normal noise, less
    where a few trials are far out.

    That of a median of n draws from all residuals together (Maritz and Jarrett 1978).
    """
    drawn = np.sort(rests * np.sqrt(counts / (counts - 1))[group])
    variance = float(np.mean(drawn**2))
    if variance == 0:
        return 1.0
    found = []
    for n in counts.tolist():
        below = betainc((n + 1) / 2, (n + 1) / 2, np.linspace(0, 1, len(drawn) + 1))
        chances = np.diff(below)
        middle = float(chances @ drawn)
        found.append(n * float(chances @ (drawn - middle) ** 2))
    return float(np.mean(found)) / variance


def _spread(pooled: float, absolute: bool, means: Floats) -> str:
    relative = np.sqrt(pooled) / (float(np.mean(means)) if absolute else 1.0)
    return f"{words.in_percent(float(relative))} % a trial"


def _unequal(df: Integers, squares: Floats, pooled: float) -> bool:
    """Bartlett's test of equal variances, rejected."""
    if np.any(squares == 0):
        return False
    total = df.sum()
    statistic = total * np.log(pooled) - np.sum(df * np.log(squares / df))
    correction = 1 + (np.sum(1 / df) - 1 / total) / (3 * (len(df) - 1))
    chance = gammaincc((len(df) - 1) / 2, statistic / correction / 2)
    return bool(chance < _UNEQUAL)


def _squeezed(df: Integers, squares: Floats, log_n: Floats) -> Floats:
    """Variances drawn towards their trend s² ∝ Nᵇ, as far as their spread about it allows.

    Smyth (2004, §6.2) with a prior that depends on a covariate.
    """
    logs = np.log(squares / df) - psi(df / 2) + np.log(df / 2)
    slope, offset = np.polyfit(log_n, logs, 1)
    trend = offset + slope * log_n
    spread = float(np.sum((logs - trend) ** 2)) / max(len(df) - 2, 1)
    spread -= float(np.mean(polygamma(1, df / 2)))
    if spread <= 0:
        return np.asarray(np.exp(trend))
    prior_df = 2 * _trigamma_inverse(spread)
    prior = np.exp(trend + psi(prior_df / 2) - np.log(prior_df / 2))
    return np.asarray((prior_df * prior + squares) / (prior_df + df))


def _trigamma_inverse(value: float) -> float:
    """y with ψ′(y) = value, by Newton's method on 1/ψ′ (Smyth 2004, appendix)."""
    y = 0.5 + 1 / value
    for _ in range(50):
        found = float(polygamma(1, y))
        change = found * (1 - found / value) / float(polygamma(2, y))
        y += change
        if -change < 1e-9 * y:
            break
    return y
