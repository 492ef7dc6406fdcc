"""The best settings of a run by an indicator: those that cannot be distinguished from the best,
and the recommended one of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.analysis.ground import Ground
from concurve.analysis.run.tables import Table, is_staged
from concurve.analysis.samples import is_doubtful
from concurve.findings.best import BestFinding
from concurve.planning.plan import Cell, Plan
from concurve.planning.protocol import Protocol
from concurve.stats.best import BestSet, best_set, gap
from concurve.stats.blocks import Blocks
from concurve.stats.centre import staged
from concurve.stats.power import TOO_COARSE
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
    *,
    advised: bool = True,
) -> tuple[BestFinding, ...]:
    """One finding for each group of cells that differ in the work factor only, and one over all
    cells of equal conditions; only the latter where nothing else is chosen. None for an indicator
    without a better direction, or where every factor is a condition.

    ``columns`` has the values of each cell by block, and ``resolutions`` by how much they may be
    off, in the order of the plan; cells without values are left out. ``advised``: say what would
    decide between the best two settings, which takes as long as all the rest.
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
        found = _found(plan, (plan.work,), _alike(measured, others), indicator, advised)
    met = [name for name in varied if name not in chosen]
    return tuple(found + _found(plan, chosen, _alike(measured, met), indicator, advised))


def _found(
    plan: Plan,
    factors: tuple[str, ...],
    groups: Sequence[list[_Candidate]],
    indicator: IndicatorInfo,
    advised: bool,
) -> list[BestFinding]:
    """The finding of each group; their sets hold together."""
    comparisons = sum(len(group) - 1 for group in groups)
    each = (_find(plan, factors, group, indicator, comparisons, advised) for group in groups)
    return [item for item in each if item is not None]


def _alike(measured: Sequence[_Candidate], names: Sequence[str]) -> list[list[_Candidate]]:
    """The candidates that share the levels of these factors, together."""
    groups: dict[tuple[Level, ...], list[_Candidate]] = {}
    for candidate in measured:
        key = tuple(candidate.cell.parameters[name] for name in names)
        groups.setdefault(key, []).append(candidate)
    return list(groups.values())


def _find(
    plan: Plan,
    factors: tuple[str, ...],
    candidates: list[_Candidate],
    indicator: IndicatorInfo,
    comparisons: int,
    advised: bool,
) -> BestFinding | None:
    """``comparisons``: how many all sets of this kind take."""
    if len(candidates) < 2:
        return None
    columns = [candidate.values for candidate in candidates]
    best = best_set(
        columns,
        indicator.better == "lower",
        is_staged=is_staged(plan.rules),
        resolutions=[candidate.resolution for candidate in candidates],
        comparisons=comparisons,
    )
    members = [candidates[index].cell.parameters for index in best.members]
    levels = _levels(plan)
    work_first = sorted(factors, key=lambda name: name != plan.work)
    smallest = min(
        members, key=lambda cell: [_rank(cell[name], levels[name]) for name in work_first]
    )
    confidence = 1 - (1 - staged(0.95, is_staged(plan.rules))) / comparisons
    decide, trials = _decide(candidates, best, confidence) if advised else ("", None)
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
        smallest=_only(factors, smallest),
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


def _decide(
    candidates: Sequence[_Candidate], best: BestSet, confidence: float
) -> tuple[str, int | None]:
    """What would decide between the best two settings, and how many trials it takes. The
    ``confidence`` is that of a two-sided comparison."""
    if best.rival is None:
        return "", None
    first, second = candidates[best.leader], candidates[best.rival]
    found = gap(first.values, second.values, (first.resolution, second.resolution))
    if found is None:
        return (
            "a setting with a single trial cannot be distinguished from any: run more trials",
            None,
        )
    if found.is_within(EFFECT, confidence):
        return (
            f"the best two settings lie less than {words.share(EFFECT)} apart: no relevant "
            "difference",
            None,
        )
    is_close = found.share < EFFECT
    seem = f"the best two settings seem {words.share(found.share)} apart"
    if is_close:
        seem = "the best two settings cannot be told apart"
    if found.is_within_resolution(EFFECT):
        return f"{seem}; {TOO_COARSE}", None
    trials, have = found.trials(EFFECT, confidence), len(found.ranked.values)
    if trials is None:
        return f"{seem}, and spread so much that more trials will hardly decide", None
    trials = max(trials, have + 1)
    what = f"a difference of {words.share(EFFECT)}" if is_close else "that, if it is true,"
    return (
        f"{seem}; {words.count(trials - have, 'more trial')} of each would show {what} with a "
        f"power of 80 %: --repeats {trials}..{trials} in a new run",
        trials,
    )


def _levels(plan: Plan) -> dict[str, tuple[Level, ...]]:
    return {factor.name: factor.levels for factor in plan.study.factors_at(plan.effort)}


def _only(names: Sequence[str], parameters: Mapping[str, Level]) -> dict[str, Level]:
    return {name: parameters[name] for name in names}


def best_of(
    plan: Plan,
    protocol: Protocol,
    tables: Sequence[Table],
    ground: Ground,
    quiet: Sequence[Table] | None = None,
    failed: Collection[int] = (),
    *,
    advised: bool = True,
) -> tuple[BestFinding, ...]:
    """The best settings by the ground of a run, cells that were skipped and those whose load
    ``failed`` left out. The finding is
    withheld where the ground is in doubt, and where many trials of a figure are not in ``quiet``,
    the tables of the quiet trials alone. ``advised`` as in :func:`best_settings`."""
    info, name = ground.indicator, ground.indicator.name
    columns = _columns(protocol, tables, name, failed)
    resolutions = _resolutions(tables, columns, name)
    found = best_settings(plan, columns, info, resolutions, advised=advised)
    if ground.doubt:
        return withheld_best(found, ground.doubt)
    if quiet is None:
        return found
    alone = _columns(protocol, quiet, name)
    in_doubt = [
        cell.parameters
        for cell, own, left in zip(plan.cells, columns, alone, strict=True)
        if is_doubtful(len(left), len(own))
    ]
    return tuple(_withheld(item, in_doubt) for item in found)


def _columns(
    protocol: Protocol, tables: Sequence[Table], name: str, failed: Collection[int] = ()
) -> list[Blocks]:
    return [
        {} if state.skipped or index in failed else table.by_block(name)
        for index, (state, table) in enumerate(zip(protocol.cells, tables, strict=True))
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
    why = f"the machine was not quiet, and {settings} too few quiet trials"
    return msgspec.structs.replace(_in_doubt(found, why), is_tentative=True)


def withheld_best(found: tuple[BestFinding, ...], why: str) -> tuple[BestFinding, ...]:
    """The findings without a recommended setting, for a doubt of the whole run."""
    return tuple(_in_doubt(item, why) for item in found)


def _in_doubt(found: BestFinding, why: str) -> BestFinding:
    return msgspec.structs.replace(found, doubt=why, decide="", trials=None)
