"""Breakdowns of a cell and of its base → the cause, with the words of its evidence. Pure.

The component that exceeds that of the base most, and by enough, names the cause; the samples and
the other roles decide what it means (``docs/method/explain.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.explain.breakdown import Breakdown, excess, is_beyond_noise, values
from concurve.explain.components import (
    IDLE,
    OUTSIDE,
    blocked,
    filing,
    idling,
    outside,
    queueing,
    spinning,
    storing,
    sync_of,
    synchronising,
    throttling,
    waking,
)
from concurve.explain.computing import (
    SERVED_SPINNING_MIN,
    SPINNING,
    computing,
    mapping,
    served_spinning_words,
    starting,
)
from concurve.explain.goroutine_limits import by_goroutines
from concurve.explain.locks import is_seen, wait_often, woken_in_vain
from concurve.explain.losses import by_capacity, capacity_verdicts, lost_share, uncounted
from concurve.explain.others import (
    granted_share_of_others,
    is_doubtful,
    may_explain_all,
    outside_processes,
    surely_costs_more,
)
from concurve.explain.verdict import (
    EXPLAINS,
    WHOLE_SHARE,
    Case,
    Verdict,
    is_crowded,
    mixture,
    times,
)
from concurve.explain.waiting import KIND_READINGS_MIN, waits_at_futexes
from concurve.findings.explanation import Cause
from concurve.words import percent

#: Causes of which none is named where less than this share of the base's capacity is lost; or
#: twice as much where the interval of the loss has 0: who is disturbed loses so much, too.
NAMED_LOSS_MIN = 0.05
_OF_LOSSES: frozenset[Cause] = frozenset(("lock", "coherency", "memory", "smt", "kernel"))
#: An excess must reach this share of the base's time per operation.
LOSS_MIN = 0.02
#: The same for CPU time, which also varies with the machine (clock, caches, steal).
CPU_LOSS_MIN = 0.05
#: The same for waiting although there are enough CPUs: the runner and the kernel also cause it.
QUEUE_LOSS_MIN = 0.05
#: The same for a lock: nothing else makes threads wait for one another repeatedly.
LOCK_LOSS_MIN = 0.005
#: The same for other futex waits: threads also wait at a common start, long on a busy machine.
START_LOSS_MIN = 0.05
#: A part that is smaller than this share of one that has no known reason is no cause.
EXPLAINED_MIN = 0.5
#: A base that waited for no more than this share of the cell's time waited little.
LITTLE = 0.25


def cause_of(cell: Breakdown, base: Breakdown | None, serving: bool = False) -> Verdict:
    """What limits a cell. ``base`` is the breakdown of its base, ``None`` for the base itself;
    ``serving``: its threads serve clients."""
    case = Case(cell, base, serving)
    verdict = _serving(case) or _by_time(case, base)
    if serving and verdict.cause == "cpu" and verdict.parts != SPINNING:
        return verdict._replace(words=f"{verdict.words}{_spins_too(case)}")
    if verdict.limit:
        return verdict
    if verdict.cause == "none" and cell.used:
        others = f", while {outside_processes(cell)}" if is_doubtful(cell) else ""
        return verdict._replace(words=f"{verdict.words}; {cell.used}{others}")
    if verdict.cause == "contamination" and base is not None:
        return verdict._replace(words=f"{verdict.words}{_waits_too(cell, base)}")
    return verdict


def _waits_too(cell: Breakdown, base: Breakdown) -> str:
    """Where others take the CPUs, a lock is held longer: whether there is one that would limit a
    quiet machine cannot be told, but that threads were seen waiting for one can. Threads without
    work wait at futexes, too."""
    if not is_seen(cell) or "futex" not in cell.columns or "futex" not in base.columns:
        return ""
    waits, total = excess(cell, base, "futex"), excess(cell, base, "total")
    if waits.low is None or waits.low <= 0 or waits.value < LITTLE * total.value:
        return ""
    share = percent(min(1.0, waits.value / total.value))
    return f"; {share} of the increase is blocked on futexes, {_behind(cell)}"


def _behind(cell: Breakdown) -> str:
    """What most waits at futexes are for, and what that may mean on a quiet machine. Where threads
    make a log durable others wait for the one that does, and the places of the waits tell it from a
    lock."""
    seen = waits_at_futexes([account.sites for account in cell.accounts], writes=True)
    is_known = seen.known >= KIND_READINGS_MIN
    if is_known and 2 * seen.writing >= seen.known:
        return "mostly until the log is written: on a quiet machine its disk may limit it"
    is_logged = bool(seen.writing or sync_of(cell))
    if is_logged and not (is_known and 2 * seen.at_locks >= seen.known):
        return "for locks or the log: on a quiet machine one of them may limit it"
    return "mostly for locks: on a quiet machine one of them may limit it"


def further_verdicts(case: Case) -> list[Verdict]:
    """All causes whose part of the loss is beyond its noise, by wall time and by thread time."""
    if case.base is None:
        return []
    found = [verdict for _, _, verdict in _significant(case, case.base)]
    return [*capacity_verdicts(case), *(it for it in found if it and it.cause != "none")]


def _by_time(case: Case, base: Breakdown | None) -> Verdict:
    """The cause by goroutines, by wall time without workers, else by where the thread time goes."""
    # Of goroutines at a channel it is known who waits for whom, so they come first.
    direct = by_goroutines(case) or uncounted(case) or by_capacity(case) or starting(case.cell)
    if direct is not None and direct.cause == "imbalance":
        # Who is woken for what another one takes waits again and again, too, as for a round.
        share = percent(case.cell.share("futex"))
        direct = woken_in_vain(case, f"{share} of it blocked on futexes") or direct
    if direct is not None:
        return direct
    by_itself = _by_composition(case)
    if base is None:
        is_doubted = by_itself.open and is_doubtful(case.cell)
        return _contaminated(case.cell) if is_doubted else by_itself
    by_excess = _by_excess(case, base)
    if by_excess is not None and by_excess.cause not in ("none", "contamination"):
        return by_excess
    if by_itself.cause != "none":
        return by_itself
    if by_excess is None or by_excess.open:
        # What the program could change goes before what the kernel's scheduler did.
        own = next(iter(capacity_verdicts(case)), None)
        return _disturbed(case, base) or own or by_excess or by_itself._replace(unproven=True)
    return by_excess


def _serving(case: Case) -> Verdict | None:
    """What is used up where a server is loaded, whatever other processes ran: a quota, else a
    station, unless it waited for CPUs that these had."""
    if not case.serving:
        return None
    quota = throttling(case.cell)
    if quota is not None:
        return quota
    limit = case.cell.limit
    if limit is None:
        return None
    base = case.base
    cost = f", at {times(case.cell, base)} the CPU time" if base and base.mean("cpu") else ""
    had = granted_share_of_others(case.cell)
    are_others = is_doubtful(case.cell) and had >= EXPLAINS * limit.waits
    if limit.cause == "contamination" or (limit.waits and are_others):
        beside = f", while {outside_processes(case.cell)}" if limit.waits else ""
        if base is not None and surely_costs_more(case.cell, base):
            said = f"{limit.own_first or limit.words}{cost}{beside}"
            return Verdict("cpu", said, limit="CPUs", parts=("cpu",))
        return Verdict("contamination", f"{limit.words}{beside}", parts=("run_queue",))
    # Who is ready waits for the CPUs, and who is blocked for a thread, or for the load.
    is_of_cpus = not limit.is_thread and limit.cause != "client"
    return Verdict(
        limit.cause,
        f"{limit.words}{cost}{f'; {limit.remedy}' if is_of_cpus and limit.remedy else ''}",
        limit=limit.name,
        parts=("run_queue",) if is_of_cpus else ("blocked",),
        station=limit.name if limit.is_thread else "",
        remedy=limit.remedy,
    )


def _spins_too(case: Case) -> str:
    """That threads of a loaded server spin, where enough of what an operation costs more, or of all
    that it costs in the base, goes to that; else empty."""
    cell, base = case.cell, case.base
    spun, more = (
        sum(cell.mean(name) - (base.mean(name) if base else 0.0) for name in names)
        for names in (SPINNING, ("cpu",))
    )
    if more < CPU_LOSS_MIN * cell.mean("cpu") or spun < SERVED_SPINNING_MIN * more or spun <= 0:
        return ""
    return f"; {served_spinning_words(cell)}"


Judge = Callable[[Case, float], Verdict | None]


class _Candidate(NamedTuple):
    components: tuple[str, ...]
    found: Estimate
    judge: Judge


def _by_excess(case: Case, base: Breakdown) -> Verdict | None:
    """The greatest excess that is significant; ``None`` if none is."""
    doubts: list[Verdict] = []
    unknown = untold = 0.0
    for judge, amount, verdict in _significant(case, base):
        if verdict is None:
            unknown = max(unknown, amount)
        elif verdict.cause != "none" and amount < EXPLAINED_MIN * unknown:
            more = times(case.cell, base)
            return Verdict("none", f"{more} the CPU time, for a reason that is not known")
        elif verdict.cause != "none" and amount < EXPLAINED_MIN * untold:
            return doubts[0]
        elif verdict.cause != "none" or judge is blocked or (verdict.either_way and case.serving):
            return verdict  # a smaller part is no cause while a greater one is unexplained
        else:
            doubts.append(verdict)
            # Waits for work are explained; what may be one thing or another is not.
            untold = max(untold, amount) if verdict.either_way or judge is computing else untold
    return doubts[0] if doubts else None


def _significant(case: Case, base: Breakdown) -> Iterator[tuple[Judge, float, Verdict | None]]:
    """What each excess that is significant means, the greatest first, and how great it is."""
    for candidate in sorted(_candidates(case, base), key=lambda c: -c.found.value):
        if candidate.found.value < _least(case, base, candidate) * base.mean("total"):
            continue
        both = (values(side, candidate.components) for side in (case.cell, base))
        if not is_beyond_noise(candidate.found, *both):
            continue
        verdict = candidate.judge(case, candidate.found.value)
        if verdict is not None and _costs_nothing(case, verdict):
            continue
        if verdict is None and candidate.judge is not computing:
            continue
        named = verdict and verdict._replace(parts=verdict.parts or candidate.components)
        yield candidate.judge, candidate.found.value, named


def _costs_nothing(case: Case, verdict: Verdict) -> bool:
    """Is hardly any speed-up lost? Then nothing is accused of it: threads may wait for one another
    while others use the CPUs."""
    if case.base is None or not (verdict.cause in _OF_LOSSES or _has_cpus(case, verdict)):
        return False
    lost = lost_share(case.cell, case.base)
    if lost is None:
        return False
    is_sure = lost.low is not None and lost.low > 0
    return lost.value < NAMED_LOSS_MIN * (1 if is_sure else 2)


def _has_cpus(case: Case, verdict: Verdict) -> bool:
    """Were no more workers asked for than there are CPUs? Then these limit them only as far as
    threads beside them, or what the workers cost more, take speed-up."""
    level, cpus = case.cell.level, case.cell.cpus
    return verdict.cause == "cpu" and level is not None and cpus is not None and level <= cpus


def _disturbed(case: Case, base: Breakdown) -> Verdict | None:
    """The verdict on an otherwise unexplained loss while other processes used the machine."""
    cell = case.cell
    loss = cell.mean("total") - base.mean("total")
    if not is_doubtful(cell) or loss < LOSS_MIN * base.mean("total"):
        return None
    if not may_explain_all(cell, base):
        return None
    return _contaminated(cell)


def _contaminated(cell: Breakdown) -> Verdict:
    return Verdict("contamination", f"{mixture(cell)}, while {outside_processes(cell)}")


def _least(case: Case, base: Breakdown, candidate: _Candidate) -> float:
    """Share of the base's time that an excess must reach."""
    if candidate.components == ("cpu",):
        return CPU_LOSS_MIN
    if candidate.components == ("run_queue",):
        return LOSS_MIN if is_crowded(case.cell) or case.cell.cpus is None else QUEUE_LOSS_MIN
    if candidate.components == ("futex",):
        return LOCK_LOSS_MIN if wait_often(case.cell, base) else START_LOSS_MIN
    return LOSS_MIN


