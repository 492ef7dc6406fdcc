"""How sentences on a run name its cells and settings."""

from __future__ import annotations

from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan, describe
from concurve.terms import Level


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


def subject(plan: Plan, parameters: dict[str, Level]) -> str:
    """The same at the beginning of a sentence. Names of factors keep their letters."""
    found = name(plan, parameters)
    return found if varied(plan, parameters) or parameters else found.capitalize()


def is_counted(factor: str, level: Level) -> bool:
    """Does the factor name what it counts: ``threads``, ``clients``?"""
    is_plural = factor.isalpha() and factor.endswith("s") and not factor.endswith("ss")
    return is_plural and len(factor) > 2 and isinstance(level, int)
