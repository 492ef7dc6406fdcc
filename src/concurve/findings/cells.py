"""The findings of a run for its cells and their trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from concurve.estimate import Estimate
from concurve.terms import Level

CellStatus = Literal["ok", "partial", "skipped", "pending"]


class CellFindings(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of levels.

    ``including_rejects`` repeats the primary indicator over all trials that gave a figure, so
    that figures stand with and without; it is ``None`` where nothing was rejected.
    ``base`` is the index of the cell that speed-up and efficiency refer to. ``resolutions`` says by
    how much a reading of an indicator may be off, in its unit.
    """

    index: int
    parameters: dict[str, Level]
    status: CellStatus
    indicators: Mapping[str, Estimate]
    resolutions: Mapping[str, float] = {}
    absent: dict[str, str] = {}
    including_rejects: Estimate | None = None
    base: int | None = None
    trials: int = 0
    stop_reason: str = ""
    note: str = ""


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """One trial's value of the indicators, for charts and tables of raw figures."""

    cell: int
    block: int
    attempt: int
    used: bool
    values: dict[str, float]


class Reject(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that was not used, or was used with a doubt, and why."""

    cell: int
    parameters: dict[str, Level]
    block: int
    attempt: int
    cause: str
    detail: str
    used: bool = False
