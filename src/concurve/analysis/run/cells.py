"""The cells of a run: means with their intervals, and what is derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from concurve.analysis.lazy_mapping import LazyMapping
from concurve.analysis.run.tables import Table
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings, CellStatus
from concurve.planning.plan import Cell, Plan
from concurve.planning.protocol import CellState, Protocol
from concurve.readings.means import indicator_mean
from concurve.readings.measures import measure
from concurve.stats.intervals import ratio_estimate, scaled
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo
from concurve.wire.record import TrialRecord


def cell_findings(
    plan: Plan,
    protocol: Protocol,
    tables: list[Table],
    infos: tuple[IndicatorInfo, ...],
    first: TrialRecord | None,
    head: RunHead,
) -> tuple[CellFindings, ...]:
    """The findings of each cell; an estimate is computed when it is first read."""
    units = {info.name: info.unit for info in infos}
    absent = _absent(first, head.study.target)
    pilot = plan.rules.repeats_min
    cells = []
    for cell in plan.cells:
        table, state = tables[cell.index], protocol.cells[cell.index]
        indicators = LazyMapping(
            table.used, partial(_mean, table, units, pilot), _derived(plan, cell, tables)
        )
        everything = table.every.get(head.study.primary, [])
        rejected = len(everything) > len(table.used.get(head.study.primary, []))
        cells.append(
            CellFindings(
                index=cell.index,
                parameters=cell.parameters,
                status=_status(state, protocol),
                indicators=indicators,
                absent={k: v for k, v in absent.items() if k not in indicators},
                including_rejects=indicator_mean(
                    head.study.primary, everything, units.get(head.study.primary, "")
                )
                if rejected
                else None,
                base=cell.base,
                trials=len(state.used),
                stop_reason=state.stop_reason,
                note=state.skipped,
            )
        )
    return tuple(cells)


def _mean(table: Table, units: Mapping[str, str], pilot: int, name: str) -> Estimate:
    """An indicator of a cell."""
    return indicator_mean(name, table.used[name], units.get(name, ""), pilot)


def _status(state: CellState, protocol: Protocol) -> CellStatus:
    if state.skipped:
        return "skipped"
    if not state.used:
        return "pending"
    return "ok" if len(state.used) >= protocol.rules.repeats_min else "partial"


def _absent(first: TrialRecord | None, target: str) -> dict[str, str]:
    return dict(measure(first, target).absent) if first else {}


def _derived(plan: Plan, cell: Cell, tables: list[Table]) -> dict[str, Estimate]:
    """Speed-up and efficiency against the base cell. None in a simulation: they would be those of
    the simulator. No efficiency if each base cell has the same concurrency as the cells that are
    compared with it."""
    if plan.study.simulation:
        return {}
    sides = tables[cell.index].used, tables[cell.base].used
    times = ("seconds_per_operation", "wall_seconds")
    name = next((name for name in times if all(side.get(name) for side in sides)), "")
    own, base = (side.get(name) for side in sides)
    if not own or not base:
        return {}
    if cell.index == cell.base:
        speedup: Estimate | None = Estimate(value=1.0, low=1.0, high=1.0, n=len(own))
    else:
        speedup = ratio_estimate(base, own, pilot=plan.rules.repeats_min)
    if speedup is None:
        return {}
    derived = {"speedup": scaled(speedup, 1.0, "×")}
    growth = _growth(plan, cell)
    if growth:
        derived["efficiency"] = scaled(speedup, 1 / growth, "")
    return derived


def _growth(plan: Plan, cell: Cell) -> float | None:
    """By how much the concurrency of a cell exceeds that of its base."""
    if plan.work is None or not plan.work_grows:
        return None
    own, base = cell.parameters[plan.work], plan.cells[cell.base].parameters[plan.work]
    if not isinstance(own, int | float) or not isinstance(base, int | float) or base <= 0:
        return None
    return own / base if own > 0 else None
