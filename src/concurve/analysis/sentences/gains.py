"""Which speed-up of each group of cells a run's answer names, and whether it is a gain."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from concurve.analysis.against_base import Among
from concurve.analysis.sentences.naming import varied
from concurve.estimate import Estimate
from concurve.findings.best import BestFinding
from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan, describe


class Greatest(NamedTuple):
    """The speed-up of the setting that the answer of a group names, if it is significantly above 1,
    being chosen from all speed-ups of the run (``is_gain``), or in doubt; else the greatest that is
    a gain; where none is, that of the setting that is named, else the greatest. ``by`` says by
    what, where the study asks for another indicator. ``speedup`` has the interval that decided,
    which holds for the choice among all speed-ups. ``slower``: the only other setting than the
    base, if it is significantly slower; then the speed-up is its own. ``all_slower``: the other
    settings with their speed-ups, of several, where all of them are significantly slower. ``most``:
    the cell with the greatest speed-up, which need not be that with the best median: speed-ups are
    compared block by block."""

    group: str
    cell: CellFindings
    base: CellFindings
    is_gain: bool
    by: str
    speedup: Estimate
    slower: CellFindings | None = None
    all_slower: tuple[tuple[CellFindings, Estimate], ...] = ()
    most: CellFindings | None = None


def greatest(
    plan: Plan,
    cells: tuple[CellFindings, ...],
    among: Among,
    by: str,
    best: tuple[BestFinding, ...],
) -> Iterator[Greatest]:
    """That of each group in which speed-ups compare several cells."""
    compared, named = speedups_compared(cells), _named(cells, best)
    for group, members in _groups(plan, cells).items():
        measured = [
            cell
            for cell in members
            if "speedup" in cell.indicators and _same_conditions(plan, cell, cells)
        ]
        if len(measured) < 2 or all(cell.index == cell.base for cell in measured):
            continue
        ranking = sorted(measured, key=lambda cell: -cell.indicators["speedup"].value)
        # A setting leaves the best set by the same test: both say the same of it. So what is
        # recommended is named, where it is a gain too.
        preferred = [cell for cell in ranking if cell.index in named]
        gains = (cell for cell in chain(preferred, ranking) if _is_gain(cell, compared, among))
        # Where figures are in doubt, one setting seems best: its figure, and no other one's.
        pointed = (c for c in preferred if c.index != c.base and c.indicators["speedup"].in_doubt)
        in_doubt = next(pointed, None)
        gain = next(gains, None) if in_doubt is None else None
        # That none is faster is not said either where one of them is in doubt.
        others = [cell for cell in preferred if cell.index != cell.base]
        ranked = chain(others, ranking)
        doubted = (cell for cell in ranked if cell.indicators["speedup"].in_doubt)
        most = gain or in_doubt or next(chain(doubted, others, ranking))
        base = cells[most.index if most.base is None else most.base]
        slower = _only_slower(measured, compared, among)
        judged = _judged(slower or most, compared, among)
        every = _all_slower(measured, compared, among)
        yield Greatest(group, most, base, gain is not None, by, judged, slower, every, ranking[0])


def speedups_compared(cells: tuple[CellFindings, ...]) -> int:
    """The speed-ups that an answer is chosen from."""
    return sum(cell.index != cell.base and "speedup" in cell.indicators for cell in cells)


def _named(cells: tuple[CellFindings, ...], best: tuple[BestFinding, ...]) -> set[int]:
    """The cells that are recommended settings, or seem best where the trials do not decide or the
    machine was not quiet."""
    whole = {frozenset(cell.parameters.items()): cell.index for cell in cells}
    found: set[int] = set()
    for item in best:
        if item.recommended is None and not (item.is_open or item.is_tentative):
            continue
        wanted = {**item.group, **item.named}
        index = whole.get(frozenset(wanted.items()))
        if index is not None:
            found.add(index)
        else:  # factors of one level are not named
            found |= {c.index for c in cells if wanted.items() <= c.parameters.items()}
    return found


def _is_gain(cell: CellFindings, compared: int, among: Among) -> bool:
    """Is its speed-up significantly above 1, being one of so many?"""
    alone = cell.indicators["speedup"]
    if cell.index == cell.base or alone.low is None or alone.low <= 1.0:
        return False
    speedup = _judged(cell, compared, among)
    return speedup.low is not None and speedup.low > 1.0


def _only_slower(measured: list[CellFindings], compared: int, among: Among) -> CellFindings | None:
    """The only other setting than the base, if its speed-up is significantly below 1."""
    others = [cell for cell in measured if cell.index != cell.base]
    if len(measured) != 2 or len(others) != 1 or others[0].indicators["speedup"].in_doubt:
        return None
    speedup = _judged(others[0], compared, among)
    return others[0] if speedup.high is not None and speedup.high < 1 else None


def _all_slower(
    measured: list[CellFindings], compared: int, among: Among
) -> tuple[tuple[CellFindings, Estimate], ...]:
    """The several other settings than the one base that they have, which is among them, if the
    speed-up of each is significantly below 1."""
    others = [cell for cell in measured if cell.index != cell.base]
    if len(others) < 2 or any(cell.indicators["speedup"].in_doubt for cell in others):
        return ()
    bases = {cell.base for cell in others}
    if len(bases) > 1 or not bases <= {cell.index for cell in measured}:
        return ()
    found = [(cell, _judged(cell, compared, among)) for cell in others]
    are_slower = all(it.high is not None and it.high < 1 for _, it in found)
    return tuple(found) if are_slower else ()


def _judged(cell: CellFindings, compared: int, among: Among) -> Estimate:
    """The speed-up of a cell with the interval that holds for the choice among so many."""
    alone = cell.indicators["speedup"]
    return alone if cell.index == cell.base else among(cell.index, compared) or alone


def _same_conditions(plan: Plan, cell: CellFindings, cells: tuple[CellFindings, ...]) -> bool:
    """Does the base have the same conditions? Otherwise a user cannot choose between the two."""
    base = cells[cell.index if cell.base is None else cell.base].parameters
    return all(cell.parameters[name] == base[name] for name in plan.study.conditions)


def _groups(plan: Plan, cells: tuple[CellFindings, ...]) -> dict[str, list[CellFindings]]:
    """Cells that share the levels of all factors but the work factor."""
    groups: dict[str, list[CellFindings]] = {}
    for cell in cells:
        others = {k: v for k, v in cell.parameters.items() if plan.work and k != plan.work}
        name = describe(varied(plan, others)) if varied(plan, others) else ""
        groups.setdefault(name, []).append(cell)
    return groups