#: What the kinds of waiting mean, by the samples.
_WAITING: tuple[tuple[tuple[str, ...], Judge], ...] = (
    (("futex",), synchronising),
    (("disk",), storing),
    (("file_lock",), filing),
    (("memory",), mapping),
    (("wake_up",), waking),
    (OUTSIDE, outside),
    (IDLE, idling),
)


def _candidates(case: Case, base: Breakdown) -> Iterator[_Candidate]:
    groups: list[tuple[tuple[str, ...], Judge]] = [
        (("run_queue",), queueing),
        (("cpu",), computing),
    ]
    if _is_divided(case.cell, base):
        groups += [*_WAITING, (("futex", "cpu"), spinning)]
    else:
        groups.append((("blocked",), blocked))
    for components, judge in groups:
        if all(name in side.columns for side in (case.cell, base) for name in components):
            yield _Candidate(components, excess(case.cell, base, *components), judge)


def _is_divided(cell: Breakdown, base: Breakdown) -> bool:
    """Do samples say what the threads waited for? Of the base they need not, where it waited
    little: whatever it was, the cell waited for more of it."""
    waited_little = base.sampled and base.mean("blocked") <= LITTLE * cell.mean("blocked")
    return cell.enough_samples and (base.enough_samples or waited_little)


def _by_composition(case: Case) -> Verdict:
    """The component with more than half of the time, for the base and for cells without a loss."""
    cell = case.cell
    waiting = _WAITING if cell.enough_samples else ((("blocked",), blocked),)
    parts: list[tuple[tuple[str, ...], Judge]] = [(("run_queue",), queueing), *waiting]
    for components, judge in parts:
        if cell.share(*components) >= WHOLE_SHARE:
            verdict = judge(case, sum(map(cell.mean, components)))
            if verdict is not None and not _costs_nothing(case, verdict):
                return verdict
    if cell.share("cpu") >= WHOLE_SHARE:
        return Verdict("none", f"{percent(cell.share('cpu'))} of it on a CPU")
    return Verdict("none", mixture(cell))
