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
    shaped = set(_may_be_shaped(tables, info))
    return tuple(
        _shaped(cell, tables[cell.index], info) if cell.index in shaped else cell for cell in cells
    )


def level_change_of(tables: Sequence[Table], name: str) -> LevelChange | None:
    """The change in time of an indicator that the cells of a run share."""
    found = shape.level_change([table.by_block(name) for table in tables])
    return None if found is None else LevelChange(block=found.block, factor=found.factor)


def _may_be_shaped(tables: Sequence[Table], info: IndicatorInfo) -> list[int]:
    """The cells whose trials are worth a closer look; cells with as many trials are judged
    together."""
    import numpy as np

    alike: dict[int, list[int]] = {}
    for index, table in enumerate(tables):
        alike.setdefault(len(table.used.get(info.name, [])), []).append(index)
    found: list[int] = []
    for count, indices in alike.items():
        if count >= shape.TRIALS_MIN:
            rows = np.array([tables[index].used[info.name] for index in indices])
            judged = shape.may_have_shape(rows, info.better)
            found += [index for index, may in zip(indices, judged.tolist(), strict=True) if may]
    return found


def _shaped(cell: CellFindings, table: Table, info: IndicatorInfo) -> CellFindings:
    values = table.used[info.name]
    levels = shape.two_levels(values)
    if levels and levels.high - levels.low > _TICKS * table.resolution(info.name):
        return msgspec.structs.replace(cell, two_levels=TwoLevels(**levels._asdict()))
    tail = shape.slow_tail(values, info.better)
    return msgspec.structs.replace(cell, slow_tail=SlowTail(**tail._asdict())) if tail else cell
