"""Bands of predictions, on published curves and on made-up ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from concurve.columns import read_columns
from concurve.models import MODELS, fit_many, predict
from concurve.models.predict import beyond_the_curve
from coverage_tables import families
from coverage_tables.made_up import made_up_curves
from coverage_tables.simulated import Floats, percent

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

CURVES = Path(__file__).resolve().parents[2] / "tests" / "models" / "curves"

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
        if beyond_the_curve(result, [target]):
            continue  # no band is given, so none is judged
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


TWICE_TEXT = """
### At twice the greatest level, by family

The band that `fit --predict` prints at twice the greatest level, against the figure measured there
later (the median of as many trials). Levels and noises are those of *What `fit` prints*.
"""


def twice(count: int) -> Iterator[str]:
    """Bands at twice the greatest level."""
    yield from _heading(TWICE_TEXT)
    for family in families.PREDICTED:
        found = [twice_of(family, noise, count) for noise in families.NOISES]
        shares = [percent(float(np.mean(held))) for held, _ in found]
        width = float(np.median(np.concatenate([widths for _, widths in found])))
        yield f"| {family.name} | {' | '.join(shares)} | {width:.2f} |"


def twice_of(family: families.Family, noise: families.Noise, count: int) -> tuple[Floats, Floats]:
    """Over all levels: which bands held the figure measured later, and their widths high/low."""
    held, widths = [], []
    for levels in families.DESIGNS:
        far = 2 * levels[-1]
        later = families.measured_later(family, far, noise, count)
        curves = families.measured(family, levels, noise, count)
        for result, figure in zip(fit_many(curves), later, strict=True):
            if beyond_the_curve(result, [far]):
                continue  # no band is given, so none is judged
            band = predict(result, [far])[0].throughput
            assert band.low is not None and band.high is not None
            held.append(band.low <= figure <= band.high)
            widths.append(band.high / band.low)
    return np.array(held, float), np.array(widths)


INSIDE_TEXT = """
### Within the measured levels

Two shares for each noise: how often the band that is drawn within the measured levels holds the
true curve at a level, and half-way between two levels (on the logarithm). *width* is the median of
high/low, between the levels.
"""


def within_levels(count: int) -> Iterator[str]:
    """Bands at the measured levels and between them."""
    yield from _heading(INSIDE_TEXT)
    for family in families.PREDICTED:
        found = [within_of(family, noise, count) for noise in families.NOISES]
        shares = [f"{percent(at)} / {percent(between)}" for at, between, _ in found]
        width = float(np.median([width for _, _, width in found]))
        yield f"| {family.name} | {' | '.join(shares)} | {width:.2f} |"


def within_of(
    family: families.Family, noise: families.Noise, count: int
) -> tuple[float, float, float]:
    """Over all designs: how often the band held the true curve at the levels and between them, and
    its median width between them."""
    at, between, widths = [], [], []
    centre = families.stated(noise)
    for levels in families.DESIGNS:
        ends = np.array(levels, float)
        n = np.concatenate([ends, np.sqrt(ends[1:] * ends[:-1])])
        true = family.throughput(n) * centre
        for result in fit_many(families.measured(family, levels, noise, count)):
            bands = [item.throughput for item in predict(result, n)]
            low = np.array([band.low for band in bands], float)
            high = np.array([band.high for band in bands], float)
            held = (low <= true) & (true <= high)
            at += held[: len(ends)].tolist()
            between += held[len(ends) :].tolist()
            widths += (high / low)[len(ends) :].tolist()
    return float(np.mean(at)), float(np.mean(between)), float(np.median(widths))


def _heading(text: str) -> Iterator[str]:
    """A text and the head of its table, with a column for each noise."""
    yield from text.splitlines()
    yield ""
    yield f"| family | {' | '.join(noise.name for noise in families.NOISES)} | width |"
    yield f"|-|{'-|' * len(families.NOISES)}-|"
