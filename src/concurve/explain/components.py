"""What it means that a component of the thread time is large: a judge for each."""

from __future__ import annotations

from concurve.explain.contention import contended, wait_often
from concurve.explain.others import (
    client_roles,
    is_used_up,
    others_in_words,
    strangers,
    taken_by_roles,
)
from concurve.explain.thresholds import RUNNING_MIN, SATURATED
from concurve.explain.verdict import Here, Verdict
from concurve.explain.words import count, number, percent, times

#: Share of an excess that another must be able to explain to be its cause.
EXPLAINS = 0.5
IDLE = ("sleep", "child", "other")
OUTSIDE = ("network", "poll", "pipe")


def queueing(here: Here, amount: float) -> Verdict | None:
    """Waiting for a CPU: too many threads, another role, or others on the machine."""
    cell = here.cell
    words = f"{percent(cell.share('run_queue'))} of it waiting for a CPU"
    own = "1 thread" if cell.threads == 1 else f"{cell.threads} threads"
    granted = "" if cell.cpus is None else f" on {count(cell.cpus, 'CPU')}"
    if cell.cpus is not None and cell.threads > cell.cpus:
        return Verdict("cpu", f"{words} ({own}{granted}){_cost(here)}")
    taken = taken_by_roles(cell)
    rivals = [other for other in cell.others if other.cpus >= 0.05]
    if rivals and taken >= EXPLAINS * amount:
        mine = f"{own} with nice {cell.accounts[0].nice}" if cell.accounts[0].nice else own
        return Verdict("cpu", f"{words}, as {others_in_words(rivals)}; here {mine}{granted}")
    outside = cell.per_operation("foreign_ns") + cell.per_operation("steal_ns")
    if outside >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, as {strangers(cell)}")
    if is_used_up(cell) and cell.per_trial("foreign_ns") < cell.per_trial("cpu_ns"):
        return Verdict("cpu", f"{words} ({own}{granted}, all of them busy)")
    why = "although CPUs were idle: threads were woken where another one ran"
    return Verdict("none", f"{words} {why}", open=True)


def computing(here: Here, amount: float) -> Verdict | None:
    """More CPU time for the same operation."""
    cell, base = here.cell, here.base
    assert base is not None
    words = f"{times(cell, base)} the CPU time"
    if cell.per_operation("steal_ns") >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, while {strangers(cell)}")
    return Verdict(
        "coherency",
        f"{words}: data that the threads share, the bandwidth of memory, or a lock that only spins "
        "(cache misses, which would tell them apart, are not counted)",
    )


def spinning(here: Here, amount: float) -> Verdict | None:
    """More CPU time, and futex waiting again and again beside it: a lock that spins before it
    sleeps. Shared data alone make nobody sleep."""
    cell, base = here.cell, here.base
    assert base is not None
    waiting = cell.mean("futex") - base.mean("futex")
    computing = cell.mean("cpu") - base.mean("cpu")
    if waiting < 0 or not wait_often(cell, base):
        return None
    how = contended(here)
    if not how or computing < 0.5 * waiting or cell.per_operation("steal_ns") >= EXPLAINS * amount:
        return None
    return Verdict(
        "lock",
        f"{times(cell, base)} the CPU time and {percent(cell.share('futex'))} of it blocked on "
        f"futexes, as of a lock that spins before it sleeps{how}",
    )


def _cost(here: Here) -> str:
    """Waiting for one's turn costs no throughput where others run: what does is CPU time."""
    return f", at {times(here.cell, here.base)} the CPU time" if here.base is not None else ""


def synchronising(here: Here, amount: float) -> Verdict | None:
    """Blocked on futexes: a lock, or nothing to do."""
    cell = here.cell
    words = f"{percent(cell.share('futex'))} of it blocked on futexes"
    how = contended(here)
    if how:
        more = cell.cpus is not None and cell.threads > cell.cpus
        return Verdict("lock", f"{words}{how}{_cost(here) if more else ''}")
    dealer = cell.dealer
    if dealer and dealer.ran >= SATURATED:
        busy = f"{dealer.name} runs {percent(dealer.ran)} of the time and the others wait for it"
        return Verdict("cpu", f"{words}: the thread {busy}")
    given = f", {dealer.name} deals it out" if dealer else ""
    return Verdict(
        "none",
        f"{words} while {number(cell.running)} of {count(cell.threads, 'thread')} run: threads "
        f"idle, no work for them{given}",
    )


def storing(here: Here, amount: float) -> Verdict | None:
    """Blocked on the disk."""
    return Verdict("io", f"{percent(here.cell.share('disk'))} of it blocked on the disk")


def outside(here: Here, amount: float) -> Verdict | None:
    """Waiting for a network, for descriptors, or at a pipe: for whom?"""
    cell = here.cell
    kinds = {kind: cell.share(kind) for kind in OUTSIDE}
    most = max(kinds, key=lambda kind: kinds[kind])
    words = f"{percent(sum(kinds.values()))} of it waiting for "
    if here.clients or here.serving:
        return Verdict("client", f"{words}the client ({_NAMES[most]}){_clients(here)}")
    if most == "pipe":
        if cell.threads > 1 and cell.running >= RUNNING_MIN:
            return Verdict("lock", f"{words}one another, through pipes")
        return Verdict("none", f"{words}a pipe")
    if most == "network":
        return Verdict("io", f"{words}the network")
    return Verdict("none", f"{words}events")


_NAMES = {"network": "network", "poll": "polling", "pipe": "pipe"}


def _clients(here: Here) -> str:
    found = client_roles(here)
    if not found:
        return ""
    cpus, busiest = sum(other.cpus for other in found), max(other.busiest for other in found)
    said = "its CPU is used up" if busiest >= SATURATED else "it has CPU time left"
    return f", which used {number(cpus)} CPUs, its busiest thread {percent(busiest)} of one: {said}"


def idling(here: Here, amount: float) -> Verdict | None:
    """Asleep, or waiting for child processes."""
    kinds = {kind: here.cell.share(kind) for kind in IDLE}
    most = max(kinds, key=lambda kind: kinds[kind])
    what = {"sleep": "asleep", "child": "waiting for child processes"}
    said = what.get(most, "blocked on something else")
    return Verdict("none", f"{percent(sum(kinds.values()))} of it {said}")


def blocked(here: Here, amount: float) -> Verdict | None:
    """Blocked, where samples do not say on what."""
    share = percent(here.cell.share("blocked"))
    few = ": the samples are too few" if here.cell.sampled else ""
    return Verdict("none", f"{share} of it blocked, on what is not known{few}")
