"""The findings of a run on the figures that its source printed."""

from __future__ import annotations

from typing import Literal

import msgspec

from concurve.estimate import Estimate
from concurve.terms import Level

Agreement = Literal["base", "agrees", "differs", "undecided", "not comparable"]
Compare = Literal["ratio", "factor", "improvement", "difference", "order", "none"]


class PublishedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A published figure beside the new one, both relative to their own base cell.

    ``printed`` and ``unit`` are the source's; ``published`` and ``ours`` are what is compared: a
    ratio, a factor or a difference, as ``compare`` says, or for ``order`` both figures as they are,
    each on its own scale. ``reason`` says why there is nothing
    of ours, or what the verdict rests on.
    """

    row: str
    column: str
    printed: str
    unit: str
    indicator: str
    parameters: dict[str, Level]
    base: dict[str, Level]
    compare: Compare
    verdict: Agreement
    reason: str
    published: float | None = None
    ours: Estimate | None = None


class PublishedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of the source with its number there; ``rows`` and ``columns`` are its headings.
    ``figure`` is the number of the source's chart of it, if it has one."""

    number: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    figures: tuple[PublishedComparison, ...]
    figure: str = ""
    figure_title: str = ""

    def at(self, row: str, column: str) -> PublishedComparison | None:
        """The figure at a place of the table; ``None`` where the source printed none."""
        return next((f for f in self.figures if f.row == row and f.column == column), None)

    def counts(self) -> dict[Agreement, int]:
        """How many figures have each verdict."""
        found: dict[Agreement, int] = {}
        for item in self.figures:
            found[item.verdict] = found.get(item.verdict, 0) + 1
        return found
