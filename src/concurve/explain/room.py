"""Do the CPUs leave room for more workers, and may one part of the program keep them from work?
Pure."""

from __future__ import annotations

from concurve.explain.breakdown import Breakdown
from concurve.explain.others import machine_share_of_others
from concurve.explain.verdict import SATURATED, Case, is_crowded

#: Threads beside the workers help them by so much of what the workers could do, or more.
HELPED_MIN = 0.15
#: A base that uses this share of the CPUs that others leave uses them all.
FULL_MIN = 0.85


def cpus_at_once(side: Breakdown) -> float:
    """The workers that could run at once, or the CPUs that the program used, if they are more."""
    return side.of_capacity("workers") - side.of_capacity("helping") / side.per_trial("wall_ns")


def is_helped(base: Breakdown) -> bool:
    """Did threads of the program use CPUs beyond those of the workers that were asked for?"""
    capacity = base.per_trial("wall_ns") * base.of_capacity("workers")
    return base.of_capacity("helped") >= HELPED_MIN * capacity


def taken_by_strangers(cell: Breakdown, base: Breakdown) -> float:
    """The share of the cell's CPUs that processes outside the trial had in the base; 0 where the
    cell has some CPUs of the machine only: it is not known on which of them these ran."""
    return machine_share_of_others(base) if cell.has_every_cpu else 0.0


def is_full(cell: Breakdown, base: Breakdown) -> bool:
    """Did the base, by such threads, use nearly all CPUs that the cell can have: those that others
    leave?"""
    left = (cell.cpus or 0) * (1 - taken_by_strangers(cell, base))
    return is_helped(base) and cpus_at_once(base) >= FULL_MIN * left


def may_be_staged(case: Case) -> bool:
    """May one part of the program keep the others from work? Not the only worker that was asked
    for, which nothing is compared with; and not where it is the CPUs that do: more workers than
    CPUs are ready, or the base uses all of them already."""
    cell, base = case.cell, case.base
    if cell.level is None:
        return True
    if base is None:
        return cell.level > 1
    if cell.capacity and base.capacity and is_full(cell, base):
        return False
    return cell.level <= (cell.cpus or cell.level) or not is_crowded(cell)


def ceiling(cell: Breakdown, base: Breakdown) -> int | None:
    """The CPUs of a cell, where their number bounds the speed-up over the base: the cell has as
    many workers as CPUs or more, the base has fewer, and these compute nearly all the time. Who
    waits in the base can be faster by more workers than there are CPUs."""
    own, before, cpus = cell.level, base.level, cell.cpus
    wall = base.per_operation("wall_ns")
    if own is None or before is None or cpus is None or not wall or not before < cpus <= own:
        return None
    return cpus if base.mean("cpu") >= SATURATED * before * wall else None
