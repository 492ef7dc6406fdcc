"""The findings of a comparison of several runs with one base."""

from __future__ import annotations

import msgspec

from concurve.findings.comparison import CellComparison, Comparison
from concurve.findings.explanation import CellExplanation
from concurve.findings.run import Report
from concurve.terms import Level


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that differs from the base's. ``new`` names its run. ``significance``: so many times
    the half of its 95 % interval the ratio is from 1, on the scale of logarithms."""

    new: str
    cell: CellComparison
    significance: float


class CausesOfCell(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a cell in each run, the base first; ``None`` where a run does not say."""

    parameters: dict[str, Level]
    causes: tuple[CellExplanation | None, ...]


class BlockedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that was blocked in a run, or in the base, and where. ``new`` and ``base`` name the
    runs whose stacks these are: the first of each side. ``parameters`` has the factors that vary.
    ``difference_ns`` is the sum of what each stack takes more or less."""

    new: str
    base: str
    parameters: dict[str, Level]
    of_new: CellExplanation
    of_base: CellExplanation
    difference_ns: float


class Several(msgspec.Struct, frozen=True, kw_only=True):
    """Some runs against one base, cell by cell; their verdicts hold together.

    ``differences`` are the cells that are faster or slower, the most significant first.
    ``overlaid`` has the cells of all runs, with a factor ``run_factor`` that names theirs.
    ``causes`` has the cells that something limits in some run, or for which that is in doubt.
    ``blocked`` are the cells whose blocked time differs most in its places, of ``blocked_cells``
    that have such a difference; ``not_blocked`` says why runs have none.
    """

    base: str
    news: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    differences: tuple[Difference, ...]
    overlaid: Report
    run_factor: str
    causes: tuple[CausesOfCell, ...]
    blocked: tuple[BlockedDifference, ...] = ()
    blocked_cells: int = 0
    not_blocked: tuple[str, ...] = ()
