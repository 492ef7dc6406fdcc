"""What limits a Go program, by what its goroutines wait for. Pure."""

from __future__ import annotations

from concurve.explain.breakdown import Breakdown
from concurve.explain.goroutines import Goroutines
from concurve.explain.locks import is_seen
from concurve.explain.verdict import Case, Verdict, number

#: Below this share of the speed-up that is possible, there is a loss to explain.
SPEEDUP_MIN = 0.9
#: The same for a channel.
CHANNEL_MIN = 0.25
#: So many goroutines that work, beyond the workers, are a stage of their own.
BESIDE_MAX = 0.5
#: A lone worker that runs for a smaller share of the time waits for an answer for most of it; it is
#: fed by nobody, if it and all others wait at channels for no more than this.
ASKS_MAX = 0.5
UNFED_MAX = 0.05


def by_goroutines(case: Case) -> Verdict | None:
    """A lock of Go's library, or a stage behind a channel; ``None`` if nothing is lost, if none of
    them explains it, or if the program is not written in Go."""
    found, base = case.cell.goroutines, case.base
    if found is None or base is None or not _loses(case.cell, base):
        return None
    workers = case.cell.level or case.cell.threads
    if is_seen(case.cell):
        many = f"{number(found.locked)} goroutines"
        return Verdict("lock", f"{many} wait for a sync.Mutex or RWMutex at a time")
    return _by_channels(found, base, workers)


def _by_channels(found: Goroutines, base: Breakdown, workers: float) -> Verdict | None:
    """What is at the other end of a channel: another goroutine, or those that wait themselves."""
    if found.sending >= CHANNEL_MIN * workers and _is_semaphore(found, base, workers):
        many = f"{number(found.sending)} goroutines"
        words = (
            f"{many} wait to send to a channel at a time, and no other goroutine receives from it"
        )
        return Verdict("lock", f"{words}: the channel is used as a lock")
    if found.sending >= CHANNEL_MIN * workers:
        words = f"{number(found.sending)} goroutines wait to send to a channel at a time"
        return Verdict("stage", f"{words}: what receives from it is the limit")
    if found.receiving >= CHANNEL_MIN * workers and _is_pool(found, base, workers):
        many = f"{number(found.receiving)} goroutines"
        words = f"{many} wait to receive from a channel at a time, to which they send themselves"
        return Verdict("lock", f"{words}: the channel is a pool with too little in it")
    if found.receiving >= 1 + CHANNEL_MIN * workers:
        words = f"{number(found.receiving)} goroutines wait to receive from a channel at a time"
        return Verdict("stage", f"{words}: what sends to it is the limit")
    return None


def _is_semaphore(found: Goroutines, base: Breakdown, workers: float) -> bool:
    """Is the channel a semaphore? Then those that send are those that receive, so beside the
    workers no goroutine works, and a single worker waits for none."""
    alone = _alone(found, base, workers)
    return alone is not None and alone.sending < CHANNEL_MIN and found.receiving < 1 + CHANNEL_MIN


def _is_pool(found: Goroutines, base: Breakdown, workers: float) -> bool:
    """Is the channel a pool, from which those take that put back? Then beside the workers no
    goroutine works but one that answers them, and a single worker waits at no channel."""
    alone = _alone(found, base, workers)
    if alone is None:
        return False
    return max(alone.receiving, alone.sending, found.sending) < CHANNEL_MIN


def _alone(found: Goroutines, base: Breakdown, workers: float) -> Goroutines | None:
    """The goroutines of a base with a single worker; ``None`` where it has more, or where others
    than the workers do work, unless these only answer."""
    alone = base.goroutines
    if alone is None or base.level != 1 or workers < 2:
        return None
    is_work_theirs = _working(found) <= workers + BESIDE_MAX and _working(alone) <= 1 + BESIDE_MAX
    return alone if is_work_theirs or _are_answered(found, alone) else None


def _are_answered(found: Goroutines, alone: Goroutines) -> bool:
    """Do the others only answer? A lone worker waits for that for most of the time, nobody waits at
    a channel beside it, and with more workers no more work goes on at a time."""
    asks = alone.running < ASKS_MAX and max(alone.sending, alone.receiving) <= UNFED_MAX
    return asks and abs(_working(found) - _working(alone)) <= BESIDE_MAX


def _working(found: Goroutines) -> float:
    """Goroutines that run, send, or have the kernel work for them."""
    return found.running + found.sending + found.outside


def _loses(cell: Breakdown, base: Breakdown) -> bool:
    """Is much less done than so many more workers could do?"""
    levels = [side.level for side in (cell, base)]
    if None in levels or not cell.cpus or not base.cpus:
        return False
    workers, before = (min(side.level or 1.0, float(side.cpus or 1)) for side in (cell, base))
    speedup = base.per_operation("wall_ns") / cell.per_operation("wall_ns")
    return speedup < SPEEDUP_MIN * workers / before
