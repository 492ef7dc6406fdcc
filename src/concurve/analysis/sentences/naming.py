"""How sentences on a run name its cells and settings."""

from __future__ import annotations

from collections.abc import Sequence

from concurve import words
from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan, describe
from concurve.terms import Level

#: A sentence names at most so many cells, and counts the others.
_CELLS_NAMED = 3


def varied(plan: Plan, parameters: dict[str, Level]) -> dict[str, Level]:
    """The levels without those of factors that have one level only."""
    return {
        name: level
        for name, level in parameters.items()
        if any(cell.parameters[name] != level for cell in plan.cells)
    }


def own(plan: Plan, cell: CellFindings) -> str:
    """A cell named inside its group."""
    if plan.work:
        return f"{plan.work}={cell.parameters[plan.work]}"
    return name(plan, cell.parameters)


def name(plan: Plan, parameters: dict[str, Level]) -> str:
    """A cell by the levels of the factors that vary."""
    return describe(varied(plan, parameters) or parameters)


def names(plan: Plan, cells: Sequence[CellFindings]) -> str:
    """The first of several cells by their names in the order of the plan, and how many more there
    are: ``n=1 and 2``, ``n=1, 2, 4 and 3 other cells``; with several factors ``n=1 size=2 and n=2
    size=2``."""
    first = sorted(cells[:_CELLS_NAMED], key=lambda cell: cell.index)
    told = [name(plan, cell.parameters) for cell in first]
    if len({key for cell in plan.cells for key in varied(plan, cell.parameters)}) == 1:
        told[1:] = [each.partition("=")[2] for each in told[1:]]
    more = len(cells) - len(told)
    return words.listed([*told, words.count(more, "other cell")] if more else told)


def subject(plan: Plan, parameters: dict[str, Level]) -> str:
    """The same at the beginning of a sentence. Names of factors keep their letters."""
    found = name(plan, parameters)
    return found if varied(plan, parameters) or parameters else found.capitalize()


def is_counted(factor: str, level: Level) -> bool:
    """Does the factor name what it counts: ``threads``, ``clients``?"""
    is_plural = factor.isalpha() and factor.endswith("s") and not factor.endswith("ss")
    return is_plural and len(factor) > 2 and isinstance(level, int)
