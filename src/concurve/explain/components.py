"""What a large component of the thread time means: one function for each component."""

from __future__ import annotations

from concurve.explain.breakdown import Breakdown
from concurve.explain.others import (
    client_roles,
    is_used_up,
    others_in_words,
    outside_processes,
    taken_by_roles,
)
from concurve.explain.threads import Dispatcher
from concurve.explain.verdict import (
    RUNNING_MIN,
    SATURATED,
    WHOLE_SHARE,
    Case,
    Verdict,
    number,
    times,
)
from concurve.explain.waiting import KINDS
from concurve.words import count, percent

#: Another role or process is the cause of an excess if it can explain at least this share.
EXPLAINS = 0.5
IDLE = ("sleep", "child", "other")
OUTSIDE = ("network", "poll", "pipe")


def queueing(case: Case, amount: float) -> Verdict | None:
    """Waiting for a CPU: too many threads, another role, or processes outside the trial."""
    cell = case.cell
    words = f"{percent(cell.share('run_queue'))} of it waiting for a CPU"
    own = "1 thread" if cell.threads == 1 else f"{cell.threads} threads"
    granted = "" if cell.cpus is None else f" on {count(cell.cpus, 'CPU')}"
    if cell.cpus is not None and cell.threads > cell.cpus:
        return Verdict("cpu", f"{words} ({own}{granted}){_cost(case)}")
    taken = taken_by_roles(cell)
    rivals = [other for other in cell.others if other.cpus >= 0.05]
    if rivals and taken >= EXPLAINS * amount:
        mine = f"{own} with nice {cell.accounts[0].nice}" if cell.accounts[0].nice else own
        return Verdict("cpu", f"{words}, as {others_in_words(rivals)}; here {mine}{granted}")
    outside = cell.per_operation("foreign_ns") + cell.per_operation("steal_ns")
    if outside >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, as {outside_processes(cell)}")
    if is_used_up(cell) and cell.per_trial("foreign_ns") < cell.per_trial("cpu_ns"):
        return Verdict("cpu", f"{words} ({own}{granted}, all of them busy)")
    why = "although CPUs were idle: threads were woken on a CPU where another one ran"
    return Verdict("none", f"{words} {why}", open=True)


def computing(case: Case, amount: float) -> Verdict | None:
    """More CPU time for the same operation."""
    cell, base = case.cell, case.base
    assert base is not None
    words = f"{times(cell, base)} the CPU time"
    if cell.per_operation("steal_ns") >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, while {outside_processes(cell)}")
    return Verdict(
        "coherency",
        f"{words}: data that the threads share, memory bandwidth, or a lock that only spins "
        "(cache misses, which would distinguish them, are not counted)",
    )


def spinning(case: Case, amount: float) -> Verdict | None:
    """More CPU time together with repeated futex waits: a lock that spins before it sleeps. Shared
    data alone make no thread sleep."""
    cell, base = case.cell, case.base
    assert base is not None
    waiting = cell.mean("futex") - base.mean("futex")
    computing = cell.mean("cpu") - base.mean("cpu")
    if waiting < 0 or not wait_often(cell, base):
        return None
    how = contended(case)
    if not how or computing < 0.5 * waiting or cell.per_operation("steal_ns") >= EXPLAINS * amount:
        return None
    return Verdict(
        "lock",
        f"{times(cell, base)} the CPU time and {percent(cell.share('futex'))} of it blocked on "
        f"futexes, as of a lock that spins before it sleeps{how}",
    )


def _cost(case: Case) -> str:
    """The increase of CPU time, which costs throughput; waiting while other threads run does
    not."""
    return f", at {times(case.cell, case.base)} the CPU time" if case.base is not None else ""


def synchronising(case: Case, amount: float) -> Verdict | None:
    """Blocked on futexes: a lock, or no work."""
    cell = case.cell
    words = f"{percent(cell.share('futex'))} of it blocked on futexes"
    how = contended(case)
    if how:
        more = cell.cpus is not None and cell.threads > cell.cpus
        return Verdict("lock", f"{words}{how}{_cost(case) if more else ''}")
    dispatcher = cell.dispatcher
    if dispatcher and dispatcher.ran >= SATURATED:
        runs = f"the thread {dispatcher.name} runs {percent(dispatcher.ran)} of the time"
        return Verdict("cpu", f"{words}: {runs} and the others wait for it")
    given = f", {dispatcher.name} hands it out" if dispatcher else ""
    return Verdict(
        "none",
        f"{words} while {number(cell.running)} of {count(cell.threads, 'thread')} run: threads "
        f"idle, no work for them{given}",
    )


def storing(case: Case, amount: float) -> Verdict | None:
    """Blocked on the disk."""
    return Verdict("io", f"{percent(case.cell.share('disk'))} of it blocked on the disk")


