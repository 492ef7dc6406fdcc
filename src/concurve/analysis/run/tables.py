"""The figures of a run by cell: of the trials in use, and of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from concurve.analysis.lazy_mapping import LazyMapping
from concurve.definition.study import Rules
from concurve.figures import FigureTable
from concurve.planning.plan import Plan
from concurve.planning.protocol import Protocol
from concurve.stats.blocks import Blocks
from concurve.store.rows import Outcomes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Table(NamedTuple):
    """Figures of one cell, by indicator: of the trials in use, and of all; and those in use as an
    array, and by their block. ``resolution`` says by how much a reading of an indicator may be
    off, in its unit."""

    used: Mapping[str, list[float]]
    every: Mapping[str, list[float]]
    array: Callable[[str], NDArray[np.float64]]
    by_block: Callable[[str], Blocks]
    resolution: Callable[[str], float] = lambda _: 0.0


def tables_of(
    plan: Plan, outcomes: Outcomes, figures: FigureTable, in_use: Sequence[bool]
) -> list[Table]:
    """A table a cell, in the order of the plan."""
    import numpy as np

    cell_of = np.array(outcomes.cells, dtype=np.intp)
    block_of = np.array(outcomes.blocks, dtype=np.intp)
    # The rows of each cell, in the order in which they were made.
    by_cell = np.argsort(cell_of, kind="stable")
    ends = np.searchsorted(cell_of[by_cell], np.arange(len(plan.cells) + 1))
    counts = np.asarray(in_use, dtype=bool)
    # Where no figure is missing, as nearly always, no cell needs to be asked which it has.
    is_whole = not np.isnan(figures.values).any()
    tables = []
    for first, last in pairwise(ends):
        rows = by_cell[first:last]
        every = _columns(figures, rows, is_whole)
        used = rows[counts[rows]]
        columns = every if len(used) == len(rows) else _columns(figures, used, is_whole)
        # Ratios of a cell with its base and with others read the same blocks again and again.
        array = partial(_array, figures, used)
        by_block = cache(partial(_by_block, figures, block_of, used))
        tables.append(Table(columns, every, array, by_block))
    return tables


def _array(figures: FigureTable, rows: NDArray[np.intp], name: str) -> NDArray[np.float64]:
    """The figure of some trials of a cell in their order; trials without it are left out."""
    import numpy as np

    if name not in figures.names:
        return np.empty(0)
    values: NDArray[np.float64] = figures.values[rows, figures.names.index(name)]
    return values[~np.isnan(values)]


def _by_block(
    figures: FigureTable, block_of: NDArray[np.intp], rows: NDArray[np.intp], name: str
) -> Blocks:
    """The figure of some trials of a cell by block, in the order of the blocks; trials without it
    are left out."""
    import numpy as np

    if name not in figures.names:
        return {}
    values = figures.values[rows, figures.names.index(name)]
    present = ~np.isnan(values)
    blocks = block_of[rows][present]
    order = np.argsort(blocks, kind="stable")
    return dict(zip(blocks[order].tolist(), values[present][order].tolist(), strict=True))


def _columns(
    figures: FigureTable, rows: NDArray[np.intp], is_whole: bool
) -> Mapping[str, list[float]]:
    """Figures of some trials by name; a name that none of them has is left out. ``is_whole``: all
    trials have all of them."""
    import numpy as np

    if is_whole:
        known = {name: place for place, name in enumerate(figures.names)} if len(rows) else {}
        return LazyMapping(known, lambda name: list(figures.values[rows, known[name]].tolist()))
    values = figures.values[rows]
    present = ~np.isnan(values)
    places = {figures.names[index]: int(index) for index in np.flatnonzero(present.any(axis=0))}

    def column(name: str) -> list[float]:
        index = places[name]
        return list(values[present[:, index], index].tolist())

    return LazyMapping(places, column)


def in_use_of(protocol: Protocol, outcomes: Outcomes) -> list[bool]:
    """For each trial, whether it counts in the figures."""
    if not protocol.rejected:
        return [True] * len(outcomes)
    used = [cell.used for cell in protocol.cells]
    return [
        block in used[cell] and used[cell][block][0] == attempt
        for cell, block, attempt in zip(
            outcomes.cells, outcomes.blocks, outcomes.attempts, strict=True
        )
    ]


def is_staged(rules: Rules) -> bool:
    """May the spread of the pilot set how many trials there are?"""
    return rules.repeats_min < rules.repeats_max
