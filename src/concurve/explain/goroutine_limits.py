"""What limits a Go program, by what its goroutines wait for. Pure."""

from __future__ import annotations

from concurve.explain.breakdown import Breakdown
from concurve.explain.verdict import Case, Verdict, number

#: Below this share of the speed-up that is possible, there is a loss to explain.
SPEEDUP_MIN = 0.9
#: So many goroutines wait for a lock on the average, for each worker.
LOCKED_MIN = 0.02
#: The same for a channel.
CHANNEL_MIN = 0.25


def by_goroutines(case: Case) -> Verdict | None:
    """A lock of Go's library, or a stage behind a channel; ``None`` if nothing is lost, if none of
    them explains it, or if the program is not written in Go."""
    found, base = case.cell.goroutines, case.base
    if found is None or base is None or not _loses(case.cell, base):
        return None
    workers = case.cell.level or case.cell.threads
    if workers > 1 and found.locked >= LOCKED_MIN * workers:
        many = f"{number(found.locked)} of {workers:g} goroutines"
        return Verdict("lock", f"{many} wait for a sync.Mutex or RWMutex at a time")
    if found.sending >= CHANNEL_MIN * workers:
        words = f"{number(found.sending)} goroutines wait to send to a channel at a time"
        return Verdict("stage", f"{words}: what receives from it is the limit")
    if found.receiving >= 1 + CHANNEL_MIN * workers:
        words = f"{number(found.receiving)} goroutines wait to receive from a channel at a time"
        return Verdict("stage", f"{words}: what sends to it is the limit")
    return None


def _loses(cell: Breakdown, base: Breakdown) -> bool:
    """Is much less done than so many more workers could do?"""
    levels = [side.level for side in (cell, base)]
    if None in levels or not cell.cpus or not base.cpus:
        return False
    workers, before = (min(side.level or 1.0, float(side.cpus or 1)) for side in (cell, base))
    speedup = base.per_operation("wall_ns") / cell.per_operation("wall_ns")
    return speedup < SPEEDUP_MIN * workers / before