def outside(case: Case, amount: float) -> Verdict | None:
    """Waiting for a network, for descriptors, or at a pipe: for the client, or for another
    thread?"""
    cell = case.cell
    kinds = {kind: cell.share(kind) for kind in OUTSIDE}
    most = max(kinds, key=lambda kind: kinds[kind])
    words = f"{percent(sum(kinds.values()))} of it waiting for "
    if case.serving:
        return Verdict("client", f"{words}the client ({_NAMES[most]}){_clients(case)}")
    if most == "pipe":
        if cell.threads > 1 and cell.running >= RUNNING_MIN:
            return Verdict("lock", f"{words}one another, through pipes")
        return Verdict("none", f"{words}a pipe")
    if most == "network":
        return Verdict("io", f"{words}the network")
    return Verdict("none", f"{words}events")


_NAMES = {"network": "network", "poll": "polling", "pipe": "pipe"}


def _clients(case: Case) -> str:
    found = client_roles(case)
    if not found:
        return ""
    cpus, busiest = sum(other.cpus for other in found), max(other.busiest for other in found)
    said = "its CPU is used up" if busiest >= SATURATED else "it has CPU time left"
    return f", which used {number(cpus)} CPUs, its busiest thread {percent(busiest)} of one: {said}"


def idling(case: Case, amount: float) -> Verdict | None:
    """Asleep, or waiting for child processes."""
    kinds = {kind: case.cell.share(kind) for kind in IDLE}
    most = max(kinds, key=lambda kind: kinds[kind])
    what = {"sleep": "asleep", "child": "waiting for child processes"}
    said = what.get(most, "blocked on something else")
    return Verdict("none", f"{percent(sum(kinds.values()))} of it {said}")


def blocked(case: Case, amount: float) -> Verdict | None:
    """Blocked, while samples do not say on what."""
    share = percent(case.cell.share("blocked"))
    few = ": the samples are too few" if case.cell.sampled else ""
    return Verdict("none", f"{share} of it blocked for an unknown reason{few}")


#: Threads wait repeatedly if each of them does so this often in a trial.
LOCK_SWITCHES_MIN = 10.0
#: The same for a lock whose hand-over wakes a thread: the CPU is idle during each wake-up.
HANDED_RUNNING_MIN = 0.3
HANDED_NS_MAX = 300_000.0
#: Share of the readings at futexes that one word must have to be the lock.
ONE_WORD = 0.5


def wait_often(cell: Breakdown, base: Breakdown) -> bool:
    """Do threads wait repeatedly, and not only at a common start or end?"""
    more = cell.per_operation("switches") - base.per_operation("switches")
    each = more * cell.per_trial("operations") / cell.threads
    blocked = sum(cell.readings.get(kind, 0) for kind in KINDS)
    return each >= LOCK_SWITCHES_MIN and 2 * cell.readings.get("futex", 0) >= blocked


def contended(case: Case) -> str:
    """How the active threads wait for one another, in words; empty if they do not.

    They do if work is conserved: one of them holds the lock and runs. Threads that wait for work
    leave the CPUs idle, also wait when there is only one thread, or have a dispatcher.
    """
    cell, base = case.cell, case.base
    if cell.threads < 2:
        return ""
    if base is not None and base.threads == 1 and base.share("futex") >= WHOLE_SHARE:
        return ""
    if cell.dispatcher is not None:
        wanted = (
            cell.running >= RUNNING_MIN and _one_word(cell) and _has_work(case, cell.dispatcher)
        )
        return _where(cell) if wanted else ""
    if cell.running >= RUNNING_MIN or _handed_over(cell):
        return _where(cell)
    return ""


def _has_work(case: Case, dispatcher: Dispatcher) -> bool:
    """Is there more work than the threads can do? Then their queue is full, or the clients wait for
    them although the clients have CPU time left and do not sleep."""
    if dispatcher.ran >= SATURATED:
        return False
    clients = client_roles(case)
    waiting = all(c.busiest < SATURATED and c.asleep < WHOLE_SHARE for c in clients)
    return dispatcher.waits_for_workers or (bool(clients) and waiting)


def _handed_over(cell: Breakdown) -> bool:
    """Are there short waits in sequence, as of a lock that is handed over to a sleeping thread?"""
    switches = cell.per_operation("switches")
    if cell.running < HANDED_RUNNING_MIN or switches <= 0:
        return False
    turn = cell.mean("futex") / switches / max(cell.threads - 1, 1)
    return turn <= HANDED_NS_MAX


def _one_word(cell: Breakdown) -> bool:
    seen = cell.readings.get("futex", 0)
    return seen > 0 and sum(a.word.readings for a in cell.accounts) >= ONE_WORD * seen


def _where(cell: Breakdown) -> str:
    seen = cell.readings.get("futex", 0)
    if _one_word(cell):
        at = min(1.0, sum(account.word.readings for account in cell.accounts) / seen)
        threads = max(account.word.threads for account in cell.accounts)
        return f", {percent(at)} of that at one word where {threads} threads wait"
    many = max(account.word.words for account in cell.accounts) >= cell.threads
    own = ", at words of their own" if many and seen >= 10 * cell.threads else ""
    run = f"{number(cell.running)} of {cell.threads} threads run"
    return f"{own}, while {run}: they wait for one another"
