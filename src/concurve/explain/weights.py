"""A verdict → its share of the loss, and the runner-up. Pure.

The loss is what the capacity of an operation exceeds that of the base by; where that is not known,
its thread time. The interval is that of the part, over the mean of the loss.
"""

from __future__ import annotations

from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.explain.breakdown import Breakdown, capacity_excess, excess, is_beyond_noise
from concurve.explain.causes import further_verdicts
from concurve.explain.locks import is_seen
from concurve.explain.losses import loss_of, whole_excess
from concurve.explain.others import is_doubtful
from concurve.explain.verdict import Case, Verdict, is_crowded
from concurve.findings.explanation import NO_LOSS, Cause, RunnerUp
from concurve.stats.means import mean_difference
from concurve.stats.moments import mean
from concurve.words import percent

#: The parts of the capacity that hold those of the thread time; all others are waiting.
_SLOTS = {"cpu": "cpu", "run_queue": "queue", "spin_waits": "imbalance"}


#: A smaller share of the loss is not named.
NAMED_MIN = 0.05


#: Causes whose part of the loss is CPU time, however many threads wait for the CPUs.
_OF_CPU_TIME: frozenset[Cause] = frozenset(("coherency", "memory", "smt", "clock"))

#: What explains less than a quarter of a loss, and surely less than half, is not its cause.
MAIN_MIN = 0.25
MAIN_HIGH = 0.5


class Weight(NamedTuple):
    """How much of the loss a cause is, where it is known, and what comes next."""

    share: Estimate | None = None
    runner_up: RunnerUp | None = None


def weigh(case: Case, verdict: Verdict) -> Weight:
    """The share of a verdict, and the cause with the next greatest share. A cause that cannot be
    told apart from it comes first: it has the same share. Where others had the CPUs, who waited
    for whom is their doing, too: only a lock that threads were seen waiting for is named. Nothing
    has a share of a loss that may be none, and the thread time of a Go server that serves more is
    no loss."""
    if case.base is None or verdict.cause == "none" or verdict.is_uncounted:
        return Weight()
    if case.serving and verdict.cause == "contamination":
        return Weight()  # of the waits for CPUs that others and its own threads had, it has a part
    is_gain = case.serving and case.cell.is_go and _gained(case.cell, case.base) > 0
    if is_gain or not _is_lost(case.cell, case.base):
        if verdict.either is None:
            return Weight()
        return Weight(None, RunnerUp(verdict.either, None, is_indistinct=True))
    share = _share(case.cell, case.base, verdict)
    if verdict.either is not None:
        return Weight(share, RunnerUp(verdict.either, share, is_indistinct=True))
    # Of one without parts it is not known which of them it is, and so what comes next.
    return Weight(share, _next(case, case.base, verdict, share) if verdict.parts else None)


def _next(case: Case, base: Breakdown, verdict: Verdict, share: Estimate | None) -> RunnerUp | None:
    """The cause with the next greatest share, of another part of the loss; ``None`` without one."""
    own = set(_columns(case.cell, base, verdict))
    found: dict[Cause, Estimate] = {}
    for other in further_verdicts(case):
        its = _share(case.cell, base, other)
        is_apart = other.cause != verdict.cause and not own & set(_columns(case.cell, base, other))
        is_shown = verdict.cause != "contamination" or (
            other.cause == "lock" and is_seen(case.cell)
        )
        # Who waits for the load does so as something else is used up.
        is_shown = is_shown and not (verdict.limit and other.cause == "client")
        is_some = its is not None and (its.low is None or its.low > 0)
        if its is not None and is_some and its.value >= NAMED_MIN and is_apart and is_shown:
            found.setdefault(other.cause, its)
    if not found:
        return None
    cause = max(found, key=lambda one: found[one].value)
    is_used_up = bool(verdict.limit) and verdict.cause != "stage"
    second = found[cause] if is_used_up else _of_the_rest(found[cause], share)
    # Where the first one is all of the loss, nothing is left for another.
    return RunnerUp(cause, second) if second.value >= NAMED_MIN else None


def _of_the_rest(second: Estimate, first: Estimate | None) -> Estimate:
    """A share of a loss, but no more than a greater one leaves: what one part has won, others have
    lost together, which would be more than all."""
    if first is None or first.value < second.value:
        return second
    rest = max(0.0, 1.0 - first.value)
    low = None if second.low is None else min(second.low, rest)
    return Estimate(value=min(second.value, rest), low=low, high=second.high, n=second.n)


