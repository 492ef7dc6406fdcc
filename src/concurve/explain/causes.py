"""Pictures of a cell and of its base → the cause, with the words of its evidence. Pure.

The component that exceeds the base's most, and by enough, names the factor; what it means is
asked of the samples and of the other roles (``docs/method/explain.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from concurve.explain.accounts import KINDS, Other, is_role
from concurve.explain.cells import Excess, Picture, excess
from concurve.explain.threads import Dealer
from concurve.findings import Cause
from concurve.readings.contamination import FOREIGN_SHARE_MAX, STEAL_SHARE_MAX

#: Share of the base's time per operation from which an excess is one.
LOSS_MIN = 0.02
#: The same for CPU time, which the machine itself moves (clock, caches, steal).
CPU_LOSS_MIN = 0.05
#: Waiting for a CPU of which there are enough: the runner and the kernel make threads wait, too.
QUEUE_LOSS_MIN = 0.05
#: A lock needs less: nothing else makes threads wait for one another again and again.
LOCK_LOSS_MIN = 0.005
#: Else more: threads wait at a common start, too, long if the machine is busy.
START_LOSS_MIN = 0.05
#: … that is, this often in a trial, each of them.
LOCK_SWITCHES_MIN = 10.0
#: A kind of waiting that takes this share of the time limits a cell whatever its base does.
WHOLE_SHARE = 0.5
#: Work conservation: with a lock that limits, somebody holds it and runs.
RUNNING_MIN = 0.9
#: … but a lock handed from thread to thread leaves the CPU idle for a wake-up each time.
HANDED_RUNNING_MIN = 0.3
HANDED_NS_MAX = 300_000.0
#: A thread that runs this share of the time is used up.
SATURATED = 0.85
#: Share of an excess that another must be able to explain to be its cause.
EXPLAINS = 0.5
#: Share of the readings at futexes that one word must have to be the lock.
ONE_WORD = 0.5

IDLE = ("sleep", "child", "other")
OUTSIDE = ("network", "poll", "pipe")


class Verdict(NamedTuple):
    """A cause, and the rest of the sentence that says where the time goes. ``unproven``: not by
    what exceeds the base; ``open``: others on the machine may have been the cause all the same.
    ``limit`` is what is used up where a server was loaded: CPUs, a thread, or the load."""

    cause: Cause
    words: str
    unproven: bool = False
    open: bool = False
    limit: str = ""


def cause_of(
    cell: Picture, base: Picture | None, clients: tuple[str, ...] = (), serving: bool = False
) -> Verdict:
    """What limits a cell. ``base`` is the picture of its base, ``None`` for the base itself."""
    here = _Here(cell, base, clients, serving)
    served = _serving(here)
    if served is not None:
        return served
    verdict = _by_time(here, base)
    if verdict.cause == "none" and cell.used:
        others = f", while {_strangers(cell)}" if _doubtful(cell) else ""
        return verdict._replace(words=f"{verdict.words}; {cell.used}{others}")
    return verdict


def _by_time(here: _Here, base: Picture | None) -> Verdict:
    """What limits it by where the thread time goes."""
    cell = here.cell
    by_itself = _by_composition(here)
    if base is None:
        strangers = by_itself.open and _doubtful(cell)
        return _blamed(cell) if strangers else by_itself
    by_excess = _by_excess(here, base)
    if by_excess is not None and by_excess.cause not in ("none", "contamination"):
        return by_excess
    if by_itself.cause != "none":
        return by_itself
    if by_excess is None or by_excess.open:
        return _disturbed(here, base) or by_excess or by_itself._replace(unproven=True)
    return by_excess


def _serving(here: _Here) -> Verdict | None:
    """What is used up where a server was loaded: by itself, whoever else was on the machine."""
    limit = here.cell.limit
    if limit is None:
        return None
    base = here.base
    cost = f", at {_times(here.cell, base)} the CPU time" if base and base.mean("cpu") else ""
    cause: Cause = "client" if limit.is_client else "cpu"
    return Verdict(cause, f"{limit.words}{cost}", limit=limit.name)


class _Here(NamedTuple):
    cell: Picture
    base: Picture | None
    clients: tuple[str, ...]
    serving: bool


# -- against the base -------------------------------------------------------------------------


class _Candidate(NamedTuple):
    components: tuple[str, ...]
    found: Excess
    judge: Callable[[_Here, float], Verdict | None]


def _by_excess(here: _Here, base: Picture) -> Verdict | None:
    """The greatest excess that stands its test; ``None`` if there is none."""
    doubts = []
    for candidate in sorted(_candidates(here, base), key=lambda c: -c.found.value):
        if candidate.found.value < _least(here, base, candidate) * base.mean("total"):
            continue
        if candidate.found.low is None or candidate.found.low <= 0:
            continue
        verdict = candidate.judge(here, candidate.found.value)
        if verdict is not None and (verdict.cause != "none" or candidate.judge is _blocked):
            return verdict  # a lesser part is no cause beside a greater that is not known
        doubts += [verdict] if verdict else []
    return doubts[0] if doubts else None


def _disturbed(here: _Here, base: Picture) -> Verdict | None:
    """A loss that nothing else explains, on a machine that was not ours."""
    cell = here.cell
    loss = cell.mean("total") - base.mean("total")
    if not _doubtful(cell) or loss < LOSS_MIN * base.mean("total"):
        return None
    return _blamed(cell)


def _blamed(cell: Picture) -> Verdict:
    return Verdict("contamination", f"{_mixture(cell)}, while {_strangers(cell)}")


def _least(here: _Here, base: Picture, candidate: _Candidate) -> float:
    """Share of the base's time that an excess must reach."""
    if candidate.components == ("cpu",):
        return CPU_LOSS_MIN
    if candidate.components == ("run_queue",):
        enough = here.cell.cpus is not None and here.cell.threads <= here.cell.cpus
        return QUEUE_LOSS_MIN if enough else LOSS_MIN
    if candidate.components == ("futex",):
        return LOCK_LOSS_MIN if _waits_often(here.cell, base) else START_LOSS_MIN
    return LOSS_MIN


