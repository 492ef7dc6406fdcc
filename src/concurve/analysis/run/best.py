"""The best settings of a run by an indicator: those that cannot be distinguished from the best,
and the recommended one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve.analysis.run.tables import Table, is_staged
from concurve.analysis.samples import is_doubtful
from concurve.definition.units import format_share
from concurve.errors import RunError
from concurve.findings.best import BestFinding
from concurve.planning.plan import Cell, Plan
from concurve.planning.protocol import Protocol
from concurve.stats.best import BestSet, best_set, trials_to_part
from concurve.stats.blocks import Blocks, block_ratio
from concurve.stats.centre import centre
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo, Level

#: A smaller relative difference between two settings is not relevant in practice.
EFFECT = 0.01


class _Candidate(NamedTuple):
    """A measured setting; its values may be off by ``resolution``."""

    cell: Cell
    values: Blocks
    resolution: float


def best_settings(
    plan: Plan,
    columns: Sequence[Blocks],
    indicator: IndicatorInfo,
    resolutions: Sequence[float] = (),
) -> tuple[BestFinding, ...]:
    """One finding for each group of cells that differ in the work factor only, and one over all
    cells of equal conditions; only the latter where nothing else is chosen. None for an indicator
    without a better direction, or where every factor is a condition.

    ``columns`` has the values of each cell by block, and ``resolutions`` by how much they may be
    off, in the order of the plan; cells without values are left out.
    """
    if indicator.better == "neither":
        return ()
    measured = [
        _Candidate(cell, column, off)
        for cell, column, off in zip(
            plan.cells, columns, resolutions or [0.0] * len(columns), strict=True
        )
        if column
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
    best = best_set(
        columns,
        indicator.better == "lower",
        is_staged=is_staged(plan.rules),
        resolutions=[candidate.resolution for candidate in candidates],
    )
    members = [candidates[index].cell.parameters for index in best.members]
    levels = _levels(plan)
    work_first = sorted(factors, key=lambda name: name != plan.work)
    smallest = min(
        members, key=lambda cell: [_rank(cell[name], levels[name]) for name in work_first]
    )
    decide, trials = _decide(columns, best)
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
    """The cost order of a level: numbers by size, words by their position in the study."""
    if isinstance(level, str):
        return True, levels.index(level)
    return False, level


def _decide(columns: Sequence[Blocks], best: BestSet) -> tuple[str, int | None]:
    """What would decide between the best two settings, and how many trials it takes."""
    if best.rival is None:
        return "", None
    first, second = columns[best.leader], columns[best.rival]
    have = len(first.keys() & second.keys())
    if have < 2:
        return (
            "a setting with a single trial cannot be distinguished from any: run more trials",
            None,
        )
    share = _apart(first, second)
    if share < EFFECT:
        return (
            f"the best two settings lie {format_share(share)} apart: no relevant difference",
            None,
        )
    trials = trials_to_part(first, second, others=len(columns) - 1)
    seem = f"the best two settings lie {format_share(share)} apart"
    if trials is None:
        return f"{seem}, but spread so much that more trials will hardly decide", None
    trials = max(trials, have + 1)
    return (
        f"{seem}; if they truly do, {trials} trials of each ({trials - have} more) would show "
        "it with a power of 80 %", trials,
    )  # fmt: skip


def _apart(first: Blocks, second: Blocks) -> float:
    """By which share two settings differ: the estimate by their common blocks."""
    ratio = block_ratio(second, first)
    if ratio is not None:
        return abs(ratio.value - 1)
    middle, other = centre(list(first.values())), centre(list(second.values()))
    return abs(middle - other) / abs(middle) if middle else float(middle != other)


def _levels(plan: Plan) -> dict[str, tuple[Level, ...]]:
    return {factor.name: factor.levels for factor in plan.study.factors_at(plan.effort)}


def _only(names: Sequence[str], parameters: Mapping[str, Level]) -> dict[str, Level]:
    return {name: parameters[name] for name in names}


def best_of(
    head: RunHead,
    plan: Plan,
    protocol: Protocol,
    tables: Sequence[Table],
    infos: tuple[IndicatorInfo, ...],
    best_by: str,
    quiet: Sequence[Table] | None = None,
) -> tuple[BestFinding, ...]:
    """The best settings by an indicator, cells that were skipped left out. Where many
    trials of a figure are not in ``quiet``, the tables of the quiet trials alone, the finding is
    withheld."""
    name = best_by or head.study.primary
    have = {known for table in tables for known in table.used}
    if best_by and best_by not in have:
        raise RunError(
            f"run {head.id}: no trial has the indicator {best_by!r}",
            f"one of {', '.join(sorted(have)) or 'none yet'}",
        )
    info = next((info for info in infos if info.name == name), IndicatorInfo(name=name, label=name))
    columns = _columns(protocol, tables, name)
    found = best_settings(plan, columns, info, _resolutions(tables, columns, name))
    if quiet is None:
        return found
    alone = _columns(protocol, quiet, name)
    in_doubt = [
        cell.parameters
        for cell, own, left in zip(plan.cells, columns, alone, strict=True)
        if is_doubtful(len(left), len(own))
    ]
    return tuple(_withheld(item, in_doubt) for item in found)


def _columns(protocol: Protocol, tables: Sequence[Table], name: str) -> list[Blocks]:
    return [
        {} if state.skipped else table.by_block(name)
        for state, table in zip(protocol.cells, tables, strict=True)
    ]


def _resolutions(tables: Sequence[Table], columns: Sequence[Blocks], name: str) -> list[float]:
    return [
        table.resolution(name) if column else 0.0
        for table, column in zip(tables, columns, strict=True)
    ]


def _withheld(found: BestFinding, in_doubt: Sequence[Mapping[str, Level]]) -> BestFinding:
    """The finding, withheld where a setting that it compares is in doubt."""
    compared = [cell for cell in in_doubt if found.group.items() <= cell.items()]
    if not compared:
        return found
    settings = "a setting has" if len(compared) == 1 else f"{len(compared)} settings have"
    return msgspec.structs.replace(
        found,
        doubt=f"the machine was not quiet: {settings} too few quiet trials",
        decide="",
        trials=None,
    )
