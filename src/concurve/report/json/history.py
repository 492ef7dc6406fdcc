"""The history of a study, as JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec

from concurve.estimate import Estimate
from concurve.fields import about
from concurve.findings.history import CellHistory, History, HistoryPoint
from concurve.terms import Level

FORMAT = 1


class ChangeRatio(msgspec.Struct, frozen=True):
    """The new level over the former one, with its 95 % interval; null where it has none."""

    value: float
    low: float | None
    high: float | None


class ChangeHere(msgspec.Struct, frozen=True):
    """A change point."""

    verdict: Annotated[str, about(enum=["faster", "slower", "changed"])]
    ratio: Annotated[ChangeRatio | None, about("Null where a figure is not above 0.")]


class HistoryPointExport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The figure of a cell in one run."""

    run: str
    started: str
    version: str
    value: float
    low: Annotated[float | None, about("Lower bound of the 95 % interval.")] = None
    high: float | None = None
    change: Annotated[ChangeHere | None, about("Where the series has a change point.")] = None


class CellHistoryExport(msgspec.Struct, frozen=True):
    """A cell over the runs, the oldest first."""

    parameters: dict[str, Level]
    points: list[HistoryPointExport]
    note: Annotated[str, about("Why there are no change points; may be empty.")]


class HistoryIndicator(msgspec.Struct, frozen=True):
    """The indicator whose history it is."""

    name: str
    unit: str
    better: Annotated[str, about(enum=["lower", "higher", "neither"])]


class HistoryExport(msgspec.Struct, frozen=True):
    """Written by ``concurve history --json``."""

    format: Annotated[int, about(const=FORMAT)]
    study: str
    indicator: HistoryIndicator
    cells: list[CellHistoryExport]
    warnings: tuple[str, ...]


def to_json(history: History) -> bytes:
    """The history as JSON, as ``schema/history.schema.json`` describes it."""
    info = history.indicator
    return msgspec.json.encode(
        HistoryExport(
            FORMAT,
            history.study,
            HistoryIndicator(info.name, info.unit, info.better),
            [_cell(cell) for cell in history.cells],
            history.warnings,
        )
    )


def _cell(cell: CellHistory) -> CellHistoryExport:
    return CellHistoryExport(cell.parameters, [_point(point) for point in cell.points], cell.note)


def _point(point: HistoryPoint) -> HistoryPointExport:
    figure = point.figure
    change = ChangeHere(point.verdict, _ratio(point.change)) if point.verdict else None
    return HistoryPointExport(
        point.run, point.started, point.version, figure.value, figure.low, figure.high, change
    )


def _ratio(change: Estimate | None) -> ChangeRatio | None:
    return None if change is None else ChangeRatio(change.value, change.low, change.high)
