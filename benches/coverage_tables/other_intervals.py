"""What other kinds of intervals would give."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtri, stdtrit

from concurve.models.fit import Fitted, interval
from concurve.models.usl import MODEL as USL
from coverage_tables.simulated import (
    EIGHT,
    FIVE,
    TRUTHS,
    Design,
    Floats,
    Truth,
    covered,
    experiment,
    marked,
)

OTHERS_TEXT = """## What other intervals would give

Eight and five levels, one trial each, 3 % noise. *Profile* is what concurve shows. *Wald t* is
estimate ± t(n−p)·se, *Wald z* the same with 1.96, *one-sided* with the one-sided quantile t₀.₉₅(n)
that some tools take by mistake; for N* these are delta-method intervals of log N*. *Profile χ²* has
the threshold of many observations. Wald's intervals of N* need an estimate of β above 0;
experiments without it count as missed.
"""


def others(count: int) -> Iterator[str]:
    """The usual remedies on the smallest design."""
    yield from OTHERS_TEXT.splitlines()
    yield ""
    yield "| α | β | levels | of | profile | Wald t | Wald z | one-sided | profile χ² |"
    yield "|-|-|-|-|-|-|-|-|-|"
    for truth in TRUTHS:
        for levels in (EIGHT, FIVE):
            fitted = experiment(truth, Design(levels, 1, 0.03), count)
            for name, values in other_shares(fitted, truth).items():
                cells = [f"{truth.alpha:g}", f"{truth.beta:g}"]
                cells += ["eight" if levels == EIGHT else "five", name]
                yield f"| {' | '.join(cells + [marked(value) for value in values])} |"
    yield ""


def other_shares(fitted: Fitted, truth: Truth) -> dict[str, list[float]]:
    """Shares of β and N* by each kind of interval."""
    assert USL.peak is not None
    n, df = int(fitted.batch.trials[0]), int(fitted.df[0])
    alpha, beta = fitted.u[:, 1], fitted.u[:, 2]
    with np.errstate(all="ignore"):
        beta_error = np.sqrt(fitted.covariance[:, 2, 2])
        # log N* = (log(1−α) − log β)/2
        slope = np.stack([np.zeros(len(alpha)), -0.5 / (1 - alpha), -0.5 / beta], axis=1)
        peak_error = np.sqrt(np.einsum("bp,bpq,bq->b", slope, fitted.covariance, slope))
        log_peak = (np.log(1 - alpha) - np.log(beta)) / 2
    quantiles = (stdtrit(df, 0.975), float(ndtri(0.975)), stdtrit(n, 0.95))

    def wald(centre: Floats, error: Floats, true: float) -> list[float]:
        with np.errstate(all="ignore"):
            return [float((np.abs(centre - true) <= q * error).mean()) for q in quantiles]

    # The χ² threshold is F's at infinitely many degrees of freedom: a lower level of t(n−p).
    level = 2 * float(student(df)(float(ndtri(0.975)))) - 1
    found = {}
    for name, quantity, true, centre, error, wald_true in (
        ("β", USL.parameters[2], truth.beta, beta, beta_error, truth.beta),
        ("N*", USL.peak.inverse, truth.kappa, log_peak, peak_error, float(np.log(truth.peak))),
    ):
        low, high = interval(fitted, quantity, level)
        chi = float(((low <= true) & (true <= high)).mean())
        profile = covered(fitted, quantity, true)
        found[name] = [profile, *wald(centre, error, wald_true), chi]
    return found


def student(df: int) -> Callable[[float], float]:
    """Distribution function of Student's t."""
    from scipy.special import stdtr

    return lambda value: float(stdtr(df, value))
