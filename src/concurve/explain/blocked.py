"""What the threads of a server are blocked on, as one clause by kinds of waits. Pure."""

from __future__ import annotations

from collections import defaultdict

from concurve.explain.breakdown import Breakdown
from concurve.explain.components import sync_of, waits_for_no_session
from concurve.explain.locks import LOCKED_ON
from concurve.explain.waiting import KIND_READINGS_MIN, KINDS, waits_at_futexes, wake_ups_at
from concurve.words import count, percent

#: A server that is blocked for a smaller share of its threads' time has other limits.
TOLD_MIN = 0.25
#: Kinds with a smaller share of the threads' time are told together.
KIND_MIN = 0.01
#: Fewer samples of blocked threads leave the shares of the kinds open by more than a quarter
#: (Clopper & Pearson 1934, two-sided, 95 %).
READINGS_FEW = 50
#: A command that asks for more trials asks for so many at most.
_REPEATS_MAX = 40

_CLIENT, _CLIENT_OR_LOCKS = "its client", "its client or locks"
_DISK, _LOG = "the disk", "the log's disk"
_LOCKS, _LOCKS_OR_WORK = "locks", "locks or work"
#: The kinds that mean one thing alone.
_NAMES = {
    "sleep": "asleep",
    "child": "child processes",
    "file_lock": "locks of files",
    "memory": "changes of the address space",
    "other": "something else",
}


def blocked_clause(cell: Breakdown, run: str) -> str:
    """``Blocked 44 % of the time: the log's disk 20 %, its client 15 %, locks 9 %.``: shares of the
    thread time, the greatest first. Where few samples tell the kinds, the command that takes more
    of the study of ``run`` follows. Empty without samples, and where threads are seldom blocked."""
    share = cell.share("blocked")
    seen = sum(cell.readings.get(kind, 0) for kind in KINDS)
    if share < TOLD_MIN or not seen or not cell.sampled:
        return ""
    parts: defaultdict[str, float] = defaultdict(float)
    for kind in KINDS:
        for name, part in _names_of(cell, kind).items():
            parts[name] += part * cell.share(kind)
    ranked = sorted(parts.items(), key=lambda it: -it[1])
    told = [(name, part) for name, part in ranked if part >= KIND_MIN]
    rest = share - sum(part for _, part in told)
    kinds = ", ".join(f"{name} {percent(part)}" for name, part in told)
    others = f", others {percent(rest)}" if rest >= KIND_MIN else ""
    said = f"Blocked {percent(share)} of the time: {kinds}{others}."
    if seen >= READINGS_FEW:
        return said
    repeats = min(_REPEATS_MAX, -(-cell.trials * READINGS_FEW // seen))
    more = f"concurve run run:{run} --repeats {repeats} takes more"
    return f"{said} That is by {count(seen, 'sample')} alone; {more}."


def _names_of(cell: Breakdown, kind: str) -> dict[str, float]:
    """What waits of a kind are for, in words, and the share of them that each is."""
    if kind == "disk":
        return {_LOG if sync_of(cell) else _DISK: 1.0}
    if kind == "futex":
        return _at_futexes(cell)
    if kind == "wake_up":
        return {_of_the_woken(cell): 1.0}
    if kind in _NAMES:
        return {_NAMES[kind]: 1.0}
    return {_CLIENT if waits_for_no_session(cell) else _CLIENT_OR_LOCKS: 1.0}


def _at_futexes(cell: Breakdown) -> dict[str, float]:
    """Who waits for another one that flushes the log waits for its disk. Waits whose places are
    known stand for the others."""
    sites = [account.sites for account in cell.accounts]
    seen = waits_at_futexes(sites, writes=bool(sync_of(cell)))
    if seen.known < KIND_READINGS_MIN:
        return {_LOCKS_OR_WORK: 1.0}
    left = seen.known - seen.writing - seen.at_locks
    counted = {_LOG: seen.writing, _LOCKS: seen.at_locks, _LOCKS_OR_WORK: left}
    return {name: number / seen.known for name, number in counted.items()}


def _of_the_woken(cell: Breakdown) -> str:
    """What who is woken from inside waits for."""
    seen = wake_ups_at(account.sites for account in cell.accounts)
    if seen.known < KIND_READINGS_MIN or 2 * seen.at_locks < seen.known:
        return _LOCKS_OR_WORK
    on = LOCKED_ON.get(seen.operation)
    return f"{_LOCKS} on {on}" if on else _LOCKS
