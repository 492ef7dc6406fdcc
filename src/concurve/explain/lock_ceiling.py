"""Waits for one lock → how much speed-up it allows at most. Pure.

A lock that one thread has at a time bounds the rate of operations by the time for which each holds
it, however many workers there are. Records do not have that time; but while a thread waits for the
lock, another one has it. Of N threads at most N − 1 wait at once, so the lock is held for at least
the waits of an operation over N − 1. The time of an operation in the base over that is the bound.
It is near what the lock allows where most threads wait, and far above it where few do.

Experiments measure the time: the share of the wall time in which a thread has the lock. The
speed-up over that share is what the lock allows, and goes before the bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from concurve.estimate import Estimate
from concurve.explain.breakdown import Breakdown
from concurve.explain.locks import HANDED_NS_MAX
from concurve.explain.verdict import Case, Verdict
from concurve.explain.waiting import KIND_READINGS_MIN
from concurve.findings.confirmation import Confirmation
from concurve.findings.explanation import CellExplanation
from concurve.stats.means import mean_estimate

#: What one thread has at a time. A semaphore may let in more, and so does a lock of readers.
_EXCLUSIVE = "mutex"
#: Nearly all places of the waits are of that kind.
_EXCLUSIVE_SHARE_MIN = 0.9
#: As records name the global interpreter lock of Python, which is also handed on while it is held.
_INTERPRETER_LOCK = "GIL"


def lock_held(case: Case, verdict: Verdict) -> Estimate | None:
    """The share of the time of an operation in the base for which a lock is held at least, with its
    interval; ``None`` where the lock is not the cause, or the evidence does not tell.

    It tells where the waits are at mutexes and at one futex, and each thread could have a CPU: a
    holder that waits for one holds the lock for longer than its work takes. Nor does it where turns
    are so short that the waits may be for a wake-up, in which the lock is free.
    """
    cell, base = case.cell, case.base
    if base is None or verdict.cause != "lock" or verdict.either is not None:
        return None
    has_cpus = cell.cpus is not None and cell.threads <= cell.cpus
    if cell.threads < 2 or not has_cpus or "futex" not in cell.columns or cell.is_go:
        return None
    if _is_handed_over(cell):
        return None
    share = _at_one_lock(cell)
    # Another thread of the program that takes the lock was seen waiting there, too.
    takers = max(cell.threads, *(account.word.threads for account in cell.accounts))
    held = mean_estimate(
        [share * waits / (takers - 1) for waits in cell.columns["futex"]], is_staged=cell.is_staged
    )
    before = mean_estimate(
        [it.wall_ns / it.operations for it in base.accounts], is_staged=base.is_staged
    )
    if share <= 0 or not held.low or not before.low or held.high is None or before.high is None:
        return None
    return Estimate(
        value=min(1.0, held.value / before.value),
        low=min(1.0, held.low / before.high),
        high=min(1.0, held.high / before.low),
        n=held.n,
    )


def share_measured(cell: CellExplanation, tried: Sequence[Confirmation]) -> Estimate | None:
    """The share of the time in which a thread has the lock of a cell, by the newest experiments
    that measured it; ``None`` without them, and where a lock is not the cause."""
    held = [
        it.held_share
        for it in tried
        if it.parameters == cell.parameters and it.cause == "lock" and it.held_share is not None
    ]
    return held[-1] if held and cell.cause == "lock" and held[-1].low else None


#: With fewer goroutines that wait on the average, a lock may be free in between.
_WAITING_MIN = 2.0


def waits_in_go(case: Case, verdict: Verdict) -> float:
    """How many goroutines wait at a mutex on the average, where these are so many that it is hardly
    ever free, and nearly all sampled waits for locks are at one place; else 0, as of a base."""
    cell, base, found = case.cell, case.base, case.cell.goroutines
    if base is None or verdict.cause != "lock" or not cell.is_go or found is None:
        return 0.0
    seen: Counter[tuple[str | None, int | None]] = Counter()
    for account in cell.accounts:
        for site in () if account.sites is None else account.sites.listed:
            if site.primitive == _EXCLUSIVE:
                seen[site.function, site.line] += site.readings
    known = seen.total()
    most = max(seen.values(), default=0)
    if known < KIND_READINGS_MIN or most < _EXCLUSIVE_SHARE_MIN * known:
        return 0.0
    return found.locked if found.locked >= _WAITING_MIN else 0.0


def _is_handed_over(cell: Breakdown) -> bool:
    """Is a turn at the lock no longer than handing it to a thread that sleeps may take?"""
    sleeps = cell.per_operation("switches") * (cell.threads - 1)
    return sleeps <= 0 or cell.mean("futex") <= HANDED_NS_MAX * sleeps


def _at_one_lock(cell: Breakdown) -> float:
    """The share of the waits at futexes that are at one of them, if they are at mutexes; else 0."""
    listed = [site for it in cell.accounts if it.sites is not None for site in it.sites.listed]
    sites = [site for site in listed if site.primitive != "join"]
    known = sum(site.readings for site in sites)
    exclusive = sum(
        site.readings
        for site in sites
        if site.primitive == _EXCLUSIVE and site.lock != _INTERPRETER_LOCK
    )
    if known < KIND_READINGS_MIN or exclusive < _EXCLUSIVE_SHARE_MIN * known:
        return 0.0
    seen = cell.readings.get("futex", 0)
    at_word = sum(account.word.readings for account in cell.accounts)
    return min(1.0, at_word / seen) if seen else 0.0
