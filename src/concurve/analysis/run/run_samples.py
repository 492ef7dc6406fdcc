"""What the tests of claims read of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from concurve.analysis.run.tables import Table, is_staged
from concurve.analysis.samples import MissingError, Samples
from concurve.planning.plan import Cell, Plan, describe
from concurve.planning.protocol import Protocol
from concurve.stats.blocks import Blocks
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo, Level, cell_key, same_level


def samples_of(
    head: RunHead,
    plan: Plan,
    protocol: Protocol,
    tables: Sequence[Table],
    infos: tuple[IndicatorInfo, ...],
    quiet: Sequence[Table] | None = None,
    absent: Mapping[str, str] = MappingProxyType({}),
    failed: Mapping[int, str] = MappingProxyType({}),
) -> Samples:
    """What the tests of claims read: a run's values by cell and indicator. ``quiet`` are the tables
    of the quiet trials alone, where those of the figures hold others too; ``absent`` says why
    indicators are absent. Cells whose load ``failed`` have no values: those are of errors."""
    better = {info.name: info.better for info in infos}
    left_out = {(item.factor, str(item.level)): item.says for item in head.left_out}

    places = {cell_key(cell.parameters): cell.index for cell in plan.cells}

    def cell_at(parameters: Mapping[str, Level]) -> int:
        place = places.get(cell_key(parameters))
        if place is not None:
            return place
        name = describe(dict(parameters))
        found = [
            cell.index
            for cell in plan.cells
            if all(_has(cell, factor, level) for factor, level in parameters.items())
        ]
        if not found:
            items = ((factor, str(level)) for factor, level in parameters.items())
            lacking = [left_out[item] for item in items if item in left_out]
            why = f": {lacking[0]}" if lacking else f" at effort {plan.effort}"
            raise MissingError(f"was not run{why}", name)
        if len(found) > 1:
            raise MissingError(f"names {len(found)} cells of this run, not one", name)
        return found[0]

    def table(parameters: Mapping[str, Level]) -> Table:
        place, name = cell_at(parameters), describe(dict(parameters))
        if skipped := protocol.cells[place].skipped:
            raise MissingError(f"was skipped: {skipped}", name)
        if place in failed:
            raise MissingError(f"has no figure: its load failed ({failed[place]})", name)
        return tables[place]

    def by_block(parameters: Mapping[str, Level], indicator: str) -> Blocks:
        found = table(parameters).by_block(indicator)
        if not found:
            why = f": {absent[indicator]}" if indicator in absent else ""
            raise MissingError(f"has no {indicator} in this run{why}", describe(dict(parameters)))
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
        None
        if quiet is None
        else samples_of(head, plan, protocol, quiet, infos, None, absent, failed),
    )


def _has(cell: Cell, factor: str, level: Level) -> bool:
    """Is this the level of the factor in the cell?"""
    own = cell.parameters.get(factor)
    return own is not None and same_level(level, [own]) is not None
