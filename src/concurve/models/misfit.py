"""Does any model describe the curve? A test of lack of fit against two pieces.

A curve that breaks off, or bends once and goes on rising, is of no model here, and its residuals
need not come in runs. Two straight pieces in logarithms, with a jump between them where it fits
best, are cruder than every model on the curves that these describe. Where the pieces are closer by
more than their own scatter explains (F test), no model describes the curve. So it is where no model
is as close as the trials' spread allows, or where residuals come in runs, and the greatest residual
is large; and where a level is missed by a factor that only a mistyped figure has. Checked on
simulated curves of every family: docs/method/models.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import fdtrc

from concurve.findings.fit import Misfit, ModelFit
from concurve.models.curve import Curve
from concurve.models.model import Floats
from concurve.models.predict import curve_of

#: Residuals of log X below this are no matter, whatever a test says: a model is never exact.
_MATTERS = 0.05
#: The same where no pieces show what the shape is instead.
_LARGE = 0.1
#: A level further off than by this factor is described by no model, be it mistyped or true, unless
#: the trials spread as far.
_FAR_OFF = math.log(2)
#: The place of the break is searched for, and yet the test keeps this level: the pieces are rarely
#: closer than the models.
_CHANCE = 0.01
_CHANCE_OF_SPREAD = 0.001
_PIECES = 5
_LEAST = 2
_ROUNDING = 1e-9


def misfit_of(
    curve: Curve, models: Sequence[ModelFit], chosen: ModelFit, levels_only: bool
) -> Misfit | None:
    """The level that the chosen model misses most, if no model describes the curve."""
    measured, fitted = curve.throughput, curve_of(chosen, curve.levels)
    rest = np.abs(np.log(measured) - np.log(fitted))
    at = int(rest.argmax())
    if not rest[at] > _MATTERS:
        return None
    pieces = _pieces(curve, models)
    chance = chosen.chance_of_misfit
    by_spread = levels_only and chance is not None and chance < _CHANCE_OF_SPREAD
    in_runs = chosen.chance_of_order < _CHANCE
    # Errors that are absolute may be a great part of a small figure.
    is_near = curve.absolute and chance is None
    is_far = rest[at] > _FAR_OFF and not is_near and (chance is None or chance < _CHANCE)
    if pieces is None and not (is_far or (rest[at] > _LARGE and (by_spread or in_runs))):
        return None
    return Misfit(
        n=float(curve.levels[at]),
        measured=float(measured[at]),
        fitted=float(fitted[at]),
        pieces=pieces,
    )


def _pieces(curve: Curve, models: Sequence[ModelFit]) -> tuple[float, float, float, float] | None:
    """The last level of the first piece, the first one of the second, and the power of N by which
    each grows; ``None`` where they are not closer than the models."""
    levels, weights = curve.levels, curve.weights
    df = len(levels) - _PIECES + curve.within_df
    if len(levels) <= _PIECES:
        return None
    logs = np.log(curve.throughput)
    breaks = [
        (
            _line(levels[:at], logs[:at], weights[:at]),
            _line(levels[at:], logs[at:], weights[at:]),
            at,
        )
        for at in range(_LEAST, len(levels) - _LEAST + 1)
    ]
    first, second, at = min(breaks, key=lambda pair: pair[0][0] + pair[1][0])
    squares = first[0] + second[0]
    with np.errstate(all="ignore"):
        apart = [
            float(np.sum(weights * (logs - np.log(curve_of(item, levels))) ** 2)) for item in models
        ]
    closest = min((own for own in apart if np.isfinite(own)), default=squares)
    scatter = (squares + (0.0 if curve.absolute else curve.within)) / df
    more = (closest - squares) / 2 / max(scatter, _ROUNDING**2)
    if not more > 0 or float(fdtrc(2, df, more)) >= _CHANCE:
        return None
    return float(levels[at - 1]), float(levels[at]), first[1], second[1]


def _line(n: Floats, logs: Floats, weights: Floats) -> tuple[float, float]:
    """Weighted sum of squares about a line in logarithms, and its slope."""
    x = np.log(n)
    total = weights.sum()
    x, y = x - (weights * x).sum() / total, logs - (weights * logs).sum() / total
    slope = float((weights * x * y).sum() / (weights * x * x).sum())
    return float((weights * (y - slope * x) ** 2).sum()), slope
