"""What the measured program said of itself."""

from __future__ import annotations

from typing import Annotated

import msgspec

from concurve.fields import Positive, about
from concurve.findings.run import Report
from concurve.terms import Level


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that the program said of itself, and in which cells."""

    name: str
    value: str
    where: Annotated[
        dict[str, Level], about("Levels that the cells of this value share, and others have not.")
    ]
    cells: Annotated[Positive, about("Cells of this value …")]
    among: Annotated[Positive, about("… among so many that have these levels.")]


def facts_of(report: Report) -> list[Fact]:
    """The facts as they are exported."""
    return [
        Fact(item.name, item.value, item.where, item.cells, item.among) for item in report.facts
    ]
