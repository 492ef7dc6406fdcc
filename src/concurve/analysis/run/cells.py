"""The cells of a run: medians with their intervals, and what is derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from concurve import words
from concurve.analysis.ground import Speed
from concurve.analysis.lazy_mapping import LazyMapping
from concurve.analysis.run.doubted import Chosen
from concurve.analysis.run.tables import Table, is_staged
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.study import Study
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings, CellStatus
from concurve.planning.doubt import is_doubtful
from concurve.planning.plan import Cell, Plan
from concurve.planning.protocol import NOBODYS, CellState, Protocol, StopReason
from concurve.readings.centres import indicator_centre, indicator_centres
from concurve.readings.contamination import BY_PROCESSES, MACHINE_WIDE
from concurve.readings.measures import measure
from concurve.readings.operations import asked_of
from concurve.stats.centre import staged
from concurve.stats.comparison import Direction, alike_intervals, deciding_intervals, directions
from concurve.stats.intervals import scaled
from concurve.stats.moments import growth
from concurve.stats.signed_ranks import Ranked
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo, Level
from concurve.wire.record import TrialRecord

#: From so many cells on, or so many trials, figures are computed for all of the cells together.
MANY = 50
MANY_TRIALS = 5_000

#: Why a cell has no speed-up.
LOAD_FAILED = "its load failed, or that of the base cell"


def cell_findings(
    plan: Plan,
    protocol: Protocol,
    chosen: Chosen,
    every: Sequence[Table],
    samples: Samples,
    infos: tuple[IndicatorInfo, ...],
    speed: Speed | None,
    absent: Mapping[str, str],
    head: RunHead,
    failed: Mapping[int, str] = {},
) -> tuple[CellFindings, ...]:
    """The findings of each cell; an estimate is computed when it is first read. ``every`` are the
    tables of all trials in use, ``absent`` the reasons of :func:`absent_of`. The cells whose load
    ``failed``, each with what of it did, have no speed-up, nor have those of which one is the
    base."""
    tables, primary = chosen.tables, head.study.primary
    staged = is_staged(plan.rules)
    units = {info.name: info.unit for info in infos}
    centres = _Centres(chosen, units, staged)
    speedups = _speedups(plan, tables, speed, samples)
    cells = []
    without = dict.fromkeys(("speedup", "efficiency"), LOAD_FAILED)
    for cell in plan.cells:
        table, state = tables[cell.index], protocol.cells[cell.index]
        is_compared = not failed or not {cell.index, cell.base} & failed.keys()
        indicators = LazyMapping(
            table.used,
            partial(centres.of, cell.index),
            _derived(plan, cell, speedups[cell.index] if is_compared else None),
        )
        everything = table.every.get(primary, [])
        in_use = every[cell.index].used.get(primary, [])
        set_aside = len(in_use) - len(table.used.get(primary, []))
        cells.append(
            CellFindings(
                index=cell.index,
                parameters=cell.parameters,
                status=_status(state, protocol),
                indicators=indicators,
                resolutions=LazyMapping(table.used, table.resolution),
                absent={
                    **{k: v for k, v in absent.items() if k not in indicators},
                    **({} if is_compared else without),
                },
                including_rejects=indicator_centre(
                    primary, everything, units.get(primary, ""), staged, table.resolution(primary)
                )
                if len(everything) > len(in_use)
                else None,
                doubtful=chosen.doubtful.get(cell.index, 0),
                set_aside=set_aside,
                including_doubtful=indicator_centre(
                    primary, in_use, units.get(primary, ""), staged, table.resolution(primary)
                )
                if set_aside
                else None,
                load_failed=failed.get(cell.index, ""),
                base=cell.base,
                trials=len(state.used),
                stop_reason=state.stop_reason,
                note=state.skipped
                or _ended_by_time(state, protocol, head)
                or _failed_so_far(cell.index, protocol),
            )
        )
    return tuple(cells)


class _Centres:
    """The centre of each indicator in each cell. Where there are many cells, an indicator is
    computed for all of them when one is first read."""

    def __init__(self, chosen: Chosen, units: Mapping[str, str], staged: bool) -> None:
        self._chosen = chosen
        self._units = units
        self._staged = staged
        are_many = len(chosen.tables) >= MANY or len(chosen.set_aside) >= MANY_TRIALS
        self._are_many = are_many and chosen.quiet is None
        self._known: dict[str, dict[int, Estimate]] = {}

    def of(self, index: int, name: str) -> Estimate:
        """An indicator of a cell."""
        if self._are_many:
            if name not in self._known:
                self._known[name] = self._all(name)
            if index in self._known[name]:
                return self._known[name][index]
        return self._alone(index, name)

    def _alone(self, index: int, name: str) -> Estimate:
        table, quiet = self._chosen.tables[index], self._chosen.quiet
        values = table.used[name]
        alone = values if quiet is None else quiet[index].used.get(name, ())
        found = indicator_centre(
            name, values, self._units.get(name, ""), self._staged, table.resolution(name)
        )
        return found.doubted(alone) if is_doubtful(len(alone), len(values)) else found

    def _all(self, name: str) -> dict[int, Estimate]:
        """Those of the cells whose trials are all finite: others are refused when they are read."""
        import numpy as np

        tables, unit = self._chosen.tables, self._units.get(name, "")
        columns = [table.array(name) for table in tables]
        alike: dict[int, list[int]] = {}
        for index, column in enumerate(columns):
            alike.setdefault(len(column), []).append(index)
        found: dict[int, Estimate] = {}
        for count, indices in alike.items():
            if not count:
                continue
            rows = np.array([columns[index] for index in indices])
            finite = np.isfinite(rows).all(axis=1)
            some = [index for index, is_finite in zip(indices, finite, strict=True) if is_finite]
            off = [tables[index].resolution(name) for index in some]
            centres = indicator_centres(name, rows[finite], unit, self._staged, off)
            found.update(zip(some, centres, strict=True))
        return found


def _status(state: CellState, protocol: Protocol) -> CellStatus:
    if state.skipped:
        return "skipped"
    if not state.used:
        return "pending"
    return "ok" if len(state.used) >= protocol.rules.repeats_min else "partial"


def _ended_by_time(state: CellState, protocol: Protocol, head: RunHead) -> str:
    """Which limit left a cell with fewer trials than it was to have, and how to go on; empty where
    none did."""
    if state.stop is not StopReason.TIME or _status(state, protocol) != "partial":
        return ""
    return (
        f"no more of its trials fitted in the time allowance of "
        f"{words.duration(head.rules.time_allowed_seconds)}; "
        f"concurve resume {head.id} --max-time "
        f"{words.option_duration(protocol.seconds_for_all())} goes on"
    )


def _failed_so_far(index: int, protocol: Protocol) -> str:
    """Why a cell has no trial although one was tried: its first failure; empty where there is
    none."""
    state = protocol.cells[index]
    if state.used or not state.errors:
        return ""
    causes = (why for key, why in protocol.rejected.items() if key.cell == index)
    nobodys = {*NOBODYS, *MACHINE_WIDE, *BY_PROCESSES}
    return next((words.why(*why) for why in causes if why[0] not in nobodys), "")


def absent_of(first: TrialRecord | None, study: Study) -> dict[str, str]:
    """Why figures are absent, by the record of the trial that ran first."""
    if first is None:
        return {}
    # A trial that went wrong may lack figures that others have.
    asked = asked_of(study)
    extracts = (msgspec.structs.replace(extract, optional=True) for extract in asked.extracts)
    return dict(measure(first, asked._replace(extracts=tuple(extracts))).absent)


def _speedups(
    plan: Plan, tables: Sequence[Table], speed: Speed | None, samples: Samples
) -> list[Estimate | None]:
    """The speed-up of each cell over its base, block by block. None in a simulation: it would be
    that of the simulator; and none where nothing compares the cells."""
    found: list[Estimate | None] = [None] * len(plan.cells)
    if plan.study.simulation or speed is None:
        return found
    others = [cell for cell in plan.cells if cell.index != cell.base]
    pairs = [_sides(plan, cell, speed) for cell in others]
    ratios = samples.ratios(pairs, speed.indicator.name)
    for cell, ratio in zip(others, ratios, strict=True):
        found[cell.index] = ratio
    for cell in plan.cells:
        n = len(tables[cell.index].used.get(speed.indicator.name, ()))
        if cell.index == cell.base and n:
            found[cell.index] = Estimate(value=1.0, low=1.0, high=1.0, n=n)
    return found


def _derived(plan: Plan, cell: Cell, speedup: Estimate | None) -> dict[str, Estimate]:
    """Speed-up and efficiency against the base cell. No efficiency if each base cell has the same
    concurrency as the cells that are compared with it."""
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
    pair = _sides(plan, plan.cells[index], speed)
    try:
        return samples.ratio(*pair, speed.indicator.name, 1 - 0.05 / comparisons)
    except MissingError:
        return None


def speedups_judged(
    plan: Plan, speed: Speed, samples: Samples, indices: Sequence[int], effect: float
) -> list[tuple[Direction, Estimate | None]]:
    """The verdicts of a comparison on the speed-ups of these cells together, and the intervals by
    which they are told; no interval where a speed-up has none."""
    pairs = [_sides(plan, plan.cells[index], speed) for index in indices]
    logs: list[Ranked | None] = []
    for pair in pairs:
        try:
            logs.append(samples.log_ratios(*pair, speed.indicator.name))
        except MissingError:
            logs.append(None)
    level = 1 - staged(0.95, samples.is_staged)
    found = directions(logs, effect, level)
    deciding = deciding_intervals(logs, level)
    alike = alike_intervals(logs, effect, level)
    judged: list[tuple[Direction, Estimate | None]] = []
    for direction, log, apart, within in zip(found, logs, deciding, alike, strict=True):
        ends = within if direction == "same" else apart
        ratio = None
        if log is not None and ends is not None:
            low, high = map(growth, ends)
            ratio = Estimate(value=growth(log.value), low=low, high=high, n=len(log.values))
        judged.append((direction, ratio))
    return judged


def _sides(plan: Plan, cell: Cell, speed: Speed) -> tuple[Mapping[str, Level], Mapping[str, Level]]:
    """The cells whose ratio says how many times as fast as its base a cell is: a time over the
    cell's, or a rate over the base's."""
    own, base = cell.parameters, plan.cells[cell.base].parameters
    return (own, base) if speed.is_rate else (base, own)


def _growth(plan: Plan, cell: Cell) -> float | None:
    """By how much the concurrency of a cell exceeds that of its base."""
    if plan.work is None or not plan.work_grows:
        return None
    own, base = cell.parameters[plan.work], plan.cells[cell.base].parameters[plan.work]
    if not isinstance(own, int | float) or not isinstance(base, int | float) or base <= 0:
        return None
    return own / base if own > 0 else None
