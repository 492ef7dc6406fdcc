"""Where the trials of a run have a shape that one figure does not say."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from concurve.analysis.run.tables import Table
from concurve.findings.cells import CellFindings, SlowTail, TwoLevels
from concurve.findings.run import LevelChange
from concurve.stats import shape
from concurve.terms import IndicatorInfo

#: Levels are told apart that differ by more ticks of their clock than this.
_TICKS = 2


def with_shapes(
    cells: Sequence[CellFindings], tables: Sequence[Table], info: IndicatorInfo
) -> tuple[CellFindings, ...]:
    """The cells with the levels and the tail of their trials by an indicator."""
    return tuple(_shaped(cell, tables[cell.index], info) for cell in cells)


def level_change_of(tables: Sequence[Table], name: str) -> LevelChange | None:
    """The change in time of an indicator that the cells of a run share."""
    found = shape.level_change([table.by_block(name) for table in tables])
    return None if found is None else LevelChange(block=found.block, factor=found.factor)


def _shaped(cell: CellFindings, table: Table, info: IndicatorInfo) -> CellFindings:
    values = table.used.get(info.name, [])
    if len(values) < shape.TRIALS_MIN:
        return cell
    levels = shape.two_levels(values)
    if levels and levels.high - levels.low > _TICKS * table.resolution(info.name):
        return msgspec.structs.replace(cell, two_levels=TwoLevels(**levels._asdict()))
    tail = shape.slow_tail(values, info.better)
    return msgspec.structs.replace(cell, slow_tail=SlowTail(**tail._asdict())) if tail else cell
