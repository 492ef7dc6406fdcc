"""What is known of a curve at its measured levels, and between them.

At a level the measurements say more than any model: the interval there is that of the level's
centre. Between two levels each model's curve is bent so that it runs through the bounds at both:
what the models left say differently of the way between is the rest of the doubt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from concurve.estimate import Estimate
from concurve.findings.fit import FitResult, ModelFit
from concurve.models.curve import REPLICATES_MIN, Curve
from concurve.models.model import Floats
from concurve.stats.centre import centre_estimate

#: A half-width of log X beyond this says nothing; it is cut so that exp does not overflow.
_HALF_MOST = 300.0


def centres(curve: Curve, chosen: ModelFit, confidence: float, unit: str) -> tuple[Estimate, ...]:
    """The centre of each level with its interval.

    Fewer than three trials show no spread of their own: there it is that of all trials about the
    chosen model.
    """
    return tuple(_centre(trials, curve, chosen, confidence, unit) for trials in curve.measured)


def _centre(
    trials: Sequence[float], curve: Curve, chosen: ModelFit, confidence: float, unit: str
) -> Estimate:
    own = centre_estimate(trials, unit, confidence)
    if len(trials) >= REPLICATES_MIN:
        return own
    deviation = chosen.residual_deviation / (own.value if curve.absolute else 1.0)
    factor = float(stdtrit(max(chosen.df, 1), (1 + confidence) / 2))
    half = min(factor * deviation / math.sqrt(len(trials)), _HALF_MOST)
    return Estimate(
        value=own.value,
        low=own.value * math.exp(-half),
        high=own.value * math.exp(half),
        n=own.n,
        unit=unit,
        confidence=confidence,
    )


def within_levels(result: FitResult, logs: Floats, at_levels: Floats, n: Floats) -> Floats:
    """Bounds (2, n) of log X at numbers between the least and the greatest level.

    Args:
        result: the fit; its ``centres`` are the bounds at the levels.
        logs: log X of each model left (models, n).
        at_levels: log X of each model left at the levels (models, levels).
        n: numbers of workers.
    """
    levels = np.log(np.array(result.levels))
    low, high = (
        np.log([_above_nothing(getattr(figure, end), figure.value) for figure in result.centres])
        for end in ("low", "high")
    )
    bent = [
        [own + np.interp(np.log(n), levels, bound - model) for bound in (low, high)]
        for own, model in zip(logs, at_levels, strict=True)
    ]
    ends = np.array(bent)
    return np.stack([ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)])


def _above_nothing(bound: float | None, value: float) -> float:
    """A bound that has a logarithm; the value where there is no interval."""
    return value if bound is None else max(bound, value * math.exp(-_HALF_MOST))
