"""Do threads wait for one another, or for work?"""

from __future__ import annotations

from concurve.explain.cells import Picture
from concurve.explain.others import client_roles
from concurve.explain.threads import Dealer
from concurve.explain.thresholds import RUNNING_MIN, SATURATED, WHOLE_SHARE
from concurve.explain.verdict import Here
from concurve.explain.waiting import KINDS
from concurve.explain.words import number, percent

#: Threads wait again and again if each of them does so this often in a trial.
LOCK_SWITCHES_MIN = 10.0
#: A lock handed from thread to thread leaves the CPU idle for a wake-up each time: fewer run.
HANDED_RUNNING_MIN = 0.3
HANDED_NS_MAX = 300_000.0
#: Share of the readings at futexes that one word must have to be the lock.
ONE_WORD = 0.5


def wait_often(cell: Picture, base: Picture) -> bool:
    """Do threads wait again and again, not at a common start or end alone?"""
    more = cell.per_operation("switches") - base.per_operation("switches")
    each = more * cell.per_trial("operations") / cell.threads
    blocked = sum(cell.readings.get(kind, 0) for kind in KINDS)
    return each >= LOCK_SWITCHES_MIN and 2 * cell.readings.get("futex", 0) >= blocked


def contended(here: Here) -> str:
    """Do the active threads wait for one another? How, in words; empty if they do not.

    They do if work is conserved: somebody holds the lock and runs. Threads that wait for work
    leave the CPUs idle, or wait while alone, too, or have somebody who deals out the work.
    """
    cell, base = here.cell, here.base
    if cell.threads < 2:
        return ""
    if base is not None and base.threads == 1 and base.share("futex") >= WHOLE_SHARE:
        return ""
    if cell.dealer is not None:
        wanted = cell.running >= RUNNING_MIN and _one_word(cell) and _has_work(here, cell.dealer)
        return _where(cell) if wanted else ""
    if cell.running >= RUNNING_MIN or _handed_over(cell):
        return _where(cell)
    return ""


def _has_work(here: Here, dealer: Dealer) -> bool:
    """Is there more work than the threads take? Then their queue is full, or the clients, which
    have CPU time left and do not sleep, wait for them."""
    if dealer.ran >= SATURATED:
        return False
    clients = client_roles(here)
    waiting = all(c.busiest < SATURATED and c.asleep < WHOLE_SHARE for c in clients)
    return dealer.waits_for_takers or (bool(clients) and waiting)


def _handed_over(cell: Picture) -> bool:
    """Short waits, one after another: a lock that is handed over to a thread that must wake."""
    switches = cell.per_operation("switches")
    if cell.running < HANDED_RUNNING_MIN or switches <= 0:
        return False
    turn = cell.mean("futex") / switches / max(cell.threads - 1, 1)
    return turn <= HANDED_NS_MAX


def _one_word(cell: Picture) -> bool:
    seen = cell.readings.get("futex", 0)
    return seen > 0 and sum(a.word.readings for a in cell.accounts) >= ONE_WORD * seen


def _where(cell: Picture) -> str:
    seen = cell.readings.get("futex", 0)
    if _one_word(cell):
        at = min(1.0, sum(account.word.readings for account in cell.accounts) / seen)
        threads = max(account.word.threads for account in cell.accounts)
        return f", {percent(at)} of that at one word where {threads} threads wait"
    many = max(account.word.words for account in cell.accounts) >= cell.threads
    own = ", at words of their own" if many and seen >= 10 * cell.threads else ""
    run = f"{number(cell.running)} of {cell.threads} threads run"
    return f"{own}, while {run}: they wait for one another"
