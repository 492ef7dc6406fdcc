"""The findings of a comparison of two runs, or of two levels of a factor."""

from __future__ import annotations

from typing import Literal

import msgspec

from concurve.estimate import Estimate
from concurve.terms import IndicatorInfo, Level

Change = Literal["faster", "slower", "same", "undecided"]


class CellComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One cell against its counterpart: ``ratio`` is the new figure over the base's.

    ``note`` says why there is no ratio, or none with an interval.
    """

    parameters: dict[str, Level]
    indicator: str
    verdict: Change
    ratio: Estimate | None = None
    base: Estimate | None = None
    new: Estimate | None = None
    note: str = ""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs, or two levels of a factor, cell by cell.

    ``base`` and ``new`` name the sides. ``effect`` is the share below which a difference is not
    worth the name; ``factors`` those that vary among the cells.
    """

    base: str
    new: str
    factors: tuple[str, ...]
    indicators: tuple[IndicatorInfo, ...]
    effect: float
    method: str
    cells: tuple[CellComparison, ...]
    warnings: tuple[str, ...] = ()
