"""Curves side by side, so that one call of the solver serves them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from concurve.models.curve import Curve
from concurve.models.model import Floats, Integers
from concurve.models.solver import Points

#: Significance level of the test whether the levels miss the curve (a misfit).
MISFIT = 0.05
#: Relative errors below this come from rounding of printed numbers, not from measuring.
_RELATIVE_ERROR_MIN = 1e-9


@dataclass(frozen=True)
class Batch:
    """Curves of any lengths: short ones repeat their last level with a weight of 0.

    ``count``, ``trials``, ``within`` and ``within_df`` are those of the curves (B);
    ``variance_min`` is the least plausible variance.
    """

    points: Points
    count: Floats
    trials: Floats
    within: Floats
    within_df: Floats
    log_density: Floats
    variance_min: Floats

    def rows(self, index: Integers) -> Batch:
        """Some of the curves."""
        return Batch(
            self.points.rows(index),
            *(
                getattr(self, name)[index]
                for name in (
                    "count", "trials", "within", "within_df", "log_density", "variance_min",
                )
            ),
        )  # fmt: skip

    def chance_of_misfit(self, squares: Floats, parameters: int) -> Floats:
        """p-values that the levels miss the curve only as far as the trials spread.

        1 where there are no replicates to judge by.
        """
        df = self.count - parameters
        judged = (self.within_df > 0) & (df > 0)
        with np.errstate(all="ignore"):
            between = squares / df
            inside = np.maximum(self.within / self.within_df, self.variance_min)
            return np.where(judged, fdtrc(df, self.within_df, between / inside), 1.0)

    def variance(self, squares: Floats, parameters: int) -> tuple[Floats, Floats]:
        """Variance of a trial about the curve and its degrees of freedom.

        From all trials where the curve describes the levels; from the levels alone where
        these miss it by more than the trials' spread explains, since repeating trials does not
        make a wrong model any surer.
        """
        missed = self.chance_of_misfit(squares, parameters) < MISFIT
        levels_df, all_df = self.count - parameters, self.trials - parameters
        df = np.where(missed, levels_df, all_df)
        total = np.where(missed, squares, squares + self.within)
        return np.maximum(total / df, self.variance_min), df


def stack(curves: Sequence[Curve]) -> Batch:
    """Curves → batch. All must have the same kind of error."""
    width = max(len(curve.levels) for curve in curves)

    def padded(arrays: list[Floats], fill_last: bool) -> Floats:
        return np.stack([np.append(a, np.full(width - len(a), a[-1] * fill_last)) for a in arrays])

    absolute = curves[0].absolute
    points = Points(
        padded([curve.levels for curve in curves], True),
        padded([curve.values for curve in curves], True),
        padded([curve.weights for curve in curves], False),
        absolute,
    )
    scale = np.array([np.mean(c.values**2) if absolute else 1.0 for c in curves])
    return Batch(
        points,
        count=np.array([len(curve.levels) for curve in curves], float),
        trials=np.array([curve.trials for curve in curves], float),
        within=np.array([curve.within for curve in curves]),
        within_df=np.array([curve.within_df for curve in curves], float),
        log_density=np.array([curve.log_density for curve in curves]),
        variance_min=_RELATIVE_ERROR_MIN**2 * scale,
    )
