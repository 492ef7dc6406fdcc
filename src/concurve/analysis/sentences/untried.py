"""That more than the greatest level measured may be better, where the growth goes on to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve import words
from concurve.analysis.sentences.naming import is_counted
from concurve.definition.purposes import purposes_of
from concurve.definition.templates import placeholders
from concurve.findings.best import BestFinding
from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan, describe
from concurve.store.run_head import RunHead
from concurve.terms import Level

#: Who gains less than this by the last step to the greatest level hardly gains by the next one.
GROWS_MIN = 1.05

#: So many conditions are named; of more only their number.
_NAMED_MAX = 2


def untried(
    head: RunHead, plan: Plan, cells: Sequence[CellFindings], best: Sequence[BestFinding]
) -> Iterator[str]:
    """A sentence for the settings to use over all cells, or under each condition, where that is the
    greatest number of the work factor, and better than the next smaller one by :data:`GROWS_MIN`:
    ``64 is the greatest level measured: more may be better.`` Under conditions, it says under
    which. None of what is a number of CPUs, and of a program that serves nobody none from the
    number of CPUs on: more workers than these seldom are."""
    conditions = set(plan.study.conditions)
    asked = [it for it in best if len(it.factors) == 1 and conditions.issuperset(it.group)]
    found: dict[Level, list[BestFinding]] = {}
    for item in asked:
        if item.recommended is not None and _is_untried(head, plan, cells, item):
            found.setdefault(item.leader[item.factors[0]], []).append(item)
    for level, items in found.items():
        (factor,) = items[0].factors
        named = str(level) if is_counted(factor, level) else describe({factor: level})
        under = _under(items, len(asked))
        yield f"{named} is the greatest level measured: {under}more may be better."


def _is_untried(
    head: RunHead, plan: Plan, cells: Sequence[CellFindings], item: BestFinding
) -> bool:
    """Is the setting to use the greatest level of the work factor there, and does it gain yet?"""
    ((factor, level),) = item.leader.items()
    group = [cell for cell in cells if item.group.items() <= cell.parameters.items()]
    levels = sorted({n for it in group if isinstance(n := it.parameters[factor], int | float)})
    # A switch, or a kind of optimisation, has no greater level.
    is_greatest = factor == plan.work and len(levels) > 1 and level == levels[-1] > 1
    return (
        is_greatest
        and item.recommended == item.leader
        and {factor: levels[-2]} in item.behind
        and _grows(group, factor, levels, item.indicator)
        and _may_grow(head, factor, level)
    )


def _grows(
    group: Sequence[CellFindings], factor: str, levels: Sequence[float], indicator: str
) -> bool:
    """Is the figure of the greatest level so far from that of the next smaller one that it grows
    yet? A server that has used up its CPUs gains a little from what the load gives up."""
    figures = [
        cell.indicators[indicator].value
        for level in levels[-2:]
        for cell in group
        if cell.parameters[factor] == level and indicator in cell.indicators
    ]
    low, high = min(figures, default=0.0), max(figures, default=0.0)
    return low <= 0 or high >= GROWS_MIN * low


def _under(items: Sequence[BestFinding], conditions: int) -> str:
    """Under which of so many conditions that is so; empty for a run without conditions."""
    if not items[0].group:
        return ""
    if len(items) == conditions > 1:
        return "under each condition, "
    if len(items) > _NAMED_MAX:
        return f"under {len(items)} of {conditions} conditions, "
    return f"with {words.listed([describe(item.group) for item in items])}, "


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
