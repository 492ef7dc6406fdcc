"""Which optional levels of a study this machine cannot run, and why: they are left out of its runs,
and the run says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from concurve.definition.inventory import Inventory
from concurve.definition.study import Study
from concurve.errors import HostError
from concurve.planning.plan import Machine, Plan, ProgramFinder, make_plan, trial_spec
from concurve.store.run_head import LeftOut
from concurve.terms import Level


def granted(
    study: Study,
    effort: str,
    cpus: Sequence[int],
    find_program: ProgramFinder,
    inventory: Inventory | None = None,
    machines: Mapping[str, Machine] | None = None,
) -> tuple[Study, tuple[LeftOut, ...]]:
    """The study without the optional levels that this machine, or its hosts, cannot run at an
    effort, and these.

    Raises:
        HostError: nothing is left of a factor, or one level alone of one that the study compares.
    """
    left_out: list[LeftOut] = []
    for factor, levels in study.optional.items():
        for level in levels:
            plan = make_plan(study, effort, 0, inventory)
            lacking = _lacking(plan, factor, level, cpus, find_program, machines)
            if lacking is not None:
                left_out.append(lacking)
                study = _without(study, effort, lacking)
    return study, tuple(left_out)


def _lacking(
    plan: Plan,
    factor: str,
    level: Level,
    cpus: Sequence[int],
    find_program: ProgramFinder,
    machines: Mapping[str, Machine] | None,
) -> LeftOut | None:
    """What the machine lacks for a level, checked in the first cell with it (the other factors at
    their first levels); ``None`` if nothing, or if this effort does not use the level."""
    cell = next((cell for cell in plan.cells if cell.parameters[factor] == level), None)
    if cell is None:
        return None
    try:
        trial_spec(plan, cell, "check", cpus, find_program, name_cell=False, machines=machines)
    except HostError as error:
        return LeftOut(factor=factor, level=level, why=error.what, remedy=error.remedy)
    return None


def _without(study: Study, effort: str, lacking: LeftOut) -> Study:
    """The study without a level, at this effort; without the base, if that has it."""
    levels = next(f.levels for f in study.factors_at(effort) if f.name == lacking.factor)
    left = tuple(level for level in levels if level != lacking.level)
    if not left:
        raise HostError(lacking.why, lacking.remedy)
    if len(left) == 1 and lacking.factor in study.compares:
        raise HostError(
            f"of {lacking.factor} only {left[0]} can run here, so there is nothing to compare: "
            f"{lacking.why}",
            lacking.remedy,
        )
    own = study.efforts[effort]
    reduced = msgspec.structs.replace(own, factors={**own.factors, lacking.factor: left})
    base = {} if study.base.get(lacking.factor) == lacking.level else study.base
    return msgspec.structs.replace(study, base=base, efforts={**study.efforts, effort: reduced})