def _waits_often(cell: Picture, base: Picture) -> bool:
    """Do threads wait again and again, not at a common start or end alone?"""
    more = cell.per_operation("switches") - base.per_operation("switches")
    each = more * cell.per_trial("operations") / cell.threads
    blocked = sum(cell.readings.get(kind, 0) for kind in KINDS)
    return each >= LOCK_SWITCHES_MIN and 2 * cell.readings.get("futex", 0) >= blocked


def _candidates(here: _Here, base: Picture) -> Iterator[_Candidate]:
    groups: list[tuple[tuple[str, ...], Callable[[_Here, float], Verdict | None]]] = [
        (("run_queue",), _queueing),
        (("cpu",), _computing),
    ]
    if here.cell.told and base.told:
        groups += [
            (("futex",), _synchronising),
            (("futex", "cpu"), _spinning),
            (("disk",), _storing),
            (OUTSIDE, _outside),
            (IDLE, _idling),
        ]
    else:
        groups.append((("blocked",), _blocked))
    for components, judge in groups:
        if all(name in side.columns for side in (here.cell, base) for name in components):
            yield _Candidate(components, excess(here.cell, base, *components), judge)


# -- by itself --------------------------------------------------------------------------------


def _by_composition(here: _Here) -> Verdict:
    """What more than half of the time goes to, for the base and for cells without a loss."""
    cell = here.cell
    parts: list[tuple[tuple[str, ...], Callable[[_Here, float], Verdict | None]]] = [
        (("run_queue",), _queueing),
        (("futex",), _synchronising),
        (("disk",), _storing),
        (OUTSIDE, _outside),
        (IDLE, _idling),
    ]
    if not cell.told:
        parts[1:] = [(("blocked",), _blocked)]
    for components, judge in parts:
        if cell.share(*components) >= WHOLE_SHARE:
            verdict = judge(here, sum(map(cell.mean, components)))
            if verdict is not None:
                return verdict
    if cell.share("cpu") >= WHOLE_SHARE:
        return Verdict("none", f"{percent(cell.share('cpu'))} of it on a CPU")
    return Verdict("none", _mixture(cell))


def _mixture(cell: Picture) -> str:
    waiting = [f"{percent(cell.share('cpu'))} of it on a CPU"]
    if "run_queue" in cell.columns:
        waiting.append(f"{percent(cell.share('run_queue'))} waiting for one")
    waiting.append(f"{percent(cell.share('blocked'))} blocked")
    return ", ".join(waiting)


# -- what an excess means ---------------------------------------------------------------------


