"""Does the smallest of a few settings that may be the best use up the CPUs?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from concurve.analysis.granted import Pool, cpus_used
from concurve.definition.indicator_names import split_name
from concurve.findings.best import BestFinding, UsedUp
from concurve.findings.cells import CellFindings
from concurve.terms import Level

#: Who uses this share of the CPUs granted leaves none to others.
_USED_UP = 0.95


def with_used_up(
    best: Sequence[BestFinding],
    cells: Sequence[CellFindings],
    granted: Mapping[int, Sequence[Pool]],
) -> tuple[BestFinding, ...]:
    """The findings, with the CPUs that the roles of the ``first`` setting use up together.
    ``granted`` has the CPUs by the index of the cell."""
    return tuple(
        msgspec.structs.replace(item, used_up=_used_up(item, cells, granted)) for item in best
    )


def _used_up(
    item: BestFinding, cells: Sequence[CellFindings], granted: Mapping[int, Sequence[Pool]]
) -> UsedUp | None:
    """``None`` where they are not used up or not known, and where another one of the settings may
    have more CPUs, as by a factor that is their number."""
    if item.first is None:
        return None
    first = _cell(item, item.first, cells)
    pools = {_of_all(granted.get(_cell(item, it, cells).index, ())) for it in item.settings}
    pool = pools.pop()
    if pools or pool is None or _are_doubted(first) or cpus_used(first) < _USED_UP * pool.cpus:
        return None
    return UsedUp(cpus=pool.cpus, roles=len(pool.roles))


def _cell(
    item: BestFinding, setting: Mapping[str, Level], cells: Sequence[CellFindings]
) -> CellFindings:
    wanted = {**item.group, **setting}.items()
    return next(cell for cell in cells if wanted <= cell.parameters.items())


def _of_all(pools: Sequence[Pool]) -> Pool | None:
    """The CPUs of all roles, which is the pool of the most of them; ``None`` without any."""
    return max(pools, key=lambda pool: len(pool.roles), default=None)


def _are_doubted(cell: CellFindings) -> bool:
    return any(
        figure.in_doubt
        for name, figure in cell.indicators.items()
        if split_name(name).own == "cpus_used"
    )
