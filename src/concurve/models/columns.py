"""One model fitted to many curves, with its results as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from concurve.models import select
from concurve.models.batch import stack
from concurve.models.curve import Curve
from concurve.models.fit import Fitted, fit, interval, levels_on_cap
from concurve.models.model import Floats, Model


@dataclass(frozen=True)
class Columns:
    """The results of a model for every curve that it was fitted to, as columns (B)."""

    fitted: Fitted
    rows: list[int]
    values: dict[str, Floats]
    low: dict[str, Floats]
    high: dict[str, Floats]
    peak: tuple[Floats, ...] | None
    on_cap: Floats
    misfit: Floats
    last_left_out: Floats
    durbin_watson: Floats
    chance_of_order: Floats


def columns_of(model: Model, curves: Sequence[Curve], confidence: float) -> Columns | None:
    """One model on those of the curves that have more levels than it has parameters."""
    rows = [i for i, curve in enumerate(curves) if len(curve.levels) > model.size]
    if not rows:
        return None
    fitted = fit(model, stack([curves[i] for i in rows]))
    values, low, high = {}, {}, {}
    for quantity in model.parameters:
        values[quantity.name] = quantity.of(fitted.u)
        low[quantity.name], high[quantity.name] = interval(fitted, quantity, confidence)
    on_cap = levels_on_cap(fitted)
    if model.capped:
        unreached = on_cap == 0
        values["cap"] = np.where(unreached, np.inf, values["cap"])
        high["cap"] = np.where(unreached, np.inf, high["cap"])
    statistic, chance = select.durbin_watson(fitted)
    return Columns(
        fitted,
        rows,
        values,
        low,
        high,
        _peak(fitted, low, confidence),
        on_cap,
        fitted.batch.chance_of_misfit(fitted.squares, model.size),
        select.last_left_out(model, fitted.batch),
        statistic,
        chance,
    )


@np.errstate(all="ignore")
def _peak(fitted: Fitted, low: dict[str, Floats], confidence: float) -> tuple[Floats, ...] | None:
    """Position and throughput of the peak with their ends; NaN where there is none.

    ``low`` are the lower ends of the parameters. At α = 1 and β > 0 throughput falls from the
    first worker on: the position is the least that the model has, the throughput NaN.
    """
    peak = fitted.model.peak
    if peak is None:
        return None
    kappa = peak.inverse.of(fitted.u)
    has = (fitted.u[:, 2] > 0) & np.isfinite(kappa)
    unbounded = (fitted.relaxed == fitted.u).all(axis=1)
    falls = (fitted.u[:, 2] > 0) & (fitted.u[:, 1] >= 1) & unbounded
    has &= unbounded & ~falls
    throughput = np.full(len(has), np.nan)
    throughput[has] = peak.throughput.of(fitted.u[has])
    # A superlinear fit may grow beyond all bounds before coherency limits it.
    has &= np.isfinite(throughput)
    position = np.where(has, peak.position(np.where(has, kappa, 1.0)), np.nan)
    kappa_low, kappa_high = interval(fitted, peak.inverse, confidence, has)
    ends = [np.full(len(has), np.nan), np.full(len(has), np.nan)]
    ends[0][has], ends[1][has] = peak.position(kappa_high[has]), peak.position(kappa_low[has])
    # κ = β/(1−α) is infinite at α = 1. Its least value is no less than that of the box of both
    # intervals, which holds the region of (α, β).
    position[falls] = ends[0][falls] = peak.position(np.full(falls.sum(), np.inf))
    least = low["beta"][falls] / (1 - low["alpha"][falls])
    ends[1][falls] = peak.position(np.nan_to_num(least))
    return (
        position, ends[0], ends[1], throughput,
        *interval(fitted, peak.throughput, confidence, has),
    )  # fmt: skip
