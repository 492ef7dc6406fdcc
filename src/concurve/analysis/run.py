"""Stored trials → :class:`~concurve.findings.Findings`: the computing between store and views."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from concurve.analysis.best_setting import best_settings
from concurve.analysis.claims import MissingError, Samples, by_indicator
from concurve.analysis.dependence import dependences
from concurve.analysis.dependence import sentences as dependence_sentences
from concurve.analysis.doubt import claims_in_doubt, published_in_doubt
from concurve.analysis.on_demand import OnDemand
from concurve.analysis.sentences import sentences
from concurve.errors import RunError
from concurve.estimate import Estimate
from concurve.figures import FigureTable, decode_figures
from concurve.findings import (
    BestFinding,
    CellFindings,
    CellStatus,
    Dot,
    Factor,
    Findings,
    IndicatorInfo,
    Level,
    Reject,
    RunInfo,
)
from concurve.measuring.plan import Cell, Plan, describe
from concurve.measuring.protocol import CellState, Protocol, TrialKey, replay
from concurve.measuring.run_head import RunHead, decode_head
from concurve.readings.contamination import LATE_READING
from concurve.readings.cpu_measures import cpu_info
from concurve.readings.means import indicator_mean
from concurve.readings.measures import INDICATORS, fairness_info, is_probed, measure
from concurve.readings.thread_measures import THREAD_INDICATORS
from concurve.stats.blocks import without_block_effects
from concurve.stats.intervals import ratio_estimate, scaled
from concurve.store import RunRow, Store, TrialRow
from concurve.wire import TrialRecord, decode_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def findings_of(store: Store, row: RunRow, best_by: str = "", dots: bool = True) -> Findings:
    """Everything that the views of one run show; without ``dots`` the trials one by one are left
    out, for views that show cells only.

    ``best_by`` names the indicator by which settings are best, if not the primary one.

    Raises:
        RunError: no trial has that indicator.
    """
    head = decode_head(row)
    with _no_garbage():
        trials = store.trials(row.id)
        first = store.first_record(row.id)
        record = decode_record(first) if first else None
        return analyse(head, row.state, row.reason, trials, record, best_by, dots)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Nothing made here is garbage before it ends: looking for some, again and again among
    100,000 trials, takes as long as the analysis."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def analyse(
    head: RunHead,
    state: str,
    reason: str,
    trials: Sequence[TrialRow],
    first: TrialRecord | None,
    best_by: str = "",
    dots: bool = True,
) -> Findings:
    """Findings of a run from its head, its trials and one record (for what is absent and why)."""
    plan = head.plan()
    protocol = replay(plan, [row.outcome for row in trials], head.id)
    figures = decode_figures(row.figures for row in trials)
    in_use = _in_use(protocol, trials)
    tables = _tables(plan, trials, figures, in_use)
    indicators = _indicator_infos(head, plan, first, tables)
    cells = _cells(plan, protocol, tables, indicators, first, head)
    rejects = _rejects(plan, protocol)
    best = _best(head, plan, protocol, tables, indicators, best_by)
    samples = _samples(head, plan, protocol, tables, indicators)
    quiet = _quiet_samples(head, plan, protocol, trials, figures, in_use, indicators)
    hangs = dependences(head.study, samples)
    return Findings(
        run=_run_info(head, state, reason, protocol, rejects),
        question=head.study.question,
        source=head.study.source,
        factors=tuple(
            Factor(name=factor.name, levels=factor.levels, work=factor.name == plan.work)
            for factor in head.study.factors_at(head.effort)
        ),
        primary=head.study.primary,
        asked=tuple(item.name for item in head.study.indicators),
        indicators=indicators,
        cells=cells,
        sentences=(
            *dependence_sentences(hangs),
            *sentences(head, protocol, cells, rejects, state, best),
        ),
        rejects=rejects,
        dots=_dots(trials, figures, in_use) if dots else (),
        machine={**head.machine, "versions": head.versions, "programs": head.programs},
        roles=tuple(role.name for role in head.study.roles),
        claims=claims_in_doubt(head.study, samples, quiet),
        dependences=hangs,
        best=best,
        published=published_in_doubt(head.study, samples, quiet, plan.cells[0].parameters),
        test_case=head.study.test_case,
    )


class _Table(NamedTuple):
    """Figures of one cell, by indicator: of the trials in use, and of all; and those in use by
    their block."""

    used: Mapping[str, list[float]]
    every: Mapping[str, list[float]]
    by_block: Callable[[str], Mapping[int, float]]


def _tables(
    plan: Plan, trials: Sequence[TrialRow], figures: FigureTable, in_use: Sequence[bool]
) -> list[_Table]:
    import numpy as np

    cell_of = np.fromiter((row.outcome.key.cell for row in trials), np.intp, len(trials))
    # The rows of each cell, in the order in which they were made.
    by_cell = np.argsort(cell_of, kind="stable")
    ends = np.searchsorted(cell_of[by_cell], np.arange(len(plan.cells) + 1))
    counts = np.asarray(in_use, dtype=bool)
    tables = []
    for first, last in pairwise(ends):
        rows = by_cell[first:last]
        every = _columns(figures, rows)
        used = rows[counts[rows]]
        columns = every if len(used) == len(rows) else _columns(figures, used)
        tables.append(_Table(columns, every, partial(_by_block, figures, trials, used)))
    return tables


def _by_block(
    figures: FigureTable, trials: Sequence[TrialRow], rows: NDArray[np.intp], name: str
) -> dict[int, float]:
    """The figure of some trials of a cell by block; trials without it are left out."""
    values = figures.values[rows, figures.names.index(name)].tolist()
    blocks = [trials[row].outcome.key.block for row in rows]
    return {
        block: value for block, value in zip(blocks, values, strict=True) if not math.isnan(value)
    }


def _columns(figures: FigureTable, rows: NDArray[np.intp]) -> Mapping[str, list[float]]:
    """Figures of some trials by name; a name that none of them has is left out."""
    import numpy as np

    values = figures.values[rows]
    present = ~np.isnan(values)
    places = {figures.names[index]: int(index) for index in np.flatnonzero(present.any(axis=0))}

    def column(name: str) -> list[float]:
        index = places[name]
        return list(values[present[:, index], index].tolist())

    return OnDemand(places, column)


def _in_use(protocol: Protocol, trials: Sequence[TrialRow]) -> list[bool]:
    """Of each trial: does it count in the figures?"""
    used = [cell.used for cell in protocol.cells]
    keys = (row.outcome.key for row in trials)
    return [
        block in used[cell] and used[cell][block][0] == attempt for cell, block, attempt in keys
    ]


def _indicator_infos(
    head: RunHead, plan: Plan, first: TrialRecord | None, tables: list[_Table]
) -> tuple[IndicatorInfo, ...]:
    """Descriptions of all indicators that occur: the laboratory's own, then the reported."""
    own = {info.name: info for info in INDICATORS}
    names = dict.fromkeys(name for table in tables for name in table.every)
    units: dict[str, str] = {}
    if first is not None:
        units = measure(first, head.study.target).units
    for extract in head.study.extracts:
        units[extract.name] = extract.unit
    declared = {item.name: item for item in head.study.indicators}
    infos = []
    for name in [*own, *(name for name in names if name not in own)]:
        base = own.get(name) or THREAD_INDICATORS.get(name) or cpu_info(name)
        base = base or _of_role(name, own)
        if base is None and name not in units:
            base = fairness_info(name)
        asked = declared.get(name)
        infos.append(
            IndicatorInfo(
                name=name,
                label=(asked and asked.label) or (base.label if base else name.replace("_", " ")),
                unit=(asked and asked.unit) or units.get(name) or (base.unit if base else ""),
                better=asked.better
                if asked and asked.better != "neither"
                else (base.better if base else "neither"),
                note=base.note if base else "reported by the program",
            )
        )
    return tuple(infos)


