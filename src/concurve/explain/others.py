"""Other roles of the trial, and processes outside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from concurve.explain.accounts import OtherRole
from concurve.explain.breakdown import Breakdown, excess
from concurve.explain.verdict import EXPLAINS, RUNNING_MIN, Case, is_crowded, number
from concurve.readings.contamination import FOREIGN_SHARE_MAX, STEAL_SHARE_MAX, WHOLE, Taken
from concurve.stats.moments import mean
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


def stolen_in(cell: Breakdown) -> list[Taken]:
    """What the hypervisor took in each trial of a cell, of the CPUs in use."""
    return [account.stolen for account in cell.accounts]


def foreign_in(cell: Breakdown) -> list[Taken]:
    """What processes outside the trial took in each trial of a cell: of the machine, or of the CPUs
    that the roles are bound to, whichever is the greater share."""
    whole, bound = [account.foreign for account in cell.accounts], _on_bound(cell)
    return bound if bound and share_of(bound) > share_of(whole) else whole


def _on_bound(cell: Breakdown) -> list[Taken]:
    """The same of the CPUs that the roles are bound to; empty where one trial does not tell."""
    found = [account.foreign_on_bound for account in cell.accounts]
    known = [taken for taken in found if taken is not None]
    return known if len(known) == len(found) else []


def share_of(found: Sequence[Taken]) -> float:
    """The share that was taken, over all trials."""
    capacity = sum(taken.capacity_ns for taken in found)
    return sum(taken.taken_ns for taken in found) / capacity if capacity else 0.0


#: A smaller share is not worth a word.
_SAID_MIN = 0.005


def outside_processes(cell: Breakdown) -> str:
    """What processes outside the trial and the hypervisor took, and of which CPUs, in words."""
    by_foreign, by_hypervisor = foreign_in(cell), stolen_in(cell)
    taken = {
        "processes outside the trial used": by_foreign,
        "the hypervisor took": by_hypervisor,
    }
    said = {
        f"{who} {percent(share_of(found))}": found[0].of or WHOLE
        for who, found in taken.items()
        if share_of(found) >= _SAID_MIN
    }
    if not said:
        is_stolen = cell.per_trial("steal_ns") > cell.per_trial("foreign_ns")
        return f"{'the hypervisor' if is_stolen else 'other processes'} took some of {WHOLE}"
    if len(set(said.values())) == 1:
        return f"{' and '.join(said)} of {next(iter(said.values()))}"
    return " and ".join(f"{amount} of {of}" for amount, of in said.items())


def machine_share_of_others(cell: Breakdown) -> float:
    """The share of the machine that processes outside the trial and the hypervisor had."""
    taken = cell.per_trial("foreign_ns") + cell.per_trial("steal_ns")
    return taken / (cell.per_trial("machine_ns") or 1.0)


def granted_share_of_others(cell: Breakdown) -> float:
    """The share of the CPUs that the roles are bound to, or else of the machine, that processes
    outside the trial and the hypervisor had. Steal is told of all CPUs together: those of the roles
    are the ones in use."""
    granted = _on_bound(cell) or [account.foreign for account in cell.accounts]
    capacity = sum(taken.capacity_ns for taken in granted)
    steal = sum(taken.taken_ns for taken in stolen_in(cell))
    return share_of(foreign_in(cell)) + (steal / capacity if capacity else 0.0)


def is_doubtful(cell: Breakdown) -> bool:
    """Did processes of usual priority outside the trials use more of the machine than the limit
    allows, or of the CPUs that the roles are bound to, or the hypervisor of the CPUs in use?"""
    foreign, stolen = (
        share_of(taken) for taken in zip(*(it.judged for it in cell.accounts), strict=True)
    )
    return foreign > FOREIGN_SHARE_MAX or stolen > STEAL_SHARE_MAX


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
        taken = grown_share(cell, base, foreign_in, stolen_in)
    used, before = cell.mean("cpu"), base.mean("cpu")
    return taken * min(1.0, before / used) if used else taken


def grown_share(
    cell: Breakdown, base: Breakdown, *kinds: Callable[[Breakdown], list[Taken]]
) -> float:
    """The time per operation by which the share of the CPUs that others had grew."""
    grown = 0.0
    for taken_in in kinds:
        own, before = taken_in(cell), taken_in(base)
        parts = [account.measured / account.operations for account in cell.accounts]
        could = mean([taken.capacity_ns * it for taken, it in zip(own, parts, strict=True)])
        grown += (share_of(own) - share_of(before)) * could
    return max(0.0, grown)


def may_explain_all(cell: Breakdown, base: Breakdown) -> bool:
    """Could others have caused all of a loss? They leave a part of the CPUs, with which so much
    is done, and the work stays the same; and who waits waits for a thread that they held up."""
    if waits_for_who_is_not_held_up(cell, base):
        return False
    left = 1 - share_of(foreign_in(cell)) - share_of(stolen_in(cell))
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
