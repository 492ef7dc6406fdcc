"""Does the smallest of a few settings that may be the best use up the CPUs?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from concurve.analysis.granted import Pool, cpus_used
from concurve.analysis.run.best import OPEN
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
    target: str = "",
    speed: str = "",
) -> tuple[BestFinding, ...]:
    """The findings, with the CPUs that the roles of the ``first`` setting use up together: a
    greater setting is then not recommended by ``speed``, the figure of the speed-ups, if the first
    one seems about as good. ``granted`` has the CPUs by the index of the cell; ``target`` is the
    name of the measured role."""
    return tuple(_with_first(item, _used_up(item, cells, granted, target), speed) for item in best)


def _with_first(item: BestFinding, used_up: UsedUp | None, speed: str) -> BestFinding:
    """The finding of a setting that uses up these CPUs; it leaves open which one to use, where a
    greater one was recommended that can hardly gain."""
    found = msgspec.structs.replace(item, used_up=used_up)
    is_recommended = item.recommended is not None
    if used_up is None or not is_recommended or not item.first_is_alike or item.indicator != speed:
        return found
    return msgspec.structs.replace(
        found,
        recommended=None,
        passed=(),
        to_passed=None,
        as_good=tuple(setting for setting in item.settings if setting != item.leader),
        doubt=OPEN,
        is_open=True,
    )


def _used_up(
    item: BestFinding,
    cells: Sequence[CellFindings],
    granted: Mapping[int, Sequence[Pool]],
    target: str,
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
    return UsedUp(cpus=pool.cpus, roles=tuple(name or target for name in pool.roles))


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