def _of_role(name: str, own: dict[str, IndicatorInfo]) -> IndicatorInfo | None:
    """``load.cpu_seconds`` is described like ``cpu_seconds``."""
    role, _, plain = name.rpartition(".")
    base = own.get(plain)
    if not role or base is None:
        return None
    return IndicatorInfo(
        name=name, label=f"{role}: {base.label}", unit=base.unit, better=base.better, note=base.note
    )


def _cells(
    plan: Plan,
    protocol: Protocol,
    tables: list[_Table],
    infos: tuple[IndicatorInfo, ...],
    first: TrialRecord | None,
    head: RunHead,
) -> tuple[CellFindings, ...]:
    units = {info.name: info.unit for info in infos}
    absent = _absent(first, head.study.target)
    pilot = plan.rules.repeats_min
    cells = []
    for cell in plan.cells:
        table, state = tables[cell.index], protocol.cells[cell.index]
        indicators = OnDemand(
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
                stop_reason=state.stop,
                note=state.skipped,
            )
        )
    return tuple(cells)


def _mean(table: _Table, units: Mapping[str, str], pilot: int, name: str) -> Estimate:
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


def _derived(plan: Plan, cell: Cell, tables: list[_Table]) -> dict[str, Estimate]:
    """Speed-up and efficiency against the base cell (facts: say the base, and its value); of a
    simulation they would be the simulator's."""
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
    if plan.work is None:
        return None
    own, base = cell.parameters[plan.work], plan.cells[cell.base].parameters[plan.work]
    if not isinstance(own, int | float) or not isinstance(base, int | float) or base <= 0:
        return None
    return own / base if own > 0 else None


