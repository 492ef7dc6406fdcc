"""Profile intervals of the USL's parameters and of its peak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from concurve.estimate import Estimate
from concurve.models import FitResult, fit_many
from concurve.models.fit import Fitted, interval
from concurve.models.solver import minimise
from concurve.models.usl import MODEL as USL
from coverage_tables import families
from coverage_tables.simulated import (
    DESIGNS,
    EIGHT,
    GAMMA,
    TRUTHS,
    Design,
    Floats,
    Truth,
    covered,
    experiment,
    marked,
    percent,
)

#: Printed intervals must hold this often, whatever model was chosen.
PRINTED_LEAST = 0.9

#: A coherency far too small to be seen at these levels.
FAINT = Truth(0.1, 0.0002)
FAINT_TEXT = """### Close to the bound β = 0

With α = {alpha:g}, β = {beta:g} (N* = {peak:.0f}) these levels can hardly distinguish β from 0. An
interval must then contain the estimate, which is 0, so that it can miss the truth on one side only:
up to 97.5 % are to be expected. Not counted in the sum below.
"""


def parameters(count: int, rows: list[float]) -> Iterator[str]:
    """α, β, γ, N* and X(N*) by profile likelihood."""
    yield from ["", "## Parameters and peak of the USL", ""]
    yield "| α | β | true N* | levels | noise | γ | α | β | N* | X(N*) | open |"
    yield "|-|-|-|-|-|-|-|-|-|-|-|"
    for truth in TRUTHS:
        for design in DESIGNS:
            shares, opened = usl_row(truth, design, count)
            rows += shares
            yield usl_line(truth, design, shares, opened)
    yield ""


def usl_row(truth: Truth, design: Design, count: int) -> tuple[list[float], float]:
    """Shares of γ, α, β, N* and X(N*), and that of experiments without an established peak."""
    assert USL.peak is not None
    fitted = experiment(truth, design, count)
    true = (GAMMA, truth.alpha, truth.beta)
    shares = [
        covered(fitted, quantity, value)
        for quantity, value in zip(USL.parameters, true, strict=True)
    ]
    shares.append(covered(fitted, USL.peak.inverse, truth.kappa))
    shares.append(peak_throughput_share(fitted, truth))
    low, _ = interval(fitted, USL.peak.inverse, 0.95)
    return shares, float((low <= 0).mean())


def peak_throughput_share(fitted: Fitted, truth: Truth) -> float:
    """Share of the experiments that do not contradict the true X(N*)."""
    assert USL.peak is not None
    quantity, true = USL.peak.throughput, float(truth.throughput(truth.peak))
    peaked = (fitted.relaxed[:, 2] > 0) & (fitted.relaxed[:, 1] < 1)
    low, high = interval(fitted, quantity, 0.95, peaked)
    held = np.where(peaked, (low <= true) & (true <= high), False)
    without = np.flatnonzero(~peaked)
    if len(without):
        batch, reference = fitted.batch.rows(without), fitted.relaxed_squares[without]
        variance, df = batch.variance(reference, USL.size)
        most = reference + variance * stdtrit(df, 0.975) ** 2
        held[without] = least_squares_at(fitted, without, truth) <= most
    return float(held.mean())


def least_squares_at(fitted: Fitted, rows: NDArray[np.intp], truth: Truth) -> Floats:
    """Least sums of squares of some experiments with the true X(N*), all else fitted anew."""
    assert USL.peak is not None
    quantity = USL.peak.throughput
    points = fitted.batch.points.rows(rows)

    def curve(levels: Floats, v: Floats) -> tuple[Floats, Floats]:
        u, slopes = quantity.chart(v)
        log_x, own = USL.log_curve(levels, u)
        return log_x, np.matmul(own, slopes)

    least = np.full(len(rows), np.inf)
    for kappa in (truth.kappa / 100, truth.kappa / 10, truth.kappa, truth.kappa * 10):
        for alpha in (0.0, truth.alpha, 0.3):
            start = [np.log(truth.throughput(truth.peak)), alpha, np.log(kappa)]
            v = np.tile(np.array(start, float), (len(rows), 1))
            free = np.tile([False, True, True], (len(rows), 1))
            with np.errstate(all="ignore"):
                lower, upper = np.full(3, -np.inf), np.array([np.inf, 1, np.inf])
                _, squares = minimise(curve, points, v, free, lower, upper)
            least = np.minimum(least, squares)
    return least


def usl_line(truth: Truth, design: Design, shares: list[float], opened: float) -> str:
    """A row of the table."""
    levels = ("eight" if design.levels == EIGHT else "five") + (
        f", {design.trials}×" if design.trials > 1 else ""
    )
    cells = [f"{truth.alpha:g}", f"{truth.beta:g}", f"{truth.peak:.1f}", levels]
    cells += [f"{100 * design.noise:g} %", *(marked(share) for share in shares), percent(opened)]
    return f"| {' | '.join(cells)} |"


def faint(count: int) -> Iterator[str]:
    """A truth close to the bound."""
    yield from FAINT_TEXT.format(alpha=FAINT.alpha, beta=FAINT.beta, peak=FAINT.peak).splitlines()
    yield ""
    yield "| α | β | true N* | levels | noise | γ | α | β | N* | X(N*) | open |"
    yield "|-|-|-|-|-|-|-|-|-|-|-|"
    for design in DESIGNS:
        yield usl_line(FAINT, design, *usl_row(FAINT, design, count))
    yield ""


PRINTED_TEXT = """## What `fit` prints of a curve

