"""The findings of scaling models on measured numbers."""

from __future__ import annotations

import msgspec

from concurve.estimate import Estimate


class PeakEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Where throughput is greatest from the lowest level measured on, and how great it is there:
    at the lowest level where it falls from there on. The throughput has no interval where that of
    ``n`` begins at the lowest level.

    Where the interval of β reaches 0 no peak is ``established``: the upper limit of ``n`` is
    infinite. A peak at ``n`` beyond the measured levels is an extrapolation.
    """

    n: Estimate
    throughput: Estimate
    established: bool


class ModelFit(msgspec.Struct, frozen=True, kw_only=True):
    """One model fitted to one curve.

    ``parameters`` have profile-likelihood intervals, an infinite end where the data set none.
    ``standard_errors`` come from the Jacobian; a parameter at its bound has none.
    ``residual_deviation`` is that of a trial about the curve: relative, or in the unit of
    throughput with absolute errors; ``df`` its degrees of freedom. ``aicc`` is ``None`` with too
    few observations for the model (n ≤ k+1). ``weight`` is the model's Akaike weight.
    ``last_left_out`` is the relative error at the greatest level when it is left out of the fit.
    ``durbin_watson`` is the statistic of the residuals along N (``None`` for exact fits) and
    ``chance_of_order`` its p-value against runs of like sign. ``chance_of_misfit`` is the p-value
    that the levels' centres miss the curve as far as the trials' spread lets expect, ``None``
    without replicates. With one level on its cap (``levels_on_cap``) a model has a share in
    predictions, but is not chosen: a plateau takes two. ``superlinear``: the whole interval
    of α is below 0. ``coordinates`` and ``covariance`` (of the coordinates, row by row)
    are for predictions. ``title`` is the name of the model for people, ``formula`` its X(N).
    """

    name: str
    title: str
    formula: str
    parameters: dict[str, Estimate]
    standard_errors: dict[str, float | None]
    peak: PeakEstimate | None
    residual_deviation: float
    df: int
    log_likelihood: float
    aicc: float | None
    weight: float
    last_left_out: float | None
    durbin_watson: float | None
    chance_of_order: float
    chance_of_misfit: float | None
    levels_on_cap: int | None
    superlinear: bool
    notes: tuple[str, ...]
    coordinates: tuple[float, ...]
    covariance: tuple[float, ...]


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """Throughput at ``n``: within the measured levels with the interval of the measurements,
    beyond them as expected of a measurement there, with a band that covers model error."""

    n: float
    throughput: Estimate
    warning: str | None = None


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """What is printed of a curve: the chosen model's figures with intervals over every model that
    the measurements do not contradict (``models``, by name).

    ``parameters`` have β = 0 where the chosen model has none. ``peak`` is ``None`` where none of
    these models has a peak; it is ``established`` only where all of them have one.
    """

    parameters: dict[str, Estimate]
    peak: PeakEstimate | None
    models: tuple[str, ...]


class Misfit(msgspec.Struct, frozen=True, kw_only=True):
    """No model describes the curve: at level ``n`` the throughput ``measured`` is furthest from
    that of the chosen model, ``fitted``. ``pieces``, where two describe the curve better: the last
    level of the first, the first of the second, and the powers of N by which they grow."""

    n: float
    measured: float
    fitted: float
    pieces: tuple[float, float, float, float] | None


class FitResult(msgspec.Struct, frozen=True, kw_only=True):
    """All models on one curve.

    ``levels`` are the measured numbers of workers with the ``throughput`` that was fitted there,
    the ``centres`` of their trials with intervals, and the number of ``trials``. The variance of
    what was fitted at a level is that of a trial about the curve over its entry in ``weights``: its
    number of trials, where these spread alike at all levels.
    ``criterion`` names what ``chosen`` and the weights rest on: ``aicc``, or ``gcv``
    where there are too few observations for it. ``observations`` says whether it counts trials
    or, if no model describes the levels, the levels. ``left_out`` gives, by model, the
    reason. ``stated`` is what is printed. With a ``misfit`` no model describes the curve, and its
    limits, its peak and predictions beyond its levels are not told. ``answers`` and ``warnings``
    are plain sentences.
    """

    levels: tuple[float, ...]
    throughput: tuple[float, ...]
    centres: tuple[Estimate, ...]
    weights: tuple[float, ...]
    trials: int
    absolute: bool
    error_model: str
    confidence: float
    models: tuple[ModelFit, ...]
    chosen: str
    criterion: str
    observations: str
    left_out: dict[str, str]
    stated: Stated
    answers: tuple[str, ...]
    warnings: tuple[str, ...]
    misfit: Misfit | None = None

    def model(self, name: str) -> ModelFit:
        """A fitted model by its name.

        Raises:
            KeyError: it was left out, or does not exist.
        """
        for item in self.models:
            if item.name == name:
                return item
        raise KeyError(name)

    @property
    def best(self) -> ModelFit:
        """The chosen model."""
        return self.model(self.chosen)


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted curve at ``n`` workers: the chosen model's ``value`` up to the greatest level
    measured, with the interval of the measurements; ``beyond`` it the value expected over all
    models, with the band of a prediction."""

    n: float
    value: float
    low: float
    high: float
    beyond: bool = False


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What to expect at ``n`` workers, in the terms of the column that was fitted."""

    n: float
    figure: Estimate
    warning: str = ""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """Scaling models of measured numbers, in the terms of their columns.

    ``n`` and ``values`` are the trials as they stand in the columns ``n_name`` and ``x_name``;
    ``is_time``: these are times of a fixed piece of work, of which throughput is the inverse.
    ``chosen`` is the curve of the chosen model as pairs of n and value, which is NaN where it has
    none, ``expected`` what is expected over all models along the same axis. ``notes`` say how the
    numbers were read, ``told`` what is to be known before the result is read: rows left out,
    numbers that look like times.
    """

    n: tuple[float, ...]
    values: tuple[float, ...]
    n_name: str
    x_name: str
    is_time: bool
    result: FitResult
    expectations: tuple[Expectation, ...]
    chosen: tuple[tuple[float, float], ...]
    expected: tuple[Expectation, ...]
    notes: tuple[str, ...]
    told: tuple[str, ...] = ()
