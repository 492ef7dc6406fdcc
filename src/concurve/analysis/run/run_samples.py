"""What the tests of claims read of a run, with and without the trials in doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concurve.analysis.run.tables import Table, is_staged, tables_of
from concurve.analysis.samples import MissingError, Samples, by_indicator
from concurve.figures import FigureTable
from concurve.planning.plan import Plan, describe
from concurve.planning.protocol import Protocol
from concurve.readings.contamination import LATE_READING
from concurve.readings.measures import is_probed
from concurve.stats.blocks import Blocks
from concurve.store.rows import TrialKey, TrialRow
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo, Level


def samples_of(
    head: RunHead,
    plan: Plan,
    protocol: Protocol,
    tables: list[Table],
    infos: tuple[IndicatorInfo, ...],
) -> Samples:
    """What the tests of claims read: a run's values by cell and indicator."""
    better = {info.name: info.better for info in infos}
    left_out = {(item.factor, item.level): item.says for item in head.left_out}

    def table(parameters: Mapping[str, Level]) -> Table:
        name = describe(dict(parameters))
        found = [
            cell.index
            for cell in plan.cells
            if all(cell.parameters.get(key) == level for key, level in parameters.items())
        ]
        if not found:
            lacking = [left_out[item] for item in parameters.items() if item in left_out]
            why = f": {lacking[0]}" if lacking else f" at effort {plan.effort}"
            raise MissingError(f"was not run{why}", name)
        if len(found) > 1:
            raise MissingError(f"names {len(found)} cells of this run, not one", name)
        if protocol.cells[found[0]].skipped:
            raise MissingError(f"was skipped: {protocol.cells[found[0]].skipped}", name)
        return tables[found[0]]

    def by_block(parameters: Mapping[str, Level], indicator: str) -> Blocks:
        found = table(parameters).by_block(indicator)
        if not found:
            raise MissingError(f"has no {indicator} in this run", describe(dict(parameters)))
        return found

    def resolution(parameters: Mapping[str, Level], indicator: str) -> float:
        return table(parameters).resolution(indicator)

    def levels(factor: str) -> Sequence[Level]:
        return list(dict.fromkeys(cell.parameters[factor] for cell in plan.cells))

    return Samples(
        by_block,
        levels,
        lambda name: better.get(name, "neither"),
        resolution,
        is_staged(plan.rules),
        plan.rules.repeats_min,
    )


def quiet_samples(
    head: RunHead,
    plan: Plan,
    protocol: Protocol,
    trials: Sequence[TrialRow],
    figures: FigureTable,
    in_use: Sequence[bool],
    infos: tuple[IndicatorInfo, ...],
) -> Samples | None:
    """The same without the trials in use with a doubt; ``None`` if there are none. A late probe
    makes its own readings doubtful, but not times by the program's own clock."""
    if not protocol.doubtful:
        return None

    def without(doubtful: set[TrialKey]) -> Samples:
        quiet = [
            used and row.outcome.key not in doubtful
            for row, used in zip(trials, in_use, strict=True)
        ]
        return samples_of(head, plan, protocol, tables_of(plan, trials, figures, quiet), infos)

    every = set(protocol.doubtful)
    disturbed = {key for key, (cause, _) in protocol.doubtful.items() if cause != LATE_READING}
    return by_indicator(is_probed, without(every), without(disturbed))
