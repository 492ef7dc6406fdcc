"""A fit as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from concurve.estimate import Estimate
from concurve.models import MODELS, FitResult, ModelFit, Prediction
from concurve.report.fit.subject import Subject

FORMAT = 1


def to_json(result: FitResult, predictions: Sequence[Prediction], subject: Subject) -> bytes:
    """The fit as JSON; what is infinite or unknown is ``null``."""
    return msgspec.json.encode(as_dict(result, predictions, subject))


def as_dict(
    result: FitResult, predictions: Sequence[Prediction], subject: Subject
) -> dict[str, Any]:
    """The fit in the form of its JSON."""
    return {
        "format": FORMAT,
        "of": "time" if subject.time else "throughput",
        "columns": {"n": subject.n_name, "x": subject.x_name},
        "levels": result.levels,
        "throughput": result.throughput,
        "trials": result.trials,
        "error_model": result.error_model,
        "absolute": result.absolute,
        "confidence": result.confidence,
        "criterion": result.criterion,
        "observations": result.observations,
        "models": [_model(item) for item in result.models],
        "left_out": [{"name": k, "reason": v} for k, v in result.left_out.items()],
        "chosen": result.chosen,
        "predictions": [_prediction(item, subject) for item in predictions],
        "answers": result.answers,
        "warnings": result.warnings,
        "notes": subject.notes(result),
    }


def _model(item: ModelFit) -> dict[str, Any]:
    peak = item.peak and {
        "n": _interval(item.peak.n),
        "throughput": _interval(item.peak.throughput),
        "established": item.peak.established,
    }
    return {
        "name": item.name,
        "formula": MODELS[item.name].formula,
        "parameters": {name: _interval(figure) for name, figure in item.parameters.items()},
        "standard_errors": item.standard_errors,
        "peak": peak,
        "aicc": item.aicc,
        "weight": item.weight,
        "residual_deviation": item.residual_deviation,
        "df": item.df,
        "last_left_out": item.last_left_out,
        "durbin_watson": item.durbin_watson,
        "chance_of_order": item.chance_of_order,
        "chance_of_misfit": item.chance_of_misfit,
        "superlinear": item.superlinear,
        "notes": item.notes,
    }


def _interval(figure: Estimate) -> dict[str, float | None]:
    return {
        "value": _finite(figure.value),
        "low": _finite(figure.low),
        "high": _finite(figure.high),
    }


def _prediction(item: Prediction, subject: Subject) -> dict[str, Any]:
    value, low, high = subject.values(item.throughput)
    entry: dict[str, Any] = {"n": item.n}
    entry |= {"value": _finite(value), "low": _finite(low), "high": _finite(high)}
    return entry | ({"warning": item.warning} if item.warning else {})


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
