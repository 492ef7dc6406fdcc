"""The best settings of a run, by its primary indicator or another: those that cannot be told from
the best, and the one of them to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concurve.analysis.run.tables import Table
from concurve.definition.units import format_share
from concurve.errors import RunError
from concurve.findings.best import BestFinding
from concurve.measuring.plan import Cell, Plan
from concurve.measuring.protocol import Protocol
from concurve.stats.best import BestSet, best_set, trials_to_tell, without_block_effects
from concurve.stats.moments import mean
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo, Level

#: Two settings that differ by less are alike in practice.
EFFECT = 0.01


class _Candidate(NamedTuple):
    """A measured setting."""

    cell: Cell
    values: Sequence[float]


def best_settings(
    plan: Plan, columns: Sequence[Sequence[float]], indicator: IndicatorInfo
) -> tuple[BestFinding, ...]:
    """One finding for each group of cells that differ in the work factor only, and one over all
    cells of equal conditions; only the latter where nothing else is chosen. None for an indicator
    without a better direction, or where every factor is a condition.

    ``columns`` has the values of each cell in the order of the plan; cells without are left out.
    """
    if indicator.better == "neither":
        return ()
    measured = [
        _Candidate(cell, column) for cell, column in zip(plan.cells, columns, strict=True) if column
    ]
    varied = [name for name, levels in _levels(plan).items() if len(levels) > 1]
    chosen = tuple(name for name in varied if name not in plan.study.conditions)
    if not chosen:
        return ()
    found = []
    if plan.work in chosen and len(chosen) > 1:
        others = [name for name in varied if name != plan.work]
        found = [_find(plan, (plan.work,), g, indicator) for g in _alike(measured, others)]
    met = [name for name in varied if name not in chosen]
    found += [_find(plan, chosen, group, indicator) for group in _alike(measured, met)]
    return tuple(item for item in found if item is not None)


def _alike(measured: Sequence[_Candidate], names: Sequence[str]) -> list[list[_Candidate]]:
    """The candidates that share the levels of these factors, together."""
    groups: dict[tuple[Level, ...], list[_Candidate]] = {}
    for candidate in measured:
        key = tuple(candidate.cell.parameters[name] for name in names)
        groups.setdefault(key, []).append(candidate)
    return list(groups.values())


def _find(
    plan: Plan, factors: tuple[str, ...], candidates: list[_Candidate], indicator: IndicatorInfo
) -> BestFinding | None:
    if len(candidates) < 2:
        return None
    columns = [candidate.values for candidate in candidates]
    pilot = plan.rules.repeats_min
    best = best_set(columns, indicator.better == "lower", pilot=pilot)
    members = [candidates[index].cell.parameters for index in best.members]
    levels = _levels(plan)
    work_first = sorted(factors, key=lambda name: name != plan.work)
    smallest = min(
        members, key=lambda cell: [_rank(cell[name], levels[name]) for name in work_first]
    )
    decide, trials = _decide(columns, best, pilot)
    leader = candidates[best.leader].cell.parameters
    shared = {
        name: level
        for name, level in leader.items()
        if name not in factors and len(levels[name]) > 1
    }
    return BestFinding(
        indicator=indicator.name,
        label=indicator.label or indicator.name,
        group=shared,
        factors=factors,
        settings=tuple(_only(factors, parameters) for parameters in members),
        recommended=_only(factors, smallest),
        leader=_only(factors, leader),
        compared=len(candidates),
        decide=decide,
        trials=trials,
    )


def _rank(level: Level, levels: Sequence[Level]) -> tuple[bool, float]:
    """How much a level takes: numbers by their size, words by their place in the study."""
    if isinstance(level, str):
        return True, levels.index(level)
    return False, level


def _decide(
    columns: Sequence[Sequence[float]], best: BestSet, pilot: int
) -> tuple[str, int | None]:
    """What it would take to tell the best two apart."""
    if best.rival is None:
        return "", None
    pair = columns[best.leader], columns[best.rival]
    if min(map(len, pair)) < 2:
        return "a setting with a single trial cannot be told from any: run more trials", None
    apart = abs(mean(pair[0]) - mean(pair[1]))
    share = apart / abs(mean(pair[0])) if mean(pair[0]) else float(apart > 0)
    if share < EFFECT:
        return (
            f"the best two means lie {format_share(share)} apart: "
            "no difference worth the name", None,
        )  # fmt: skip
    trials = trials_to_tell(*pair, others=len(columns) - 1, pilot=pilot)
    seem = f"the best two means lie {format_share(share)} apart"
    if trials is None:
        return f"{seem}, but spread so much that more trials will hardly decide", None
    have = min(map(len, pair))
    trials = max(trials, have + 1)
    return (
        f"{seem}; if they truly do, {trials} trials of each ({trials - have} more) would tell "
        "with a power of 80 %", trials,
    )  # fmt: skip


def _levels(plan: Plan) -> dict[str, tuple[Level, ...]]:
    return {factor.name: factor.levels for factor in plan.study.factors_at(plan.effort)}


def _only(names: Sequence[str], parameters: Mapping[str, Level]) -> dict[str, Level]:
    return {name: parameters[name] for name in names}


def best_of(
    head: RunHead,
    plan: Plan,
    protocol: Protocol,
    tables: list[Table],
    infos: tuple[IndicatorInfo, ...],
    best_by: str,
) -> tuple[BestFinding, ...]:
    """The best settings by an indicator, cells that were skipped left out."""
    name = best_by or head.study.primary
    have = {known for table in tables for known in table.used}
    if best_by and best_by not in have:
        raise RunError(
            f"run {head.id}: no trial has the indicator {best_by!r}",
            f"one of {', '.join(sorted(have)) or 'none yet'}",
        )
    info = next((info for info in infos if info.name == name), IndicatorInfo(name=name, label=name))
    columns: list[Sequence[float]] = [
        () if state.skipped else table.used.get(name, ())
        for state, table in zip(protocol.cells, tables, strict=True)
    ]
    if plan.study.simulation:
        by_block = [
            table.by_block(name) if column and min(column) > 0 else {}
            for column, table in zip(columns, tables, strict=True)
        ]
        columns = [*without_block_effects(by_block)]
    return best_settings(plan, columns, info)
