"""Where the trials of a run have a shape that one figure does not say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from concurve.analysis.run.tables import Table
from concurve.findings.cells import CellFindings, FastTail, OddTrial, SlowTail, TwoLevels
from concurve.findings.run import LevelChange
from concurve.planning.plan import Plan
from concurve.stats import serial, shape
from concurve.stats.best import ALIKE
from concurve.stats.blocks import Blocks, quotients
from concurve.stats.centre import centre_estimate
from concurve.stats.resolution import relative
from concurve.terms import IndicatorInfo

#: A trial makes an interval wide that is less than this share as wide without it.
_MADE_WIDE = 0.5
#: Levels are told apart that differ by more ticks of their clock than this.
_TICKS = 2


class InTime(NamedTuple):
    """What the cells of a run share in its time: a ``change`` of their level, and by which share it
    wandered (``drift``). ``is_unlike``: their level changes, and they do not share that;
    ``is_open``: it changes, and the trials do not show that they share it; then ``course`` is by
    which share it is higher in the last third of the run than in the first, if that is known."""

    change: LevelChange | None = None
    drift: float | None = None
    is_unlike: bool = False
    is_open: bool = False
    course: float | None = None


def with_shapes(
    cells: Sequence[CellFindings],
    tables: Sequence[Table],
    info: IndicatorInfo,
    *,
    by_data: bool = False,
) -> tuple[CellFindings, ...]:
    """The cells with the levels and the tails of their trials by an indicator. ``by_data``: their
    spread has set their number."""
    shaped = set(_may_be_shaped(tables, info))
    return tuple(
        _shaped(cell, tables[cell.index], info, by_data) if cell.index in shaped else cell
        for cell in cells
    )


def with_widened(
    plan: Plan, cells: Sequence[CellFindings], tables: Sequence[Table], name: str
) -> tuple[CellFindings, ...]:
    """The cells with the factor by which the interval of their speed-up (by this indicator) is
    wider because its blocks depend on each other, and whether that may be chance among all of
    them: who divides the trials by hand is told in any case."""
    others = [cell for cell in cells if cell.index != cell.base and "speedup" in cell.indicators]
    level = serial.LEVEL / max(1, len(others))
    series: list[list[float]] = []
    for cell in others:
        base = tables[plan.cells[cell.index].base].by_block(name)
        ratios = quotients(tables[cell.index].by_block(name), base)
        series.append(list(ratios.values()) if ratios else [])
    found = {
        cell.index: (factor, p > level)
        for cell, values, p in zip(others, series, serial.p_values(series), strict=True)
        if (factor := serial.widening(values)) > 1
    }
    return tuple(
        msgspec.structs.replace(
            cell, widened=found[cell.index][0], widened_by_chance=found[cell.index][1]
        )
        if cell.index in found
        else cell
        for cell in cells
    )


def in_time_of(tables: Sequence[Table], name: str) -> InTime:
    """How an indicator changed in the time of a run."""
    cells = [table.by_block(name) for table in tables]
    change, drift = shape.level_change(cells), shape.drift(cells)
    if change is None and drift is None:
        return InTime()
    if change is not None and drift is not None and not shape.explains(change, cells):
        change = None
    offs = [relative(table.resolution(name), list(cell.values())) if cell else 0.0
            for table, cell in zip(tables, cells, strict=True)]  # fmt: skip
    if not shape.is_shared(cells, change, offs):
        return InTime(is_unlike=True)
    if not shape.is_shown_shared(cells, ALIKE):
        return InTime(is_open=True, course=shape.course(cells))
    found = None if change is None else LevelChange(block=change.block, factor=change.factor)
    return InTime(found, drift)


def _may_be_shaped(tables: Sequence[Table], info: IndicatorInfo) -> list[int]:
    """The cells whose trials are worth a closer look; cells with as many trials are judged
    together."""
    import numpy as np

    columns = [table.array(info.name) for table in tables]
    alike: dict[int, list[int]] = {}
    for index, column in enumerate(columns):
        alike.setdefault(len(column), []).append(index)
    found: list[int] = []
    for count, indices in alike.items():
        if count >= shape.TRIALS_MIN:
            rows = np.array([columns[index] for index in indices])
            judged = shape.may_have_shape(rows, info.better)
            found += [index for index, may in zip(indices, judged.tolist(), strict=True) if may]
    return found


def _shaped(cell: CellFindings, table: Table, info: IndicatorInfo, by_data: bool) -> CellFindings:
    values = table.used[info.name]
    levels = shape.two_levels(values)
    if levels and levels.high - levels.low > _TICKS * table.resolution(info.name):
        return msgspec.structs.replace(cell, two_levels=TwoLevels(**levels._asdict()))
    off = table.resolution(info.name)
    slow, fast = (find(values, info.better, off) for find in (shape.slow_tail, shape.fast_tail))
    far = [(it.trials, it[2]) for it in (slow, fast) if it is not None]
    odd = None
    if len(far) == 1 and far[0][0] == 1:
        odd = _odd_trial(table.by_block(info.name), far[0][1], info.unit, by_data)
    return msgspec.structs.replace(
        cell,
        odd_trial=odd,
        slow_tail=SlowTail(**slow._asdict()) if slow else None,
        fast_tail=FastTail(**fast._asdict()) if fast else None,
    )


def _odd_trial(blocks: Blocks, value: float, unit: str, by_data: bool) -> OddTrial | None:
    """The only outlier, if the interval of the centre were less than half as wide without it."""
    block = next(block for block, own in blocks.items() if own == value)
    every = centre_estimate(list(blocks.values()), unit, is_staged=by_data)
    rest = centre_estimate(
        [own for at, own in blocks.items() if at != block], unit, is_staged=by_data
    )
    if rest.half_width is None or every.half_width is None or rest.low is None or rest.high is None:
        return None
    if not rest.half_width < every.half_width * _MADE_WIDE:
        return None
    return OddTrial(trial=block + 1, value=value, without=rest.value, low=rest.low, high=rest.high)
