"""Facts that the measured program reported."""

from __future__ import annotations

from typing import Annotated

import msgspec

from concurve.fields import Positive, about
from concurve.findings.run import Report
from concurve.terms import Level


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact that the program reported, its value, and the cells with this value."""

    name: str
    value: str
    where: Annotated[
        dict[str, Level],
        about("Levels that the cells with this value share, and no other cell has."),
    ]
    cells: Annotated[Positive, about("Number of cells with this value …")]
    among: Annotated[Positive, about("… among this number of cells with these levels.")]


def facts_of(report: Report) -> list[Fact]:
    """The facts as they are exported."""
    return [
        Fact(item.name, item.value, item.where, item.cells, item.among) for item in report.facts
    ]
