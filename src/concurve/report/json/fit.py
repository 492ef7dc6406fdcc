"""A fit as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from concurve.estimate import Estimate
from concurve.findings.fit import Expectation, Fit, FitResult, ModelFit

FORMAT = 1


def to_json(fit: Fit) -> bytes:
    """The fit as JSON; what is infinite or unknown is ``null``."""
    found = as_dict(fit.result, fit.n_name, fit.x_name, fit.expectations, fit.notes)
    return msgspec.json.encode(found | {"of": "time" if fit.is_time else "throughput"})


def as_dict(
    result: FitResult,
    n_name: str,
    x_name: str,
    expectations: Sequence[Expectation],
    notes: Sequence[str],
) -> dict[str, Any]:
    """The fit of a throughput in the form of its JSON."""
    return {
        "format": FORMAT,
        "of": "throughput",
        "columns": {"n": n_name, "x": x_name},
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
        "predictions": [_expectation(item) for item in expectations],
        "answers": result.answers,
        "warnings": result.warnings,
        "notes": notes,
    }


def _model(item: ModelFit) -> dict[str, Any]:
    peak = item.peak and {
        "n": _interval(item.peak.n),
        "throughput": _interval(item.peak.throughput),
        "established": item.peak.established,
    }
    return {
        "name": item.name,
        "formula": item.formula,
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


def _expectation(item: Expectation) -> dict[str, Any]:
    entry: dict[str, Any] = {"n": item.n, **_interval(item.figure)}
    return entry | ({"warning": item.warning} if item.warning else {})


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
