#!/usr/bin/env python3
"""How often intervals and bands hold what they promise; rebuilds docs/method/coverage.md.

make coverage
.venv/bin/python benches/coverage.py             # print it
.venv/bin/python benches/coverage.py --write     # and keep it
.venv/bin/python benches/coverage.py --experiments 200
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from concurve.columns import read_columns
from concurve.models import MODELS, fit_many, predict
from concurve.models.batch import stack
from concurve.models.curve import make_curve
from concurve.models.fit import Fitted, fit, interval
from concurve.models.model import Quantity
from concurve.models.mva import exact_mva
from concurve.models.solver import minimise
from concurve.models.usl import MODEL as USL
from concurve.stats.best import best_set
from concurve.stats.intervals import ratio_estimate

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "method" / "coverage.md"
CURVES = ROOT / "tests" / "models" / "curves"
SEED = 20261121
GAMMA = 1000.0
LOW, HIGH = 0.93, 0.97

Floats = NDArray[np.float64]


class Truth(NamedTuple):
    """True parameters of a USL."""

    alpha: float
    beta: float

    @property
    def kappa(self) -> float:
        """β/(1−α), of which the peak is a function."""
        return self.beta / (1 - self.alpha)

    @property
    def peak(self) -> float:
        """N*."""
        return float(self.kappa**-0.5)

    def throughput(self, n: Floats | float) -> Floats:
        """X(N)."""
        n = np.asarray(n, float)
        return GAMMA * n / (1 + self.alpha * (n - 1) + self.beta * n * (n - 1))


class Design(NamedTuple):
    """Levels, trials of each, and the relative standard deviation of a trial."""

    levels: tuple[int, ...]
    trials: int
    noise: float


TRUTHS = (Truth(0.03, 0.001), Truth(0.005, 0.01), Truth(0.2, 0.005))
EIGHT, FIVE = (1, 2, 4, 8, 12, 16, 24, 32), (1, 2, 4, 8, 16)
DESIGNS = tuple(
    Design(levels, trials, noise)
    for levels in (EIGHT, FIVE)
    for trials in (1, 5)
    for noise in (0.03, 0.08)
)
#: A coherency far too small to be seen at these levels.
FAINT = Truth(0.1, 0.0002)


def main() -> int:
    """Simulate, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--experiments", type=int, default=2000, help="of each row")
    options = parser.parse_args()
    lines = []
    for line in page(options.experiments):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def page(experiments: int) -> Iterator[str]:
    """The page, line by line."""
    yield from INTRODUCTION.format(experiments=experiments, most_alone=MOST_ALONE).splitlines()
    rows: list[float] = []
    yield from parameters(experiments, rows)
    yield from faint(experiments)
    yield from speedups(experiments, rows)
    yield from best_sets(experiments, rows)
    inside = sum(LOW <= share <= HIGH for share in rows)
    yield f"**{inside} of {len(rows)} shares of these tables lie within 93 to 97 %** (the lowest is"
    yield f"{percent(min(rows))}, the highest {percent(max(rows))}); the standard error of a share"
    own, best = ((0.95 * 0.05 / count) ** 0.5 for count in (experiments, 5 * experiments))
    yield f"is {percent(own)}, of a best set {percent(best)}."
    yield ""
    yield from others(experiments)
    yield from bands()


INTRODUCTION = """# Coverage: how often intervals hold what they promise

Made by `make coverage` (benches/coverage.py); nothing here is written by hand. Each share is that
of {experiments} simulated experiments whose nominal 95 % interval contains the truth.

Truth: USL with γ = 1000 and the α and β given; errors lognormal and independent. Levels: *eight*
is N = 1, 2, 4, 8, 12, 16, 24, 32; *five* is N = 1, 2, 4, 8, 16. "5×" has five trials a level.
*open* is the share of experiments where no peak is established (the upper limit of N* is infinite).

X(N*) has an interval only where the fitted β is above 0. An experiment without one is counted by
the same test: do its data contradict the true X(N*)? To leave it out would take away those that
miss the truth on one side, and raise the shares to as much as {most_alone} % where that happens.
"""

#: What the share of X(N*) comes to over experiments with a fitted peak alone, two standard errors
#: from the bound: (0.975 − 0.025) / 0.975.
MOST_ALONE = 97.4

FAINT_TEXT = """### Close to the bound β = 0

With α = {alpha:g}, β = {beta:g} (N* = {peak:.0f}) these levels can hardly tell β from 0. An
interval must then contain the estimate, which is 0, so that it can miss the truth on one side only:
up to 97.5 % are to be expected. Not counted in the sum below.
"""

