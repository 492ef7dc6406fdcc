"""The history of a study, as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from concurve.estimate import Estimate
from concurve.findings.history import History, HistoryPoint
from concurve.terms import Level

FORMAT = 1


class _Point(msgspec.Struct, frozen=True, omit_defaults=True):
    run: str
    started: str
    version: str
    value: float
    low: float | None = None
    high: float | None = None
    change: dict[str, Any] | None = None


class _Cell(msgspec.Struct, frozen=True):
    parameters: dict[str, Level]
    points: list[_Point]
    note: str


def to_json(history: History) -> bytes:
    """The history as JSON."""
    info = history.indicator
    return msgspec.json.encode(
        {
            "format": FORMAT,
            "study": history.study,
            "indicator": {"name": info.name, "unit": info.unit, "better": info.better},
            "cells": [
                _Cell(cell.parameters, [_point(point) for point in cell.points], cell.note)
                for cell in history.cells
            ],
            "warnings": history.warnings,
        }
    )


def _point(point: HistoryPoint) -> _Point:
    figure = point.figure
    return _Point(
        point.run,
        point.started,
        point.version,
        figure.value,
        figure.low,
        figure.high,
        {"verdict": point.verdict, "ratio": _ratio(point.change)} if point.verdict else None,
    )


def _ratio(change: Estimate | None) -> dict[str, float | None] | None:
    if change is None:
        return None
    return {"value": change.value, "low": change.low, "high": change.high}
