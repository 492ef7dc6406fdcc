"""Other roles of the trial, and processes outside it."""

from __future__ import annotations

from concurve.explain.accounts import OtherRole
from concurve.explain.breakdown import Breakdown, excess
from concurve.explain.verdict import EXPLAINS, RUNNING_MIN, Case, is_crowded, number
from concurve.readings.contamination import FOREIGN_SHARE_MAX, STEAL_SHARE_MAX
from concurve.words import percent


def client_roles(case: Case) -> list[OtherRole]:
    """The clients among the other roles."""
    return [other for other in case.cell.others if other.is_client]


def taken_by_roles(cell: Breakdown) -> float:
    """CPU time per operation that other roles took."""
    cpus = sum(other.cpus for other in cell.others)
    return cpus * cell.per_operation("wall_ns")


def others_in_words(others: list[OtherRole]) -> str:
    """``background (nice 0) took 1.9 CPUs``."""
    names = [
        f"{other.name} (nice {other.nice})" if other.nice is not None else other.name
        for other in others
    ]
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{listed} took {number(sum(other.cpus for other in others))} CPUs"


def outside_processes(cell: Breakdown) -> str:
    """What processes outside the trial and the hypervisor took, in words."""
    machine = cell.per_trial("machine_ns") or 1.0
    foreign, steal = cell.per_trial("foreign_ns") / machine, cell.per_trial("steal_ns") / machine
    said = []
    if foreign >= 0.005:
        said.append(f"processes outside the trial used {percent(foreign)}")
    if steal >= 0.005:
        said.append(f"the hypervisor took {percent(steal)}")
    return f"{' and '.join(said) or 'other processes took some'} of the machine's CPU time"


def others_share(cell: Breakdown) -> float:
    """The share of the machine that processes outside the trial and the hypervisor had."""
    taken = cell.per_trial("foreign_ns") + cell.per_trial("steal_ns")
    return taken / (cell.per_trial("machine_ns") or 1.0)


def is_doubtful(cell: Breakdown) -> bool:
    """Did processes outside the trial use more of the machine than the limit allows, or the
    hypervisor of the CPUs in use?"""
    foreign = cell.per_trial("foreign_ns") > FOREIGN_SHARE_MAX * (cell.per_trial("machine_ns") or 1)
    stolen = cell.per_trial("steal_ns") > STEAL_SHARE_MAX * (cell.per_trial("in_use_ns") or 1)
    return foreign or stolen


#: No request is answered with less CPU time than this.
ANSWER_NS_MIN = 100.0


def did_not_answer(cell: Breakdown) -> bool:
    """Did the process that is to serve use no CPU time, although requests were answered?"""
    is_known = all("cpu" not in it.missing and it.counted == "reported" for it in cell.accounts)
    return is_known and cell.mean("cpu") < ANSWER_NS_MIN


#: Others that have a share of the machine leave the rest to the program: with a lock, or who waits
#: for whom, it may do so many times less than that.
DISTURBED_TIMES_MAX = 2.0
#: Costing less CPU time than so many times that of the base, an operation does the same work.
SAME_WORK_MAX = 2.0


def taken_by_others(case: Case) -> float:
    """How much longer an operation may have waited for CPUs that others had, at most.

    Threads that wait behind one another wait without others, too: there only what others have
    taken more than from the base counts. And who uses more CPU time waits for more: what others
    took from that is not their doing.
    """
    cell, base = case.cell, case.base
    taken = cell.per_operation("foreign_ns") + cell.per_operation("steal_ns")
    if base is None:
        return taken
    if is_crowded(cell):
        taken = grown_share(cell, base, "foreign_ns", "steal_ns")
    used, before = cell.mean("cpu"), base.mean("cpu")
    return taken * min(1.0, before / used) if used else taken


def grown_share(cell: Breakdown, base: Breakdown, *names: str) -> float:
    """The time per operation by which the share of the machine that others had grew."""
    own, before = (
        sum(map(side.per_trial, names)) / (side.per_trial("machine_ns") or 1.0)
        for side in (cell, base)
    )
    return max(0.0, own - before) * cell.per_operation("machine_ns")


def may_explain_all(cell: Breakdown, base: Breakdown) -> bool:
    """Could others have caused all of a loss? They leave a part of the machine, with which so much
    is done, and the work stays the same; and who waits waits for a thread that they held up."""
    if waits_for_who_is_not_held_up(cell, base):
        return False
    machine = cell.per_trial("machine_ns") or 1.0
    left = 1 - (cell.per_trial("foreign_ns") + cell.per_trial("steal_ns")) / machine
    slower = cell.per_operation("wall_ns") / base.per_operation("wall_ns")
    is_same_work = cell.mean("cpu") <= SAME_WORK_MAX * base.mean("cpu")
    return is_same_work or slower * max(0.0, left) <= DISTURBED_TIMES_MAX


def surely_costs_more(cell: Breakdown, base: Breakdown) -> bool:
    """Does an operation cost more CPU time than others can be the reason for? They keep threads
    from the CPUs, and evict caches, but give them no work."""
    more = excess(cell, base, "cpu")
    return more.low is not None and more.low > (SAME_WORK_MAX - 1) * base.mean("cpu")


def waits_for_who_is_not_held_up(cell: Breakdown, base: Breakdown) -> bool:
    """Do threads wait at futexes for longer than others can be the reason for?

    At a futex a thread waits for another one of its program. Others hold that one up while it is
    ready and has no CPU, or needs more CPU time, or the hypervisor has its CPU; for each second of
    this, all the other threads wait a second at most.
    """
    if "run_queue" not in cell.columns or not (cell.enough_samples and base.enough_samples):
        return False
    waits, loss = (cell.mean(part) - base.mean(part) for part in ("futex", "total"))
    held_up = sum(max(0.0, cell.mean(part) - base.mean(part)) for part in ("run_queue", "cpu"))
    held_up += cell.per_operation("steal_ns")
    waiting = max(1.0, max(cell.threads, cell.level or 1) - 1)
    return waits >= EXPLAINS * loss > 0 and held_up * waiting < EXPLAINS * waits


def is_used_up(cell: Breakdown) -> bool:
    """Were the CPUs of the machine busy throughout?"""
    machine = cell.per_trial("machine_ns")
    busy = cell.per_trial("machine_busy_ns") + cell.per_trial("steal_ns")
    granted = cell.cpus and cell.cpus * cell.per_trial("wall_ns")
    own = cell.per_trial("cpu_ns")
    return bool((machine and busy >= RUNNING_MIN * machine) or (granted and own >= 0.95 * granted))