def _queueing(here: _Here, amount: float) -> Verdict | None:
    """Waiting for a CPU: too many threads, another role, or others on the machine."""
    cell = here.cell
    words = f"{percent(cell.share('run_queue'))} of it waiting for a CPU"
    own = "1 thread" if cell.threads == 1 else f"{cell.threads} threads"
    granted = "" if cell.cpus is None else f" on {_count(cell.cpus, 'CPU')}"
    if cell.cpus is not None and cell.threads > cell.cpus:
        return Verdict("cpu", f"{words} ({own}{granted}){_cost(here)}")
    taken = _taken_by_roles(cell)
    rivals = [other for other in cell.others if other.cpus >= 0.05]
    if rivals and taken >= EXPLAINS * amount:
        mine = f"{own} with nice {cell.accounts[0].nice}" if cell.accounts[0].nice else own
        return Verdict("cpu", f"{words}, as {_roles(rivals)}; here {mine}{granted}")
    outside = cell.per_operation("foreign_ns") + cell.per_operation("steal_ns")
    if outside >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, as {_strangers(cell)}")
    if _used_up(cell) and cell.per_trial("foreign_ns") < cell.per_trial("cpu_ns"):
        return Verdict("cpu", f"{words} ({own}{granted}, all of them busy)")
    why = "although CPUs were idle: threads were woken where another one ran"
    return Verdict("none", f"{words} {why}", open=True)


def _computing(here: _Here, amount: float) -> Verdict | None:
    """More CPU time for the same operation."""
    cell, base = here.cell, here.base
    assert base is not None
    words = f"{_times(cell, base)} the CPU time"
    if cell.per_operation("steal_ns") >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, while {_strangers(cell)}")
    return Verdict(
        "coherency",
        f"{words}: data that the threads share, the bandwidth of memory, or a lock that only spins "
        "(cache misses, which would tell them apart, are not counted)",
    )


def _spinning(here: _Here, amount: float) -> Verdict | None:
    """More CPU time, and futex waiting again and again beside it: a lock that spins before it
    sleeps. Shared data alone make nobody sleep."""
    cell, base = here.cell, here.base
    assert base is not None
    waiting = cell.mean("futex") - base.mean("futex")
    computing = cell.mean("cpu") - base.mean("cpu")
    if waiting < 0 or not _waits_often(cell, base):
        return None
    how = _contended(here)
    if not how or computing < 0.5 * waiting or cell.per_operation("steal_ns") >= EXPLAINS * amount:
        return None
    return Verdict(
        "lock",
        f"{_times(cell, base)} the CPU time and {percent(cell.share('futex'))} of it blocked on "
        f"futexes, as of a lock that spins before it sleeps{how}",
    )


def _cost(here: _Here) -> str:
    """Waiting for one's turn costs no throughput where others run: what does is CPU time."""
    return f", at {_times(here.cell, here.base)} the CPU time" if here.base is not None else ""


def _times(cell: Picture, base: Picture) -> str:
    times = cell.mean("cpu") / base.mean("cpu") if base.mean("cpu") else 0.0
    return f"{times:.2f} ×" if times < 1.95 else f"{times:.1f} ×"


def _synchronising(here: _Here, amount: float) -> Verdict | None:
    """Blocked on futexes: a lock, or nothing to do."""
    cell = here.cell
    words = f"{percent(cell.share('futex'))} of it blocked on futexes"
    how = _contended(here)
    if how:
        more = cell.cpus is not None and cell.threads > cell.cpus
        return Verdict("lock", f"{words}{how}{_cost(here) if more else ''}")
    dealer = cell.dealer
    if dealer and dealer.ran >= SATURATED:
        busy = f"{dealer.name} runs {percent(dealer.ran)} of the time and the others wait for it"
        return Verdict("cpu", f"{words}: the thread {busy}")
    given = f", {dealer.name} deals it out" if dealer else ""
    return Verdict(
        "none",
        f"{words} while {_number(cell.running)} of {_count(cell.threads, 'thread')} run: threads "
        f"idle, no work for them{given}",
    )


def _contended(here: _Here) -> str:
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


def _has_work(here: _Here, dealer: Dealer) -> bool:
    """Is there more work than the threads take? Then their queue is full, or the clients, which
    have CPU time left and do not sleep, wait for them."""
    if dealer.ran >= SATURATED:
        return False
    clients = _client_roles(here)
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
    run = f"{_number(cell.running)} of {cell.threads} threads run"
    return f"{own}, while {run}: they wait for one another"