The shipped choice of the model and the intervals that are printed with it: how often these contain
the truth. A parameter that is not printed counts as a printed 0; "no peak established" claims
nothing of where it lies. The β of the USL's variants has another meaning and is not judged.
*chosen* names the models that were chosen most. Two noises are irregular: one trial in ten slow by
Exp(0.5), and two levels 15 % apart.
"""


def printed(count: int) -> Iterator[str]:
    """Coverage of the printed parameters, whatever model was chosen."""
    yield from PRINTED_TEXT.splitlines()
    yield ""
    yield "| truth | levels | noise | α | β | N* | chosen |"
    yield "|-|-|-|-|-|-|-|"
    for family in families.TRUTHS:
        for levels in families.DESIGNS:
            for noise in families.NOISES:
                yield printed_line(family, levels, noise, count)
    yield ""


def printed_line(
    family: families.Family, levels: tuple[int, ...], noise: families.Noise, count: int
) -> str:
    """A row of the table."""
    shares, chosen = printed_shares(family, levels, noise, count)
    most = ", ".join(f"{name} {percent(n / count)}" for name, n in chosen.most_common(3))
    cells = [family.name, f"{len(levels)} to {levels[-1]}", noise.name]
    return f"| {' | '.join([*cells, *map(marked_printed, shares), most])} |"


def marked_printed(share: float) -> str:
    """A share, in bold below 90 %."""
    return percent(share) if share >= PRINTED_LEAST else f"**{percent(share)}**"


def printed_shares(
    family: families.Family, levels: tuple[int, ...], noise: families.Noise, count: int
) -> tuple[list[float], Counter[str]]:
    """Shares of experiments whose printed α, β and N* contain the truth, and what was chosen."""
    held = np.zeros(3)
    chosen: Counter[str] = Counter()
    for result in fit_many(families.measured(family, levels, noise, count)):
        chosen[result.chosen] += 1
        held += printed_holds(result, family)
    return (held / count).tolist(), chosen


def printed_holds(result: FitResult, family: families.Family) -> Floats:
    """Which of the printed α, β and N* contain the truth."""
    stated = result.stated
    # The variants of the USL have a β of another meaning.
    beta = None if result.chosen in ("usl_log", "usl_sqrt") else family.beta
    found = [
        holds(stated.parameters.get(name), true, missing=0.0)
        for name, true in (("alpha", family.alpha), ("beta", beta))
    ]
    # Without a peak in any model, "no peak established" claims nothing of where it lies.
    peak = stated.peak is None or holds(stated.peak.n, family.peak, missing=np.inf)
    return np.array([*found, peak], float)


def holds(figure: Estimate | None, true: float | None, missing: float) -> bool:
    """Does a printed figure contain the truth? One that is not printed stands for ``missing``."""
    if true is None:
        return True
    if figure is None:
        return true == missing
    assert figure.low is not None and figure.high is not None
    return figure.low <= true <= figure.high
