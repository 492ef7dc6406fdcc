"""The best settings of a run, by its primary indicator or another."""

from __future__ import annotations

from collections.abc import Sequence

from concurve.analysis.best_setting import best_settings
from concurve.analysis.run.tables import Table
from concurve.errors import RunError
from concurve.findings.best import BestFinding
from concurve.measuring.plan import Plan
from concurve.measuring.protocol import Protocol
from concurve.stats.blocks import without_block_effects
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo


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