def _storing(here: _Here, amount: float) -> Verdict | None:
    return Verdict("io", f"{percent(here.cell.share('disk'))} of it blocked on the disk")


def _outside(here: _Here, amount: float) -> Verdict | None:
    """Waiting for a network, for descriptors, or at a pipe: for whom?"""
    cell = here.cell
    kinds = {kind: cell.share(kind) for kind in OUTSIDE}
    most = max(kinds, key=lambda kind: kinds[kind])
    words = f"{percent(sum(kinds.values()))} of it waiting for "
    if here.clients or here.serving:
        return Verdict("client", f"{words}the client ({_NAMES[most]}){_clients(here)}")
    if most == "pipe":
        if cell.threads > 1 and cell.running >= RUNNING_MIN:
            return Verdict("lock", f"{words}one another, through pipes")
        return Verdict("none", f"{words}a pipe")
    if most == "network":
        return Verdict("io", f"{words}the network")
    return Verdict("none", f"{words}events")


_NAMES = {"network": "network", "poll": "polling", "pipe": "pipe"}


def _client_roles(here: _Here) -> list[Other]:
    return [
        other
        for other in here.cell.others
        if any(is_role(other.name, name) for name in here.clients)
    ]


def _clients(here: _Here) -> str:
    found = _client_roles(here)
    if not found:
        return ""
    cpus, busiest = sum(other.cpus for other in found), max(other.busiest for other in found)
    said = "its CPU is used up" if busiest >= SATURATED else "it has CPU time left"
    return (
        f", which used {_number(cpus)} CPUs, its busiest thread {percent(busiest)} of one: {said}"
    )


def _idling(here: _Here, amount: float) -> Verdict | None:
    kinds = {kind: here.cell.share(kind) for kind in IDLE}
    most = max(kinds, key=lambda kind: kinds[kind])
    what = {"sleep": "asleep", "child": "waiting for child processes"}
    said = what.get(most, "blocked on something else")
    return Verdict("none", f"{percent(sum(kinds.values()))} of it {said}")


def _blocked(here: _Here, amount: float) -> Verdict | None:
    share = percent(here.cell.share("blocked"))
    few = ": the samples are too few" if here.cell.sampled else ""
    return Verdict("none", f"{share} of it blocked, on what is not known{few}")


# -- who else was there -----------------------------------------------------------------------


def _taken_by_roles(cell: Picture) -> float:
    """CPU time per operation that other roles took."""
    cpus = sum(other.cpus for other in cell.others)
    return cpus * cell.per_operation("wall_ns")


def _roles(others: list[Other]) -> str:
    """``background (nice 0) took 1.9 CPUs``."""
    names = [
        f"{other.name} (nice {other.nice})" if other.nice is not None else other.name
        for other in others
    ]
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{listed} took {_number(sum(other.cpus for other in others))} CPUs"


def _strangers(cell: Picture) -> str:
    machine = cell.per_trial("machine_ns") or 1.0
    foreign, steal = cell.per_trial("foreign_ns") / machine, cell.per_trial("steal_ns") / machine
    said = []
    if foreign >= 0.005:
        said.append(f"processes outside the trial used {percent(foreign)}")
    if steal >= 0.005:
        said.append(f"the hypervisor took {percent(steal)}")
    return f"{' and '.join(said) or 'others took some'} of the machine's CPU time"


def _doubtful(cell: Picture) -> bool:
    """Did others take more of the machine than a trial may suffer?"""
    machine = cell.per_trial("machine_ns") or 1.0
    foreign = cell.per_trial("foreign_ns") > FOREIGN_SHARE_MAX * machine
    return foreign or cell.per_trial("steal_ns") > STEAL_SHARE_MAX * machine


def _used_up(cell: Picture) -> bool:
    """Were the CPUs of the machine busy throughout?"""
    machine = cell.per_trial("machine_ns")
    busy = cell.per_trial("machine_busy_ns") + cell.per_trial("steal_ns")
    granted = cell.cpus and cell.cpus * cell.per_trial("wall_ns")
    own = cell.per_trial("cpu_ns")
    return bool((machine and busy >= RUNNING_MIN * machine) or (granted and own >= 0.95 * granted))


# -- numbers ----------------------------------------------------------------------------------


def percent(share: float) -> str:
    """A share for prose: ``51 %``, ``0.4 %``."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 0.05 else f"{value:.2g}"


def _count(number: int, singular: str) -> str:
    return f"{number} {singular if number == 1 else singular + 's'}"
