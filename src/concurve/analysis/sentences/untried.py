"""That more than the greatest level measured may be better, where the growth goes on to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve.analysis.sentences.naming import is_counted
from concurve.definition.purposes import purposes_of
from concurve.definition.templates import placeholders
from concurve.findings.best import BestFinding
from concurve.planning.plan import Plan, describe
from concurve.store.run_head import RunHead
from concurve.terms import Level


def untried(head: RunHead, plan: Plan, best: Sequence[BestFinding]) -> Iterator[str]:
    """A sentence for the setting to use over all cells, if it is the greatest number of the work
    factor, and told from the next smaller one: ``64 is the greatest level measured: more may be
    better.`` None of what is a number of CPUs, and of a program that serves nobody none from the
    number of CPUs on: more workers than these seldom are."""
    for item in best:
        if item.group or len(item.factors) != 1 or item.recommended != item.leader:
            continue
        ((factor, level),) = item.leader.items()
        levels = sorted(
            {n for cell in plan.cells if isinstance(n := cell.parameters[factor], int | float)}
        )
        # A switch, or a kind of optimisation, has no greater level.
        is_greatest = factor == plan.work and len(levels) > 1 and level == levels[-1] > 1
        if is_greatest and {factor: levels[-2]} in item.behind and _may_grow(head, factor, level):
            named = str(level) if is_counted(factor, level) else describe(item.leader)
            yield f"{named} is the greatest level measured: more may be better."


def _may_grow(head: RunHead, factor: str, level: Level) -> bool:
    """May a greater level than this one be better, as far as the CPUs of the machine go?"""
    study = head.study
    bound = (role.controls.cpus or "" for role in study.roles)
    if any(factor in placeholders(text) for text in bound):
        return False
    allowed = head.machine.get("cpus_allowed")
    if purposes_of(study).serving:
        return True
    if not isinstance(allowed, list) or isinstance(level, str):
        return False
    return level < len(allowed)
