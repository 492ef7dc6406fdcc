"""The case that the component functions judge and the verdict that they return, with shared
thresholds and words."""

from __future__ import annotations

from typing import NamedTuple

from concurve.explain.breakdown import Breakdown
from concurve.findings.explanation import Cause
from concurve.stats.moments import mean
from concurve.words import percent

#: Another role or process is the cause of an excess if it can explain at least this share.
EXPLAINS = 0.5
#: A kind of waiting with this share of the time limits a cell, whatever its share in the base.
WHOLE_SHARE = 0.5
#: Work conservation: if a lock limits, its holder runs, so at least this many threads run.
RUNNING_MIN = 0.9
#: A thread that runs this share of the time is used up.
SATURATED = 0.85


class Verdict(NamedTuple):
    """A cause, and the rest of the sentence that says where the time goes. ``unproven``: no excess
    over the base shows it; ``open``: other processes may still have been the cause.
    ``parts`` are those of the thread time, or of the capacity (``is_loss``), whose excess names it.
    ``either`` is a cause that the evidence cannot tell apart from it.
    ``limit`` is what is used up where a server was loaded: CPUs, a thread, or the load; of a stage
    its thread. ``station``: threads of a server for which others wait, by the ``parts``; the time
    for which they run, or wait for a CPU, is a part, too. ``is_loss``: the words say how wall time
    was lost, not where thread time went. ``is_uncounted``: the base uses the CPUs already, as the
    number of workers does not count what runs. ``remedy`` says what to do where the load is used
    up, or what more threads can gain at most. ``either_way``: of a verdict without a cause, the two
    things that the evidence cannot tell apart, in words."""

    cause: Cause
    words: str
    unproven: bool = False
    open: bool = False
    limit: str = ""
    is_loss: bool = False
    parts: tuple[str, ...] = ()
    either: Cause | None = None
    station: str = ""
    is_uncounted: bool = False
    remedy: str = ""
    either_way: str = ""


class Case(NamedTuple):
    """A cell and its base (``None`` for the base itself), and whether it serves clients."""

    cell: Breakdown
    base: Breakdown | None
    serving: bool


def mixture(cell: Breakdown) -> str:
    """The components of the time of a cell, in words."""
    waiting = [f"{percent(cell.share('cpu'))} of it on a CPU"]
    if "run_queue" in cell.columns:
        waiting.append(f"{percent(cell.share('run_queue'))} waiting for one")
    waiting.append(f"{percent(cell.share('blocked'))} blocked")
    return ", ".join(waiting)


def number(value: float) -> str:
    """A number of CPUs or threads: ``1.9``, ``0.03``."""
    return f"{value:.1f}" if value >= 0.05 else f"{value:.2g}"


def times(cell: Breakdown, base: Breakdown) -> str:
    """The ratio of an operation's CPU time to that of the base, in words."""
    ratio = cell.mean("cpu") / base.mean("cpu") if base.mean("cpu") else 0.0
    return f"{ratio:.2f} ×" if ratio < 1.95 else f"{ratio:.1f} ×"


#: Threads are too many for the CPUs if so many more of them are ready at a time: one that hardly
#: works does not make them too many.
READY_MIN = 1.1


def is_crowded(cell: Breakdown) -> bool:
    """Are more of its threads ready at a time, on the average, than it has CPUs?"""
    if cell.cpus is None or cell.threads <= cell.cpus:
        return False
    ready = mean([(a.cpu_ns + (a.run_queue_ns or 0.0)) / a.wall_ns for a in cell.accounts])
    return ready > READY_MIN * cell.cpus


def cost_words(case: Case) -> str:
    """The increase of CPU time, which costs throughput; waiting while other threads run does
    not."""
    return f", at {times(case.cell, case.base)} the CPU time" if case.base is not None else ""