OTHERS_TEXT = """## What other intervals would give

Eight and five levels, one trial each, 3 % noise. *Profile* is what concurve shows. *Wald t* is
estimate ± t(n−p)·se, *Wald z* the same with 1.96, *one-sided* with the one-sided quantile t₀.₉₅(n)
that some tools take by mistake; for N* these are delta-method intervals of log N*. *Profile χ²* has
the threshold of many observations. Wald's intervals of N* need an estimate of β above 0;
experiments without it count as missed.
"""

BANDS_TEXT = """## Prediction bands

From each curve the first k levels are used, for each k ≥ 5, and the farthest level at 1.3 to 2.05
times the greatest of them is predicted. *held* is the share of bands that contain the figure
measured there, *width* the median of high/low, *error* the mean |log| error of the prediction.
Beside them is the same for the USL's own curve with its t(n−p) band, and whether the least and the
greatest of the six models other than linear enclose the figure.

The published curves are those of tests/models/curves, where each names its source; five others
there have levels too far apart. They were looked at while the band's two constants were set (the
weight of evidence, 1/2, and the model error, 10 % per e-fold of distance). The made-up curves below
were not: those that served then had other seeds. Cases of one curve overlap, so that the shares are
less certain than their number of cases suggests.
"""

MADE_UP_TEXT = """
Made up, 40 curves of each kind at four sets of levels with 1, 3 or 5 % noise: *mva* closed networks
of 2 to 5 stations with think time (exact mean value analysis), *usl*, *knee* a knee of any
softness, *thrash* a network whose stations slow down quadratically under load, *smt* a line that
bends to a third of its slope at the number of cores and is flat from twice that on. The last two
are beyond every model here, and a bend that no measured level hints at cannot be predicted."""


def experiment(truth: Truth, design: Design, count: int) -> Fitted:
    """USL fitted to many simulated experiments."""
    seed = [*map(round, (1e6 * truth.alpha, 1e6 * truth.beta, 1e3 * design.noise))]
    rng = np.random.default_rng([SEED, *seed, design.trials, len(design.levels)])
    n = np.repeat(np.array(design.levels, float), design.trials)
    x = truth.throughput(n)
    curves = [
        make_curve(n, x * np.exp(rng.normal(0, design.noise, len(n))), absolute=False)
        for _ in range(count)
    ]
    return fit(USL, stack(curves))


def covered(fitted: Fitted, quantity: Quantity, truth: float) -> float:
    """Share of the experiments whose interval has the truth."""
    low, high = interval(fitted, quantity, 0.95)
    return float(((low <= truth) & (truth <= high)).mean())


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


def speedups(count: int, rows: list[float]) -> Iterator[str]:
    """Ratios of means, as every report shows them (stats/intervals.py)."""
    yield "## Speed-up"
    yield ""
    yield "Ratio of two means of trials (docs/method/estimates.md). One trial has no interval."
    yield ""
    yield "| true speed-up | noise | 5 trials each | 10 trials each | 5 and 20 |"
    yield "|-|-|-|-|-|"
    rng = np.random.default_rng(SEED)
    for truth in TRUTHS:
        factor = float(truth.throughput(16) / truth.throughput(1))
        for noise in (0.03, 0.08):
            shares = [
                speedup_share(rng, factor, noise, sizes, count)
                for sizes in ((5, 5), (10, 10), (5, 20))
            ]
            rows += shares
            cells = [f"{factor:.2f}", f"{100 * noise:g} %", *(marked(share) for share in shares)]
            yield f"| {' | '.join(cells)} |"
    yield ""


def speedup_share(
    rng: np.random.Generator, factor: float, noise: float, sizes: tuple[int, int], count: int
) -> float:
    """Share of the intervals of a speed-up that contain it."""
    held = 0
    for _ in range(count):
        top, bottom = (np.exp(rng.normal(0, noise, size)) for size in sizes)
        estimate = ratio_estimate((factor * top).tolist(), bottom.tolist())
        assert estimate is not None and estimate.low is not None and estimate.high is not None
        held += estimate.low <= factor <= estimate.high
    return held / count


BEST_TEXT = """## Best set

Share of the experiments whose set of settings that cannot be told from the best holds the best one
(docs/method/best-setting.md). Settings that are equally good are the worst case: the best is then
one of them. Five times as many experiments as above.
"""

