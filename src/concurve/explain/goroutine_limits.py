"""What limits a Go program, by what its goroutines wait for. Pure."""

from __future__ import annotations

from math import floor

from concurve.explain.breakdown import Breakdown
from concurve.explain.goroutines import Goroutines
from concurve.explain.locks import is_seen
from concurve.explain.verdict import EXPLAINS, Case, Verdict, number

#: Below this share of the speed-up that is possible, there is a loss to explain.
SPEEDUP_MIN = 0.9
#: So many goroutines wait at a channel, for each worker.
CHANNEL_MIN = 0.25
#: A channel keeps workers from work if this share of them is missing, of those that there are more
#: than in the base.
MISSING_MIN = 0.1
#: A goroutine that waits for all but this share of the time does nothing else.
IDLE_SLACK = 0.05
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
    missing = _missing(case.cell, base, workers)
    if is_seen(case.cell) and found.locked >= EXPLAINS * missing:
        many = f"{number(found.locked)} goroutines"
        return Verdict("lock", f"{many} wait for a sync.Mutex or RWMutex at a time")
    return _by_channels(found, base, workers) if missing >= MISSING_MIN * workers else None


def _missing(cell: Breakdown, base: Breakdown, workers: float) -> float:
    """How many of the workers do no work at a time: of those that there are more than in the base,
    whose other goroutines work in both; else of all."""
    found, before = cell.goroutines, base.goroutines
    assert found is not None
    if before is None or base.level is None:
        return workers - found.running - found.collecting
    return (workers - base.level) - (_occupied(found) - _occupied(before))


def _occupied(found: Goroutines) -> float:
    """Goroutines that work, collect, or wait for what is outside of the program."""
    return found.running + found.collecting + found.outside


def _idle(found: float, base: float) -> float:
    """How many of the goroutines that wait at channels do so throughout, in the base as well: they
    wait for the end, or for what never comes."""
    return float(floor(min(found, base) + IDLE_SLACK))


def _by_channels(found: Goroutines, base: Breakdown, workers: float) -> Verdict | None:
    """What is at the other end of a channel: another goroutine, or those that wait themselves."""
    before = base.goroutines
    idle = 0.0 if before is None else _idle(found.sending, before.sending)
    sending = found.sending - idle
    many = f"{number(sending)} goroutines wait to send to a channel at a time"
    if sending >= CHANNEL_MIN * workers and _is_semaphore(found, base, workers):
        words = f"{many}, and no other goroutine receives from it"
        return Verdict("lock", f"{words}: the channel is used as a lock")
    if sending >= CHANNEL_MIN * workers:
        return Verdict("stage", f"{many}: what receives from it is the limit")
    idle = 0.0 if before is None else _idle(found.receiving, before.receiving)
    receiving = found.receiving - idle
    many = f"{number(receiving)} goroutines wait to receive from a channel at a time"
    if receiving >= CHANNEL_MIN * workers and _is_pool(found, base, workers):
        words = f"{many}, to which they send themselves"
        return Verdict("lock", f"{words}: the channel is a pool with too little in it")
    # One may wait for the end of all, also where that is not seen in the base.
    if receiving + min(idle, 1.0) >= 1 + CHANNEL_MIN * workers:
        return Verdict("stage", f"{many}: what sends to it is the limit")
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
