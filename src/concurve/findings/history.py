"""The findings over the runs of a study in order of time."""

from __future__ import annotations

from typing import Literal

import msgspec

from concurve.estimate import Estimate
from concurve.terms import IndicatorInfo, Level

Step = Literal["", "faster", "slower", "changed"]


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A cell's figure in one run. If the series has a change point here, ``change`` is the ratio of
    the new level to the former one, and ``verdict`` its meaning."""

    run: str
    started: str
    version: str
    figure: Estimate
    change: Estimate | None = None
    verdict: Step = ""


class CellHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A cell over the runs, the oldest first."""

    parameters: dict[str, Level]
    points: tuple[HistoryPoint, ...]
    note: str = ""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """An indicator over the stored runs of a study."""

    study: str
    indicator: IndicatorInfo
    factors: tuple[str, ...]
    runs: int
    cells: tuple[CellHistory, ...]
    warnings: tuple[str, ...] = ()
