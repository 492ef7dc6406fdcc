"""Which trials are the figures of a run: the quiet ones, where a cell has enough of them.

A trial is in doubt for a cause that was read, never for its value; so those that are not are a
sample of the same quantity on a quiet machine. A late probe makes its own readings doubtful, but
not times by the program's own clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from concurve.analysis.lazy_mapping import LazyMapping
from concurve.analysis.run.resolutions import with_resolutions
from concurve.analysis.run.tables import Table, tables_of
from concurve.figures import FigureTable
from concurve.planning.plan import Plan
from concurve.planning.protocol import Protocol
from concurve.readings.contamination import LATE_READING
from concurve.readings.measures import is_probed
from concurve.stats.blocks import Blocks
from concurve.store.rows import TrialRow
from concurve.terms import IndicatorInfo

#: So many quiet trials of a cell are its figure; of a cell with few trials, half of them.
QUIET_MIN = 5


class Chosen(NamedTuple):
    """The tables whose trials are the figures, and those of the quiet trials alone, which are
    ``None`` where they are the same. ``set_aside`` names for each trial the indicators in whose
    figures it does not count, because enough quiet ones do. ``doubtful`` has the number of trials
    in doubt by cell."""

    tables: list[Table]
    quiet: list[Table] | None
    set_aside: Sequence[frozenset[str]]
    doubtful: dict[int, int]

    def with_resolutions(self, infos: Sequence[IndicatorInfo]) -> Chosen:
        """The same with the resolution of each indicator, which is that of the figures."""
        tables = with_resolutions(self.tables, infos)
        if self.quiet is None:
            return self._replace(tables=tables)
        quiet = [
            alone._replace(resolution=table.resolution)
            for alone, table in zip(self.quiet, tables, strict=True)
        ]
        return self._replace(tables=tables, quiet=quiet)


def is_enough(quiet: int, used: int) -> bool:
    """Are so many quiet trials, of those in use, the figure of a cell?"""
    return quiet == used or quiet >= max(2, min(QUIET_MIN, (used + 1) // 2))


def chosen(
    plan: Plan,
    protocol: Protocol,
    trials: Sequence[TrialRow],
    figures: FigureTable,
    in_use: Sequence[bool],
    tables: list[Table],
) -> Chosen:
    """The trials of each cell that are its figures, from ``tables`` of all trials in use."""
    if not protocol.doubtful:
        return Chosen(tables, None, [frozenset()] * len(trials), {})
    keys = [row.outcome.key for row in trials]
    every = set(protocol.doubtful)
    disturbed = {key for key, (cause, _) in protocol.doubtful.items() if cause != LATE_READING}
    cells = range(len(plan.cells))
    used = _counts(cells, [key.cell for key, is_used in zip(keys, in_use, strict=True) if is_used])
    late, rude = (_counts(cells, [key.cell for key in some]) for some in (every, disturbed))
    probed_enough = [is_enough(used[cell] - late[cell], used[cell]) for cell in cells]
    other_enough = [is_enough(used[cell] - rude[cell], used[cell]) for cell in cells]
    without = [
        tables_of(
            plan,
            trials,
            figures,
            [is_used and key not in some for key, is_used in zip(keys, in_use, strict=True)],
        )
        for some in (every, disturbed)
    ]
    quiet = [_by_name(table, *pair) for table, *pair in zip(tables, *without, strict=True)]
    figured = [
        _by_name(
            table,
            quiet[cell] if probed_enough[cell] else table,
            quiet[cell] if other_enough[cell] else table,
        )
        for cell, table in enumerate(tables)
    ]

    nothing: frozenset[str] = frozenset()
    probed = frozenset(filter(is_probed, figures.names))
    other = frozenset(figures.names) - probed

    def aside(index: int) -> frozenset[str]:
        key = keys[index]
        found = probed if key in every and probed_enough[key.cell] else nothing
        return found | other if key in disturbed and other_enough[key.cell] else found

    return Chosen(
        figured,
        None if all(probed_enough) and all(other_enough) else quiet,
        [aside(index) for index in range(len(trials))],
        {cell: late[cell] for cell in cells if late[cell]},
    )


def _counts(cells: range, found: Sequence[int]) -> list[int]:
    counts = [0] * len(cells)
    for cell in found:
        counts[cell] += 1
    return counts


def _by_name(whole: Table, probed: Table, other: Table) -> Table:
    """A table that reads what probes give from ``probed``, and else from ``other``."""

    def of(name: str) -> Table:
        return probed if is_probed(name) else other

    def by_block(name: str) -> Blocks:
        return of(name).by_block(name)

    names = [name for name in whole.used if name in of(name).used]
    used = LazyMapping(names, lambda name: of(name).used[name])
    return whole._replace(used=used, by_block=by_block)