def outweighed(case: Case, verdict: Verdict) -> Verdict:
    """The verdict with the greatest share of the loss, if that of this one is clearly less: its
    thread time grew more, but that time cost little; ``none`` if all of them explain little. Too
    many threads for the CPUs cost nothing in any case, and are the limit, unless more CPU time is
    most of a great loss; so is what of a server is used up."""
    if case.base is None or verdict.cause == "none" or (case.serving and verdict.limit):
        return verdict
    if not case.serving and is_crowded(case.cell) and verdict.cause not in _OF_CPU_TIME:
        is_by_others = verdict.cause in ("contamination", "quota")
        return verdict if is_by_others else _costlier(case, case.base) or verdict
    share = _share(case.cell, case.base, verdict)
    if share is None or share.high is None:
        return verdict
    best, least = verdict, share.high
    may_be_small = share.low is None or share.low < MAIN_MIN
    for other in further_verdicts(case):
        its = _share(case.cell, case.base, other)
        if its is None or its.low is None:
            continue
        if its.low > least:
            best, least, share = other, its.low, its
        elif may_be_small and its.value > share.value and its.low >= MAIN_MIN:
            best, share = other, its
    if share.value < MAIN_MIN and (share.high or 0.0) < MAIN_HIGH:
        is_go = case.serving and case.cell.is_go
        gained = _gained(case.cell, case.base) if is_go else 0.0
        if gained:
            more = f"it serves {gained:.2f} × as many operations a second all the same"
            rest = f"{more}, by threads that take turns; {NO_LOSS}"
        else:
            part = percent(share.value)
            rest = f"that is {part} of the loss, and no cause was found for more of it"
        return best._replace(
            cause="none", words=f"{best.words}; {rest}", limit="", parts=(), either=None, remedy=""
        )
    return best


#: Of a smaller part of the possible speed-up it is not said what would give it back to who starts
#: more threads than there are CPUs.
_CROWDED_LOSS_MIN = 0.25


def _costlier(case: Case, base: Breakdown) -> Verdict | None:
    """The first cause of more CPU time that surely is most of a great loss; ``None`` without one.
    Fewer threads would not give that back."""
    loss = loss_of(case.cell, base)
    if loss is None or loss.speedup > (1 - _CROWDED_LOSS_MIN) * loss.possible:
        return None
    for other in further_verdicts(case):
        share = _share(case.cell, base, other) if other.cause in _OF_CPU_TIME else None
        if share is not None and share.low is not None and share.low >= MAIN_HIGH:
            return other
    return None


def _is_lost(cell: Breakdown, base: Breakdown) -> bool:
    """Is the loss beyond its noise? One trial tells no noise."""
    known = cell.capacity and base.capacity
    whole = whole_excess(cell, base) if known else excess(cell, base, "total")
    return whole.low is None or whole.low > 0


def _gained(cell: Breakdown, base: Breakdown) -> float:
    """How many times as many operations a second a server serves as its base, if these are surely
    more; else 0. Its threads may be more than can run at once, as those of Go's runtime, and take
    turns: what they wait grows with their number, and costs nothing."""
    own, before = (
        [trial.wall_ns / trial.operations for trial in side.accounts] for side in (cell, base)
    )
    less = mean_difference(before, own, "ns", is_staged=cell.is_staged or base.is_staged)
    return mean(before) / mean(own) if is_beyond_noise(less, before, own) else 0.0


def _columns(cell: Breakdown, base: Breakdown, verdict: Verdict) -> tuple[str, ...]:
    """The parts of the capacity that a verdict stands for."""
    if verdict.is_loss:
        return verdict.parts
    parts = (*verdict.parts, "cpu") if verdict.station else verdict.parts
    slots = [_SLOTS.get(part, "waiting") for part in parts]
    return tuple(dict.fromkeys([*slots, "queue"] if _wakes(cell, base, verdict) else slots))


def _share(cell: Breakdown, base: Breakdown, verdict: Verdict) -> Estimate | None:
    """The part of the loss that a verdict stands for; ``None`` where it has none."""
    if not verdict.parts:
        return None
    if cell.capacity and base.capacity:
        part = capacity_excess(cell, base, *_columns(cell, base, verdict))
        whole = whole_excess(cell, base).value
    elif not all(part in side.columns for side in (cell, base) for part in verdict.parts):
        return None
    else:
        part = excess(cell, base, *verdict.parts, station=verdict.station)
        whole = excess(cell, base, "total").value
    if whole <= 0:
        return None
    value, low, high = (
        None if figure is None else min(1.0, max(0.0, figure / whole))
        for figure in (part.value, part.low, part.high)
    )
    return Estimate(value=value or 0.0, low=low, high=high, n=part.n)


#: Another role that uses no more CPUs than this keeps nobody from one.
_RIVAL_CPUS_MAX = 0.05


def _wakes(cell: Breakdown, base: Breakdown, verdict: Verdict) -> bool:
    """Are the waits of workers for a CPU a part of what a lock costs? So they are where each could
    have a CPU, and nobody else takes one, neither another role nor a stranger: who is woken because
    the lock is free waits for the CPU on which the other one still runs. That is for no longer than
    the waits for the lock itself: where it surely is, something else keeps workers from the
    CPUs."""
    has_cpus = cell.cpus is not None and cell.threads <= cell.cpus
    is_alone = all(other.cpus <= _RIVAL_CPUS_MAX for other in cell.others)
    if verdict.cause != "lock" or not has_cpus or not is_alone or is_doubtful(cell):
        return False
    if not cell.capacity or not base.capacity:
        return True
    waited, queued = (capacity_excess(cell, base, part) for part in ("waiting", "queue"))
    least = queued.value if queued.low is None else queued.low
    return least <= waited.value
