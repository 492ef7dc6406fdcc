"""Which trials are the figures of a run: those of a quiet machine, where there are enough blocks.

A trial is in doubt for a cause that was read, never for its value. Only causes that are read alike
in every cell, such as foreign CPU time, set a trial aside: a wait for a CPU shows only where there
is one for each worker, and to leave out what it marks would favour some cells of a ratio. One
choice serves cells, ratios, best settings and comparisons: trials are set aside only where enough
blocks are left in which all cells have theirs. A late probe makes its own readings doubtful, but
not times by the program's own clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from concurve.analysis.lazy_mapping import LazyMapping
from concurve.analysis.run.resolutions import with_resolutions
from concurve.analysis.run.tables import Table, tables_of
from concurve.figures import FigureTable
from concurve.planning.doubt import is_enough
from concurve.planning.plan import Plan
from concurve.planning.protocol import Protocol
from concurve.readings.contamination import LATE_READING, MACHINE_WIDE
from concurve.readings.measures import is_probed
from concurve.stats.blocks import Blocks
from concurve.store.rows import Outcomes, TrialKey
from concurve.terms import IndicatorInfo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Chosen(NamedTuple):
    """The tables whose trials are the figures, and those of the quiet trials alone, which are
    ``None`` where they are the same. ``set_aside`` names for each trial the indicators in whose
    figures it does not count, because enough quiet ones do. ``doubtful`` has the number of trials
    in doubt by cell. ``is_read_alike``: each is so for a sign that is read alike in every cell."""

    tables: list[Table]
    quiet: list[Table] | None
    set_aside: Sequence[frozenset[str]]
    doubtful: dict[int, int]
    is_read_alike: bool = True

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


def chosen(
    plan: Plan,
    protocol: Protocol,
    outcomes: Outcomes,
    figures: FigureTable,
    in_use: Sequence[bool],
    tables: list[Table],
) -> Chosen:
    """The trials of each cell that are its figures, from ``tables`` of all trials in use."""
    if not protocol.doubtful:
        return Chosen(tables, None, [frozenset()] * len(outcomes), {})
    keys = outcomes.keys()
    used = [key for key, is_used in zip(keys, in_use, strict=True) if is_used]
    cells = [cell for cell in range(len(plan.cells)) if not protocol.cells[cell].skipped]
    causes = {key: cause for key, (cause, _) in protocol.doubtful.items()}
    wide = {key for key, cause in causes.items() if cause in MACHINE_WIDE}
    disturbed = {key for key in wide if causes[key] != LATE_READING}

    def is_left(some: Set[TrialKey]) -> bool:
        """Are enough blocks left without these trials?"""
        kept = [key for key in used if key not in some]
        return is_enough(_common_blocks(kept, cells), _common_blocks(used, cells))

    def without(some: Set[TrialKey]) -> list[Table]:
        counts = [it and key not in some for key, it in zip(keys, in_use, strict=True)]
        return tables_of(plan, outcomes, figures, counts)

    def aside_of(some: Set[TrialKey]) -> Set[TrialKey]:
        """Those of these trials that are set aside. A cell that was skipped has no say in it, and
        keeps its figures where it would have none left."""
        if not is_left(some):
            return set()
        left = {key.cell for key in used if key not in some}
        return {key for key in some if key.cell in left}

    probed_aside = aside_of(wide)
    other_aside = aside_of(disturbed)
    figured = _by_names(tables, without(probed_aside), without(other_aside))
    timely = {key for key, cause in causes.items() if cause != LATE_READING}
    quiet = _by_names(tables, without(causes.keys()), without(timely))
    nothing: frozenset[str] = frozenset()
    probed = frozenset(filter(is_probed, figures.names))
    other = frozenset(figures.names) - probed

    def aside(index: int) -> frozenset[str]:
        key = keys[index]
        found = probed if key in probed_aside else nothing
        return found | other if key in other_aside else found

    is_quiet = probed_aside == causes.keys() and other_aside == timely
    return Chosen(
        figured,
        None if is_quiet else quiet,
        [aside(index) for index in range(len(keys))],
        dict(Counter(key.cell for key in causes)),
        is_read_alike=wide == causes.keys(),
    )


def _common_blocks(keys: Sequence[TrialKey], cells: Sequence[int]) -> int:
    """In how many blocks all these cells have a trial."""
    blocks: dict[int, set[int]] = {cell: set() for cell in cells}
    for key in keys:
        if key.cell in blocks:
            blocks[key.cell].add(key.block)
    return len(set.intersection(*blocks.values())) if blocks else 0


def _by_names(whole: list[Table], probed: list[Table], other: list[Table]) -> list[Table]:
    return [_by_name(*each) for each in zip(whole, probed, other, strict=True)]


def _by_name(whole: Table, probed: Table, other: Table) -> Table:
    """A table that reads what probes give from ``probed``, and else from ``other``."""

    def of(name: str) -> Table:
        return probed if is_probed(name) else other

    def array(name: str) -> NDArray[np.float64]:
        return of(name).array(name)

    def by_block(name: str) -> Blocks:
        return of(name).by_block(name)

    names = [name for name in whole.used if name in of(name).used]
    used = LazyMapping(names, lambda name: of(name).used[name])
    return whole._replace(used=used, array=array, by_block=by_block)
