"""A fit as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from concurve.estimate import Estimate
from concurve.fields import Positive, about
from concurve.findings.fit import Expectation, Fit, FitResult, ModelFit

FORMAT = 1

Name = Annotated[str, about("Of a scaling model, such as usl.", minLength=1)]
AboveZero = Annotated[float, about(exclusiveMinimum=0)]


class ColumnNames(msgspec.Struct, frozen=True):
    """What the columns are called: workers, and what was measured."""

    n: str
    x: str


class Interval(msgspec.Struct, frozen=True):
    """A figure with its interval."""

    value: float | None
    low: float | None
    high: float | None


class Peak(msgspec.Struct, frozen=True):
    """Where throughput is greatest, and how great it is there."""

    n: Interval
    throughput: Interval
    established: Annotated[
        bool, about("False where the interval of beta reaches 0: n.high is null then.")
    ]


class ModelEntry(msgspec.Struct, frozen=True):
    """A scaling model fitted to the numbers."""

    name: Name
    formula: str
    parameters: Annotated[
        dict[str, Interval],
        about(
            "gamma and cap in the unit of throughput, alpha and beta without one.",
            required=["gamma"],
            propertyNames={"enum": ["gamma", "alpha", "beta", "cap"]},
        ),
    ]
    standard_errors: Annotated[
        dict[str, float | None], about("From the Jacobian; null for a parameter at its bound.")
    ]
    peak: Peak | None
    aicc: Annotated[float | None, about("null with too few observations for the model.")]
    weight: Annotated[float, about(minimum=0, maximum=1)]
    residual_deviation: Annotated[float, about(minimum=0)]
    df: Positive
    last_left_out: Annotated[
        float | None,
        about("Relative error at the greatest level when it is left out of the fit."),
    ]
    durbin_watson: float | None
    chance_of_order: float
    chance_of_misfit: float | None
    superlinear: Annotated[bool, about("The whole interval of alpha is below 0.")]
    notes: tuple[str, ...]


class LeftOutModel(msgspec.Struct, frozen=True):
    """A model that was not fitted, and why."""

    name: Name
    reason: str


class PredictionEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to expect at ``n`` workers."""

    n: AboveZero
    value: float | None
    low: float | None
    high: float | None
    warning: str = ""


class FitExport(msgspec.Struct, frozen=True, kw_only=True):
    """Written by ``concurve fit --json``. Numbers are always finite; null stands for what is
    infinite (an upper limit that the data do not set, a cap that is not reached) or not known."""

    format: Annotated[int, about(const=FORMAT)]
    of: Annotated[
        Literal["throughput", "time"],
        about(
            "What the second column holds, and predictions are of. Parameters are always of "
            "throughput: with times, of 1/time."
        ),
    ]
    columns: ColumnNames
    levels: Annotated[tuple[AboveZero, ...], about(minItems=3)]
    throughput: Annotated[
        tuple[AboveZero, ...],
        about(
            "Of each level: the median of its trials where all levels have three or more, else "
            "their mean, geometric where errors are relative."
        ),
    ]
    trials: Annotated[int, about("Rows; those of the same N are replicates.", minimum=3)]
    error_model: str
    absolute: bool
    confidence: Annotated[float, about(exclusiveMinimum=0, exclusiveMaximum=1)]
    criterion: Annotated[str, about("The criterion of the weights.", enum=["aicc", "gcv"])]
    observations: Annotated[str, about("What the criterion counts.", enum=["trials", "levels"])]
    models: Annotated[list[ModelEntry], about(minItems=1)]
    left_out: list[LeftOutModel]
    chosen: Name
    described: Annotated[
        bool,
        about(
            "False where no model describes the numbers: peaks and parameters then say nothing, "
            "and nothing is predicted beyond the levels."
        ),
    ]
    predictions: list[PredictionEntry]
    answers: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def to_json(fit: Fit) -> bytes:
    """The fit as JSON, as ``schema/fit.schema.json`` describes it."""
    found = fit_export(fit.result, fit.n_name, fit.x_name, fit.expectations, fit.notes)
    found = msgspec.structs.replace(
        found,
        of="time" if fit.is_time else "throughput",
        warnings=(*fit.told, *found.warnings),
    )
    return msgspec.json.encode(found)


def fit_export(
    result: FitResult,
    n_name: str,
    x_name: str,
    expectations: Sequence[Expectation],
    notes: Sequence[str],
) -> FitExport:
    """The fit of a throughput as it is exported."""
    return FitExport(
        format=FORMAT,
        of="throughput",
        columns=ColumnNames(n_name, x_name),
        levels=result.levels,
        throughput=result.throughput,
        trials=result.trials,
        error_model=result.error_model,
        absolute=result.absolute,
        confidence=result.confidence,
        criterion=result.criterion,
        observations=result.observations,
        models=[_model(item) for item in result.models],
        left_out=[LeftOutModel(name, reason) for name, reason in result.left_out.items()],
        chosen=result.chosen,
        described=result.misfit is None,
        predictions=[_expectation(item) for item in expectations],
        answers=result.answers,
        warnings=result.warnings,
        notes=tuple(notes),
    )


def _model(item: ModelFit) -> ModelEntry:
    peak = item.peak
    return ModelEntry(
        name=item.name,
        formula=item.formula,
        parameters={name: _interval(figure) for name, figure in item.parameters.items()},
        standard_errors=item.standard_errors,
        peak=Peak(_interval(peak.n), _interval(peak.throughput), peak.established)
        if peak
        else None,
        aicc=item.aicc,
        weight=item.weight,
        residual_deviation=item.residual_deviation,
        df=item.df,
        last_left_out=item.last_left_out,
        durbin_watson=item.durbin_watson,
        chance_of_order=item.chance_of_order,
        chance_of_misfit=item.chance_of_misfit,
        superlinear=item.superlinear,
        notes=item.notes,
    )


def _interval(figure: Estimate) -> Interval:
    return Interval(_finite(figure.value), _finite(figure.low), _finite(figure.high))


def _expectation(item: Expectation) -> PredictionEntry:
    figure = _interval(item.figure)
    return PredictionEntry(item.n, figure.value, figure.low, figure.high, item.warning)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
