"""What the cells of a packaged study would run, for the tests of packaged campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from concurve.definition.campaign import Campaign
from concurve.definition.study import EffortName, Study
from concurve.planning.plan import make_plan, trial_spec


def study_of(campaign: Campaign, name: str) -> Study:
    """The study of this name in a campaign."""
    return next(member.study for member in campaign.studies if member.name == name)


def argv(
    study: Study, effort: EffortName = "normal", /, **levels: Any
) -> dict[str, tuple[str, ...]]:
    """The command line of each role in the first cell of an effort with these levels, on 8 CPUs."""
    plan = make_plan(study, effort, 1)
    cell = next(cell for cell in plan.cells if levels.items() <= cell.parameters.items())
    spec = trial_spec(plan, cell, "t", tuple(range(8)), _program, 4711, folder="/t")
    return {role.name: role.argv for role in spec.roles}


def _program(name: str, where: str, java: str | None, jvm: Sequence[str]) -> list[str]:
    return [name]