BEST_OF_CURVES_TEXT = """
Where one setting is truly best, the set holds it more often still. For the throughput of the curves
above at the eight levels, with 3 and 8 % noise (mean size of the set in parentheses; not counted in
the sum below):
"""

#: Trials of each setting, in turn.
SIZES = {"5 trials each": (5,), "10 trials each": (10,), "5 and 20": (5, 20)}


def best_sets(count: int, rows: list[float]) -> Iterator[str]:
    """Equal settings, then those of the curves."""
    yield from BEST_TEXT.splitlines()
    yield ""
    yield f"| settings | noise | {' | '.join(SIZES)} |"
    yield "|-|-|-|-|-|"
    rng = np.random.default_rng([SEED, 1])
    for settings in (2, 4, 8):
        for noise in (0.03, 0.08):
            found = [
                best_share(rng, np.ones(settings), noise, sizes, 5 * count)[0]
                for sizes in SIZES.values()
            ]
            rows += found
            cells = [f"{settings} equal", f"{100 * noise:g} %", *map(marked, found)]
            yield f"| {' | '.join(cells)} |"
    yield from BEST_OF_CURVES_TEXT.splitlines()
    yield ""
    yield f"| α | β | best of the eight | noise | {' | '.join(SIZES)} |"
    yield "|-|-|-|-|-|-|-|"
    for truth in TRUTHS:
        x = truth.throughput(np.array(EIGHT, float))
        for noise in (0.03, 0.08):
            shares = [best_share(rng, x, noise, sizes, count) for sizes in SIZES.values()]
            cells = [f"{truth.alpha:g}", f"{truth.beta:g}", f"{EIGHT[int(x.argmax())]}"]
            cells += [f"{100 * noise:g} %"]
            cells += [f"{percent(share)} ({size:.1f})" for share, size in shares]
            yield f"| {' | '.join(cells)} |"
    yield ""


def best_share(
    rng: np.random.Generator, means: Floats, noise: float, sizes: tuple[int, ...], count: int
) -> tuple[float, float]:
    """Share of the sets that hold the best setting (the first of equal ones), and their mean
    size."""
    best, held, size = int(means.argmax()), 0, 0
    for _ in range(count):
        columns = [
            (mean * np.exp(rng.normal(0, noise, sizes[number % len(sizes)]))).tolist()
            for number, mean in enumerate(means)
        ]
        members = best_set(columns, lower_is_better=False).members
        held += best in members
        size += len(members)
    return held / count, size / count


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


# -- predictions ------------------------------------------------------------------------------

Case = tuple[list[float], list[float], float, float]
"""Levels and throughputs that are known, and the level and throughput to be predicted."""


def bands() -> Iterator[str]:
    """Bands of predictions at 1.3 to 2.05 times the greatest level used."""
    yield from BANDS_TEXT.splitlines()
    yield ""
    yield "| curves | cases | held | width | error | USL held | width | error | min–max held |"
    yield "|-|-|-|-|-|-|-|-|-|"
    published = {file.stem: read_curve(file) for file in sorted(CURVES.glob("*.csv"))}
    yield from band_table(published, published=True)
    made_up: dict[str, list[tuple[list[float], list[float]]]] = made_up_curves()
    yield from band_table(made_up, published=False)
    yield from MADE_UP_TEXT.splitlines()


def band_table(
    curves: dict[str, list[tuple[list[float], list[float]]]], published: bool
) -> Iterator[str]:
    """A row a group, and one of all."""
    everything = []
    by_group = []
    for name, group in curves.items():
        found = [case for n, x in group for case in cases(n, x)]
        if not found:
            continue
        results = judged(found)
        everything.append(results)
        by_group.append(results[:, [0, 3, 6]].mean(axis=0))
        yield band_line(name, results)
    total = np.concatenate(everything)
    yield band_line("**all published**" if published else "**all made up**", total)
    if published:
        mean = np.mean(by_group, axis=0)
        yield (
            f"| mean over the published curves | {len(by_group)} curves | {percent(mean[0])} "
            f"| | | {percent(mean[1])} | | | {percent(mean[2])} |"
        )


def band_line(name: str, results: Floats) -> str:
    """A row: means, but medians of widths."""
    held, own_held, minmax = (percent(float(results[:, i].mean())) for i in (0, 3, 6))
    width, own_width = (f"{np.median(results[:, i]):.2f}" for i in (1, 4))
    error, own_error = (percent(float(results[:, i].mean())) for i in (2, 5))
    return (
        f"| {name} | {len(results)} | {held} | {width} | {error} | {own_held} | {own_width} "
        f"| {own_error} | {minmax} |"
    )


