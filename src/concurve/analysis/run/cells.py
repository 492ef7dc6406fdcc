"""The cells of a run: medians with their intervals, and what is derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from concurve.analysis.ground import Speed
from concurve.analysis.lazy_mapping import LazyMapping
from concurve.analysis.run.doubted import Chosen
from concurve.analysis.run.tables import Table, is_staged
from concurve.analysis.samples import MissingError, Samples, is_doubtful
from concurve.definition.study import Study
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings, CellStatus
from concurve.planning.plan import Cell, Plan
from concurve.planning.protocol import CellState, Protocol
from concurve.readings.centres import indicator_centre
from concurve.readings.measures import measure
from concurve.readings.operations import asked_of
from concurve.stats.intervals import scaled
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo
from concurve.wire.record import TrialRecord


def cell_findings(
    plan: Plan,
    protocol: Protocol,
    chosen: Chosen,
    every: Sequence[Table],
    samples: Samples,
    infos: tuple[IndicatorInfo, ...],
    speed: Speed | None,
    first: TrialRecord | None,
    head: RunHead,
) -> tuple[CellFindings, ...]:
    """The findings of each cell; an estimate is computed when it is first read. ``every`` are the
    tables of all trials in use."""
    tables, primary = chosen.tables, head.study.primary
    staged = is_staged(plan.rules)
    units = {info.name: info.unit for info in infos}
    absent = _absent(first, head.study)
    cells = []
    for cell in plan.cells:
        table, state = tables[cell.index], protocol.cells[cell.index]
        indicators = LazyMapping(
            table.used,
            partial(
                _centre, table, chosen.quiet[cell.index] if chosen.quiet else None, units, staged
            ),
            _derived(plan, cell, tables, speed, samples),
        )
        everything = table.every.get(primary, [])
        in_use = every[cell.index].used.get(primary, [])
        set_aside = len(in_use) > len(table.used.get(primary, []))
        cells.append(
            CellFindings(
                index=cell.index,
                parameters=cell.parameters,
                status=_status(state, protocol),
                indicators=indicators,
                resolutions=LazyMapping(table.used, table.resolution),
                absent={k: v for k, v in absent.items() if k not in indicators},
                including_rejects=indicator_centre(primary, everything, units.get(primary, ""))
                if len(everything) > len(in_use)
                else None,
                doubtful=chosen.doubtful.get(cell.index, 0),
                including_doubtful=indicator_centre(
                    primary, in_use, units.get(primary, ""), staged, table.resolution(primary)
                )
                if set_aside
                else None,
                base=cell.base,
                trials=len(state.used),
                stop_reason=state.stop_reason,
                note=state.skipped,
            )
        )
    return tuple(cells)


def _centre(
    table: Table, quiet: Table | None, units: Mapping[str, str], staged: bool, name: str
) -> Estimate:
    """An indicator of a cell."""

    def of(values: Sequence[float]) -> Estimate:
        return indicator_centre(name, values, units.get(name, ""), staged, table.resolution(name))

    values = table.used[name]
    alone = values if quiet is None else quiet.used.get(name, ())
    found = of(values)
    return found.doubted(alone) if is_doubtful(len(alone), len(values)) else found


def _status(state: CellState, protocol: Protocol) -> CellStatus:
    if state.skipped:
        return "skipped"
    if not state.used:
        return "pending"
    return "ok" if len(state.used) >= protocol.rules.repeats_min else "partial"


def _absent(first: TrialRecord | None, study: Study) -> dict[str, str]:
    if first is None:
        return {}
    # A trial that went wrong may lack figures that others have.
    asked = asked_of(study)
    extracts = (msgspec.structs.replace(extract, optional=True) for extract in asked.extracts)
    return dict(measure(first, asked._replace(extracts=tuple(extracts))).absent)


def _derived(
    plan: Plan, cell: Cell, tables: Sequence[Table], speed: Speed | None, samples: Samples
) -> dict[str, Estimate]:
    """Speed-up and efficiency against the base cell, block by block. None in a simulation: they
    would be those of the simulator; and none where nothing compares the cells. No efficiency if
    each base cell has the same concurrency as the cells that are compared with it."""
    if plan.study.simulation or speed is None:
        return {}
    if cell.index == cell.base:
        n = len(tables[cell.index].used.get(speed.indicator.name, ()))
        speedup = Estimate(value=1.0, low=1.0, high=1.0, n=n) if n else None
    else:
        speedup = _ratio(samples, plan.cells[cell.base], cell, speed)
    if speedup is None:
        return {}
    derived = {"speedup": scaled(speedup, 1.0, "×")}
    growth = _growth(plan, cell)
    if growth:
        derived["efficiency"] = scaled(speedup, 1 / growth, "")
    return derived


def speedup_among(
    plan: Plan, speed: Speed | None, samples: Samples, index: int, comparisons: int
) -> Estimate | None:
    """The speed-up of a cell with the interval that holds where it is the greatest of so many
    (Bonferroni)."""
    if speed is None:
        return None
    cell = plan.cells[index]
    confidence = 1 - 0.05 / comparisons
    return _ratio(samples, plan.cells[cell.base], cell, speed, confidence)


def _ratio(
    samples: Samples, base: Cell, cell: Cell, speed: Speed, confidence: float = 0.95
) -> Estimate | None:
    """How many times as fast as its base a cell is: a time over the cell's, or a rate over the
    base's."""
    top, bottom = (cell, base) if speed.is_rate else (base, cell)
    try:
        return samples.ratio(top.parameters, bottom.parameters, speed.indicator.name, confidence)
    except MissingError:
        return None


def _growth(plan: Plan, cell: Cell) -> float | None:
    """By how much the concurrency of a cell exceeds that of its base."""
    if plan.work is None or not plan.work_grows:
        return None
    own, base = cell.parameters[plan.work], plan.cells[cell.base].parameters[plan.work]
    if not isinstance(own, int | float) or not isinstance(base, int | float) or base <= 0:
        return None
    return own / base if own > 0 else None