def _samples(
    head: RunHead,
    plan: Plan,
    protocol: Protocol,
    tables: list[_Table],
    infos: tuple[IndicatorInfo, ...],
) -> Samples:
    """What the tests of claims read: a run's values by cell and indicator."""
    better = {info.name: info.better for info in infos}
    left_out = {(item.factor, item.level): item.says for item in head.left_out}

    def table(parameters: Mapping[str, Level]) -> _Table:
        name = describe(dict(parameters))
        found = [
            cell.index
            for cell in plan.cells
            if all(cell.parameters.get(key) == level for key, level in parameters.items())
        ]
        if not found:
            lacking = [left_out[item] for item in parameters.items() if item in left_out]
            why = f": {lacking[0]}" if lacking else f" at effort {plan.effort}"
            raise MissingError(f"{name} was not run{why}")
        if len(found) > 1:
            raise MissingError(f"{name} names {len(found)} cells of this run, not one")
        if protocol.cells[found[0]].skipped:
            raise MissingError(f"{name} was skipped: {protocol.cells[found[0]].skipped}")
        return tables[found[0]]

    def values(parameters: Mapping[str, Level], indicator: str) -> Sequence[float]:
        column = table(parameters).used.get(indicator)
        if not column:
            raise MissingError(f"{describe(dict(parameters))} has no {indicator} in this run")
        return column

    def by_block(parameters: Mapping[str, Level], indicator: str) -> Mapping[int, float]:
        return table(parameters).by_block(indicator)

    def levels(factor: str) -> Sequence[Level]:
        return list(dict.fromkeys(cell.parameters[factor] for cell in plan.cells))

    return Samples(
        values,
        levels,
        lambda name: better.get(name, "neither"),
        plan.rules.repeats_min,
        by_block if plan.study.simulation else None,
    )


def _quiet_samples(
    head: RunHead,
    plan: Plan,
    protocol: Protocol,
    trials: Sequence[TrialRow],
    figures: FigureTable,
    in_use: Sequence[bool],
    infos: tuple[IndicatorInfo, ...],
) -> Samples | None:
    """The same without the trials in use with a doubt; ``None`` if there are none. Probes that were
    read late cast it on what they read, and not on times by the program's own clock."""
    if not protocol.doubtful:
        return None

    def without(doubtful: set[TrialKey]) -> Samples:
        quiet = [
            used and row.outcome.key not in doubtful
            for row, used in zip(trials, in_use, strict=True)
        ]
        return _samples(head, plan, protocol, _tables(plan, trials, figures, quiet), infos)

    every = set(protocol.doubtful)
    disturbed = {key for key, (cause, _) in protocol.doubtful.items() if cause != LATE_READING}
    return by_indicator(is_probed, without(every), without(disturbed))


def _best(
    head: RunHead,
    plan: Plan,
    protocol: Protocol,
    tables: list[_Table],
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


def _rejects(plan: Plan, protocol: Protocol) -> tuple[Reject, ...]:
    found = [(key, cause, False) for key, cause in protocol.rejected.items()]
    found += [(key, cause, True) for key, cause in protocol.doubtful.items()]
    return tuple(
        Reject(
            cell=key.cell,
            parameters=plan.cells[key.cell].parameters,
            block=key.block,
            attempt=key.attempt,
            cause=cause,
            detail=detail,
            used=used,
        )
        for key, (cause, detail), used in sorted(found)
    )


def _dots(
    trials: Sequence[TrialRow], figures: FigureTable, in_use: Sequence[bool]
) -> tuple[Dot, ...]:
    return tuple(
        Dot(
            cell=row.outcome.key.cell,
            block=row.outcome.key.block,
            attempt=row.outcome.key.attempt,
            used=used,
            values=figures.row(index),
        )
        for index, (row, used) in enumerate(zip(trials, in_use, strict=True))
    )


def _run_info(
    head: RunHead, state: str, reason: str, protocol: Protocol, rejects: tuple[Reject, ...]
) -> RunInfo:
    return RunInfo(
        id=head.id,
        study=head.study.name,
        effort=head.effort,
        seed=head.seed,
        started=head.started,
        state=state,  # type: ignore[arg-type]
        reason=reason,
        trials=protocol.done,
        rejected=sum(not reject.used for reject in rejects),
        duration_seconds=protocol.elapsed,
        again=head.again,
        version=head.versions.get("concurve", ""),
        pilot=head.rules.repeats_min,
        simulation=head.study.simulation,
    )
