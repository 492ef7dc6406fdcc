"""A verdict → its share of the loss, and the runner-up. Pure.

The loss is what the capacity of an operation exceeds that of the base by; where that is not known,
its thread time. A share of the first is that of parts of the lost speed-up, as tables show them:
what a sentence tells can be recomputed from these. Shares of one loss are compared by the intervals
of their parts alone; the interval that is told holds the noise of the loss, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from concurve.estimate import Estimate
from concurve.explain.breakdown import (
    Breakdown,
    capacity_excess,
    capacity_values,
    excess,
    is_beyond_noise,
    values,
)
from concurve.explain.causes import further_verdicts
from concurve.explain.locks import is_seen
from concurve.explain.losses import (
    columns_of,
    loss_of,
    parts_with,
    sure_parts,
    whole_excess,
    whole_values,
)
from concurve.explain.others import is_doubtful
from concurve.explain.verdict import Case, Verdict, is_crowded, times
from concurve.findings.explanation import NO_LOSS, Cause, RunnerUp
from concurve.stats.means import mean_difference, share_of_difference
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
    """How much of the loss a cause is, where it is known, and what comes next. ``parts``: the parts
    of the lost speed-up that the share is of; empty where that is not divided."""

    share: Estimate | None = None
    runner_up: RunnerUp | None = None
    parts: tuple[str, ...] = ()


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
    share = _told(case.cell, case.base, verdict)
    parts = _parts_of(case.cell, case.base, verdict) if share is not None else ()
    if verdict.either is not None:
        return Weight(share, RunnerUp(verdict.either, share, is_indistinct=True), parts)
    # Of one without parts it is not known which of them it is, and so what comes next.
    return Weight(share, _next(case, case.base, verdict) if verdict.parts else None, parts)


def greater_without_cause(weight: Weight) -> tuple[str, ...]:
    """The part of the lost speed-up of which no cause is known, where it is greater than the share
    of the cause; else empty."""
    share, second = weight.share, weight.runner_up
    if share is None or second is None or second.share is None or second.cause != "none":
        return ()
    return second.parts if second.share.value > share.value and not second.may_be_less else ()


def _next(case: Case, base: Breakdown, verdict: Verdict) -> RunnerUp | None:
    """The greatest of what is left of the loss that is beyond its noise; ``None`` without one. Its
    cause is ``none`` where only the part of the lost speed-up is known."""
    first = _share(case.cell, base, verdict)
    # What of a server is used up bounds its rate, however little waits for it.
    is_used_up = bool(verdict.limit) and verdict.cause != "stage"
    if first is not None and not is_used_up and 1.0 - first.value < NAMED_MIN:
        return None  # where the first one is all of the loss, nothing is left for another
    found = [*_further(case, base, verdict), *_without_cause(case, base, verdict)]
    second = max(found, key=_value, default=None)
    if second is None or second.cause != "none":
        return second
    is_sure = _is_surely_greater(case.cell, base, second.parts, verdict)
    return msgspec.structs.replace(second, may_be_less=not is_sure)


def _is_surely_greater(
    cell: Breakdown, base: Breakdown, parts: tuple[str, ...], verdict: Verdict
) -> bool:
    """Are parts of the lost speed-up greater than what a verdict stands for, beyond the noise of
    the difference? Of single trials that is not known, and the greater figure counts."""
    own, other = _of_parts(cell, base, parts), _sides(cell, base, verdict)
    if other is None:
        return False
    ours, before = (
        [one - another for one, another in zip(*both, strict=True)]
        for both in zip(own.part, other.part, strict=True)
    )
    more = mean_difference(ours, before, is_staged=own.is_staged)
    return more.value > 0 if more.low is None else more.low > 0


def _value(second: RunnerUp) -> float:
    return second.share.value if second.share is not None else 0.0


def _further(case: Case, base: Breakdown, verdict: Verdict) -> Iterator[RunnerUp]:
    """The causes of other parts of the loss than those of a verdict. One that the evidence cannot
    tell apart from another is none: its part of the lost speed-up has no known cause."""
    cell = case.cell
    own = set(_columns(cell, base, verdict))
    for other in further_verdicts(case):
        its = _share(cell, base, other)
        is_apart = other.cause != verdict.cause and not own & set(_columns(cell, base, other))
        is_shown = verdict.cause != "contamination" or (other.cause == "lock" and is_seen(cell))
        # Who waits for the load does so as something else is used up.
        is_shown = is_shown and not (verdict.limit and other.cause == "client")
        is_some = its is not None and (its.low is None or its.low > 0)
        is_shown = is_shown and not (other.either and _is_divided(cell, base))
        if its is not None and is_some and its.value >= NAMED_MIN and is_apart and is_shown:
            told = _told(cell, base, other)
            yield RunnerUp(other.cause, told, parts=_parts_of(cell, base, other))


def _without_cause(case: Case, base: Breakdown, verdict: Verdict) -> Iterator[RunnerUp]:
    """The parts of the lost speed-up that are beyond their noise, and that no cause is named of.
    Where others had the CPUs, all of them may be their doing."""
    cell = case.cell
    if not _is_divided(cell, base) or verdict.cause == "contamination":
        return
    caused = [verdict, *(it for it in further_verdicts(case) if not it.either)]
    named = {name for it in caused for name in _parts_of(cell, base, it)}
    for name in sure_parts(cell, base):
        share = _interval_of(_of_parts(cell, base, (name,)))
        if name not in named and share is not None and share.value >= NAMED_MIN:
            yield RunnerUp("none", share, parts=(name,))


def outweighed(case: Case, verdict: Verdict) -> Verdict:
    """The verdict with the greatest share of the loss, if that of this one is clearly less: its
    thread time grew more, but that time cost little; ``none`` if all of them explain little. Too
    many threads for the CPUs cost nothing in any case, and are the limit, unless more CPU time is
    most of a great loss; so is what of a server is used up."""
    if case.base is None or verdict.cause == "none" or (case.serving and verdict.limit):
        return verdict
    if not case.serving and is_crowded(case.cell) and verdict.cause not in _OF_CPU_TIME:
        is_by_others = verdict.cause in ("contamination", "quota")
        return verdict if is_by_others else _costlier(case, case.base, verdict) or verdict
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
            rest = f"that is {part} of the loss, too little to be its cause"
        return best._replace(
            cause="none", words=f"{best.words}; {rest}", limit="", parts=(), either=None, remedy=""
        )
    return best


#: Of a smaller part of the possible speed-up it is not said what would give it back to who starts
#: more threads than there are CPUs.
_CROWDED_LOSS_MIN = 0.25


def _costlier(case: Case, base: Breakdown, verdict: Verdict) -> Verdict | None:
    """The first cause of more CPU time that surely is most of a great loss; ``None`` without one.
    Fewer threads would not give that back. Of waits for a CPU it is enough that more CPU time is
    most of the loss, and surely more of it than they are: then ``none`` is the cause where that of
    the CPU time is not known."""
    loss = loss_of(case.cell, base)
    if loss is None or loss.speedup > (1 - _CROWDED_LOSS_MIN) * loss.possible:
        return None
    is_of_cpus = verdict.cause == "cpu"
    for other in further_verdicts(case):
        if other.cause not in _OF_CPU_TIME:
            continue
        share = _share(case.cell, base, other)
        is_surely_most = share is not None and share.low is not None and share.low >= MAIN_HIGH
        if is_surely_most or (is_of_cpus and _is_mostly(case.cell, base, other.parts)):
            return other
    if not is_of_cpus or not _is_mostly(case.cell, base, ("cpu",)):
        return None
    more = times(case.cell, base)
    return Verdict("none", f"{more} the CPU time, for a reason that is not known")


def _is_mostly(cell: Breakdown, base: Breakdown, parts: tuple[str, ...]) -> bool:
    """Is the loss mostly what such components are, and surely more that than waits for a CPU?"""
    share, queued = (
        _share(cell, base, Verdict("none", "", parts=of)) for of in (parts, ("run_queue",))
    )
    if share is None or share.low is None or queued is None:
        return False
    return share.value >= MAIN_HIGH and share.low >= max(MAIN_MIN, queued.value)


def _is_lost(cell: Breakdown, base: Breakdown) -> bool:
    """Is the loss beyond its noise? One trial tells no noise."""
    divided = _is_divided(cell, base)
    whole = whole_excess(cell, base) if divided else excess(cell, base, "total")
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
    slots = _slots(verdict)
    return tuple(dict.fromkeys([*slots, "queue"])) if _wakes(cell, base, verdict) else slots


def _slots(verdict: Verdict) -> tuple[str, ...]:
    """The parts of the capacity that hold what a verdict is of."""
    if verdict.is_loss:
        return verdict.parts
    parts = (*verdict.parts, "cpu") if verdict.station else verdict.parts
    return tuple(dict.fromkeys(_SLOTS.get(part, "waiting") for part in parts))


def _is_divided(cell: Breakdown, base: Breakdown) -> bool:
    """Is the lost speed-up divided into its parts?"""
    return loss_of(cell, base) is not None


def _parts_of(cell: Breakdown, base: Breakdown, verdict: Verdict) -> tuple[str, ...]:
    """The parts of the lost speed-up that a verdict stands for; empty where it is not divided."""
    if not verdict.parts or not _is_divided(cell, base):
        return ()
    return parts_with(cell, base, _columns(cell, base, verdict))


class _Sides(NamedTuple):
    """The values of a part of a loss and of the whole in the trials of a cell and of its base."""

    part: tuple[list[float], list[float]]
    whole: tuple[list[float], list[float]]
    is_staged: bool


def _of_parts(cell: Breakdown, base: Breakdown, parts: tuple[str, ...]) -> _Sides:
    """Some parts of the lost speed-up together."""
    columns = columns_of(cell, base, parts)
    part = capacity_values(cell, columns), capacity_values(base, columns)
    return _Sides(part, whole_values(cell, base), cell.is_staged or base.is_staged)


def _sides(cell: Breakdown, base: Breakdown, verdict: Verdict) -> _Sides | None:
    """What a verdict stands for: parts of the lost speed-up, or of the thread time where that is
    not divided; ``None`` where it has none."""
    if not verdict.parts:
        return None
    if _is_divided(cell, base):
        return _of_parts(cell, base, _parts_of(cell, base, verdict))
    if not all(part in side.columns for side in (cell, base) for part in verdict.parts):
        return None
    part = (
        values(cell, verdict.parts, verdict.station),
        values(base, verdict.parts, verdict.station),
    )
    whole = values(cell, ("total",)), values(base, ("total",))
    return _Sides(part, whole, cell.is_staged or base.is_staged)


def _share(cell: Breakdown, base: Breakdown, verdict: Verdict) -> Estimate | None:
    """The part of the loss that a verdict stands for; ``None`` where it has none. The interval is
    that of the part alone, by which parts of one loss are compared."""
    sides = _sides(cell, base, verdict)
    if sides is None:
        return None
    part, whole = (mean_difference(*of_it, is_staged=sides.is_staged) for of_it in sides[:2])
    if whole.value <= 0:
        return None
    value, low, high = (
        None if figure is None else min(1.0, max(0.0, figure / whole.value))
        for figure in (part.value, part.low, part.high)
    )
    return Estimate(value=value or 0.0, low=low, high=high, n=part.n)


def _told(cell: Breakdown, base: Breakdown, verdict: Verdict) -> Estimate | None:
    """The same as it is told: the interval holds the noise of the loss, too, and the share of a
    lock without the waits for a CPU that are taken for its cost."""
    found = _interval_of(_sides(cell, base, verdict))
    if found is None or found.low is None or not _wakes(cell, base, verdict):
        return found
    if not _is_divided(cell, base):
        return found
    alone = parts_with(cell, base, _slots(verdict))
    without = _interval_of(_of_parts(cell, base, alone))
    if without is None or without.low is None:
        return found
    return Estimate(value=found.value, low=min(found.low, without.low), high=found.high, n=found.n)


def _interval_of(sides: _Sides | None) -> Estimate | None:
    """The share of a part and its interval; ``None`` where nothing is lost."""
    if sides is None or mean_difference(*sides.whole).value <= 0:
        return None
    return share_of_difference(*sides)


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