def judged(found: list[Case]) -> Floats:
    """A row a case: held, width, error; the same of the USL alone; held by min and max."""
    fits = fit_many([(n, x) for n, x, _, _ in found])
    rows = []
    for (_, _, target, figure), result in zip(found, fits, strict=True):
        band = predict(result, [target])[0].throughput
        assert band.low is not None and band.high is not None
        logs = {}
        for item in result.models:
            model_u = np.array([item.coordinates])
            with np.errstate(all="ignore"):
                log_x, slopes = MODELS[item.name].log_curve(np.array([[target]]), model_u)
            logs[item.name] = (float(log_x[0, 0]), slopes[0, 0], item)
        own, slope, item = logs["usl"]
        covariance = np.array(item.covariance).reshape(3, 3)
        variance = float(slope @ covariance @ slope) + item.residual_deviation**2
        half = float(stdtrit(item.df, 0.975)) * variance**0.5
        six = [value for name, (value, _, _) in logs.items() if name != "linear"]
        six = [value for value in six if np.isfinite(value)]
        truth = float(np.log(figure))
        rows.append(
            [
                band.low <= figure <= band.high,
                band.high / band.low,
                abs(np.log(band.value) - truth),
                abs(own - truth) <= half,
                np.exp(min(2 * half, 50)),
                abs(own - truth),
                min(six) <= truth <= max(six),
            ]
        )
    return np.array(rows, float)


def cases(n: list[float], x: list[float]) -> Iterator[Case]:
    """Every way to cut a curve and predict what was cut off."""
    for k in range(5, len(n)):
        ahead = [i for i in range(k, len(n)) if 1.3 * n[k - 1] <= n[i] <= 2.05 * n[k - 1]]
        if ahead:
            yield n[:k], x[:k], n[ahead[-1]], x[ahead[-1]]


def read_curve(file: Path) -> list[tuple[list[float], list[float]]]:
    """A published curve; times are turned into throughput."""
    lines = file.read_text(encoding="utf-8").splitlines()
    heading = next(line for line in lines if not line.startswith("#")).split(",")
    columns = read_columns(file, heading)
    n, x = columns[heading[0]], columns[heading[1]]
    return [(n, [1 / value for value in x] if heading[1] == "seconds" else x)]


def made_up_curves() -> dict[str, list[tuple[list[float], list[float]]]]:
    """Curves of five kinds, 40 of each."""
    rng = np.random.default_rng(SEED)
    grids = ([1, 2, 4, 8, 16, 32, 64], [1, 2, 3, 4, 6, 8, 12, 16, 24, 32])
    grids += ([1, 2, 4, 6, 8, 10, 12, 16, 20, 24], list(range(1, 17)))
    curves: dict[str, list[tuple[list[float], list[float]]]] = {}
    for number in range(40):
        n = np.array(grids[number % 4], float)
        noise = rng.choice([0.01, 0.03, 0.05])
        for kind, x in truths(rng, n).items():
            noisy = x * np.exp(rng.normal(0, noise, len(n)))
            curves.setdefault(kind, []).append((n.tolist(), noisy.tolist()))
    return curves


def truths(rng: np.random.Generator, n: Floats) -> dict[str, Floats]:
    """One curve of each kind."""
    top = int(n[-1])
    demands = rng.dirichlet(np.ones(rng.integers(2, 6)))
    network = exact_mva(demands.tolist(), float(rng.choice([0, 1, 5, 20])), top).throughput
    mva = network[n.astype(int) - 1]
    alpha, beta = rng.choice([0, 0.01, 0.05, 0.2]), rng.choice([0.0001, 0.001, 0.005])
    cap, softness = rng.uniform(2, 20), float(rng.choice([2, 4, 8, 50]))
    cores, onset = rng.choice([4, 8, 16]), rng.uniform(0.4, 2) * top
    bent = np.where(n <= 2 * cores, cores + 0.3 * (n - cores), 1.3 * cores)
    return {
        "mva": mva,
        "usl": n / (1 + alpha * (n - 1) + beta * n * (n - 1)),
        "knee": (n**-softness + cap**-softness) ** (-1 / softness),
        "thrash": mva / (1 + 0.5 * (n / onset) ** 2),
        "smt": np.where(n <= cores, n, bent),
    }


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.1f} %"


def marked(share: float) -> str:
    """A share, in bold outside of 93 to 97 %."""
    return percent(share) if LOW <= share <= HIGH else f"**{percent(share)}**"


if __name__ == "__main__":
    sys.exit(main())
