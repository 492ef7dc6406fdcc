"""The history of a study on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.cells import cell_len
from rich.text import Text

from concurve.estimate import Estimate
from concurve.findings.history import CellHistory, History, HistoryPoint
from concurve.report import format as fmt
from concurve.report.prose import wrapped
from concurve.terms import Level

FORMAT = 1

_STYLES = {"faster": "green", "slower": "red", "changed": "yellow", "": ""}
#: With more cells than this, those without a change are told in one line each.
_CELLS_FULL = 6


def lines(history: History, width: int) -> Iterator[Text]:
    """The lines of a history, none wider than ``width`` cells."""
    info = history.indicator
    title = f"{history.study}: {info.label or info.name} over {fmt.count(history.runs, 'run')}"
    yield from wrapped(Text(fmt.clean(title), "bold"), width)
    for cell in history.cells:
        yield Text()
        yield from _cell(history, cell, width)
    if any(point.verdict for cell in history.cells for point in cell.points):
        yield Text()
        text = (
            "< marks the first run after a change, with the new level over the old one and its "
            "95 % interval; 5 % of the changes shown may be false."
        )
        yield from wrapped(Text(text, "dim"), width)
    for warning in history.warnings:
        yield from wrapped(Text(f"! {fmt.clean(warning)}", "yellow"), width)


def _cell(history: History, cell: CellHistory, width: int) -> Iterator[Text]:
    name = fmt.setting({name: cell.parameters[name] for name in history.factors})
    if name:
        yield from wrapped(Text(name, "bold"), width)
    points = cell.points
    scale = fmt.scale_for([p.figure.value for p in points], history.indicator.unit)
    changed = any(point.verdict for point in points)
    if len(history.cells) > _CELLS_FULL and not changed and points:
        latest = fmt.estimate(points[-1].figure, scale).text
        yield from wrapped(Text(f"{cell.note or 'no change'}; latest {latest}", "dim"), width)
        return
    shown = [fmt.estimate(point.figure, scale) for point in points]
    size = max((cell_len(item.text) for item in shown), default=0)
    for point, item in zip(points, shown, strict=True):
        row = f"  {point.started[:16].replace('T', ' ')}  {point.run}  {item.text:>{size}}"
        yield from _row(row, _marker(point), _STYLES[point.verdict], width)
    if cell.note or not changed:
        yield from wrapped(Text(cell.note or "no change", "dim"), width, indent="  ")


def _row(row: str, marker: str, style: str, width: int) -> Iterator[Text]:
    """A row with its marker, on a line of its own where there is no room for both."""
    if not marker or cell_len(row) + cell_len(marker) + 2 <= width:
        yield Text(f"{row}  {marker}".rstrip()[:width], style)
    else:
        yield Text(row[:width], style)
        yield from wrapped(Text(marker, style), width, indent="    ")


def _marker(point: HistoryPoint) -> str:
    if not point.verdict:
        return ""
    if point.change is None:
        return f"< {point.verdict}"
    shown = fmt.estimate(point.change)
    span = f" ({shown.span})" if shown.span else ""
    return f"< {point.verdict}: {shown.value}×{span}"


# -- JSON -------------------------------------------------------------------------------------


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
