"""Facts that the measured program reported, and the shares of its workers."""

from __future__ import annotations

from statistics import fmean

import msgspec

from concurve.terms import Level


class ProgramFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that the measured program reported in ``cells`` of the ``among`` cells with the levels
    ``where``. An empty ``where``: in all cells, or in cells that share no level."""

    name: str
    value: str
    where: dict[str, Level] = {}
    cells: int
    among: int


class CellShares(msgspec.Struct, frozen=True, kw_only=True):
    """What each worker or client did in one trial of a cell, in the order of their reports."""

    parameters: dict[str, Level]
    shares: tuple[float, ...]

    @property
    def mean(self) -> float:
        """What each would have done if all had done the same."""
        return fmean(self.shares)


class WorkerShares(msgspec.Struct, frozen=True, kw_only=True):
    """The shares of single workers or clients, as the program reported them: ``indicator`` in some
    cells, each from the trial with the median spread. ``remark`` says how many cells are left
    out."""

    indicator: str
    label: str
    factors: tuple[str, ...]
    cells: tuple[CellShares, ...]
    remark: str = ""
