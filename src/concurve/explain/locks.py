"""Threads that wait for one another: the rules that name a lock, in their order. Pure.

A rule says whether a lock explains the part of the thread time that it is asked about. Who waits
for no lock (at a barrier, or for what is done once for all) is spared before it is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from concurve.explain.breakdown import Breakdown, excess, is_beyond_noise, values
from concurve.explain.computing import in_kernel, spun_words
from concurve.explain.hot import is_sampled
from concurve.explain.others import client_roles
from concurve.explain.threads import Dispatcher
from concurve.explain.verdict import (
    EXPLAINS,
    RUNNING_MIN,
    SATURATED,
    WHOLE_SHARE,
    Case,
    Verdict,
    cost_words,
    is_crowded,
    number,
    times,
)
from concurve.explain.waiting import (
    KIND_READINGS_MIN,
    KINDS,
    sleeps_in_a_jvm,
    wait_for_locks_alone,
    waits_at,
    waits_at_places,
    waits_for_locks,
    waits_for_the_interpreter,
    waits_for_work,
    waits_named,
    waits_share,
    wake_ups_at,
)
from concurve.words import percent


class Rule(NamedTuple):
    """A rule that names a lock: the parts of the thread time that it explains, whose words its
    verdict continues, and ``spared``, who is not accused by it."""

    judge: Callable[[Case, str], Verdict | None]
    parts: tuple[tuple[str, ...], ...]
    spared: Callable[[Breakdown], bool]


def lock_of(case: Case, words: str, *parts: str) -> Verdict | None:
    """The lock that explains a part of the thread time, by the first rule that finds one."""
    for rule in RULES:
        if parts in rule.parts and not rule.spared(case.cell):
            found = rule.judge(case, words)
            if found is not None:
                return found
    return None


#: A lock of more threads than CPUs costs so many times the CPU time: waiting for one's turn costs
#: nothing.
COSTLY_TIMES_MIN = 1.25
#: Threads are woken in vain if an operation takes so many times as many sleeps.
VAIN_SLEEPS_TIMES_MIN = 2.0


def _costs_more(case: Case) -> bool:
    """Are more threads ready than there are CPUs, and does an operation cost much more CPU time?"""
    cell, base = case.cell, case.base
    if base is None or not is_crowded(cell) or not _surely_computes_more(cell, base):
        return False
    return cell.mean("cpu") >= COSTLY_TIMES_MIN * base.mean("cpu")


def _surely_computes_more(cell: Breakdown, base: Breakdown) -> bool:
    """Does an operation take more CPU time than in the base, beyond the noise of that?"""
    both = (values(side, ("cpu",)) for side in (cell, base))
    return is_beyond_noise(excess(cell, base, "cpu"), *both)


def woken_in_vain(case: Case, words: str) -> Verdict | None:
    """The lock of who is woken in vain; ``None`` where most of the places are named barriers."""
    return None if _waits_by_name(case.cell) else _woken_in_vain(case, words)


def _woken_in_vain(case: Case, words: str) -> Verdict | None:
    """More threads than CPUs that cost CPU time by being woken.

    The same work takes several times as many sleeps, at futexes, and the kernel's part of the CPU
    time grew by most of what it costs more. Threads that find work when they are woken sleep no
    more often for the same work, however many they are; those at a barrier do, once in each round.
    """
    cell, base = case.cell, case.base
    if base is None or not _costs_more(case):
        return None
    if cell.is_go or cell.threads < 2 or not wait_often(cell, base):
        return None
    own, before = in_kernel(cell), in_kernel(base)
    amount = cell.mean("cpu") - base.mean("cpu")
    if own is None or before is None or amount <= 0 or own - before < EXPLAINS * amount:
        return None
    sleeps, less = cell.per_operation("switches"), base.per_operation("switches")
    if sleeps < VAIN_SLEEPS_TIMES_MIN * less:
        return None
    often = f"{sleeps / less:.1f} × as often" if less >= 1 else f"{sleeps:,.0f} times"
    part = percent(min(1.0, (own - before) / amount))
    said = (
        f"{words}: for the same work threads sleep and are woken {often}, at {times(cell, base)} "
        f"the CPU time, of whose increase {part} is the kernel's: they are woken for what another "
        "one has, or takes"
    )
    found = Verdict("lock", said, parts=("cpu",))
    if not waits_for_no_lock(cell):
        return found
    return found._replace(words=f"{said}; or for the next round, at a barrier", either="cpu")


def _spun_by_many(case: Case, words: str) -> Verdict | None:
    """More threads than CPUs that spin for a lock."""
    cell, base = case.cell, case.base
    if base is None or not _costs_more(case):
        return None
    spun = spun_words(case, cell.mean("cpu") - base.mean("cpu"))
    if spun is None or spun.cause != "lock":
        return None
    return spun._replace(words=f"{words}: {spun.words}", parts=("cpu",))


def _spins_and_sleeps(case: Case, words: str) -> Verdict | None:
    """A lock that costs CPU time before threads sleep at it, beside repeated futex waits. Samples
    show that threads spin, or the accounts that the kernel puts them to sleep and wakes them: then
    the CPU time is its cost, too. Of more CPU time alone it is not known what it is for."""
    cell, base = case.cell, case.base
    if base is None:
        return None
    waiting = cell.mean("futex") - base.mean("futex")
    computing = cell.mean("cpu") - base.mean("cpu")
    is_dear = computing >= 0.5 * waiting and _surely_computes_more(cell, base)
    if waiting < 0 or not is_dear or not wait_often(cell, base):
        return None
    stolen = cell.per_operation("steal_ns") >= EXPLAINS * (waiting + computing)
    how = contended(case) if cell.stage is None and not stolen else ""
    if not how:
        return None
    return _dear_sleep(case, base, words, how)


def _dear_sleep(case: Case, base: Breakdown, words: str, how: str) -> Verdict | None:
    """The lock at which threads sleep, and what its CPU time goes to. That is no part of it where
    nothing was sampled; ``None`` where the samples show no spinning."""
    cell, computing = case.cell, case.cell.mean("cpu") - base.mean("cpu")
    own, before = in_kernel(cell), in_kernel(base)
    if own is not None and before is not None and own - before >= EXPLAINS * computing > 0:
        part = percent(min(1.0, (own - before) / computing))
        return Verdict("lock", f"{words}: {part} of the increase is the kernel's, which puts the "
                       f"threads to sleep and wakes them{how}")  # fmt: skip
    spun = spun_words(case, computing)
    if spun is not None and spun.cause == "lock":
        return Verdict("lock", f"{words}, as of a lock that spins before it sleeps{how}")
    if is_sampled(cell.hot):
        return None
    said = f"{words}{how}; whether they spin for it first was not sampled"
    return Verdict("lock", said, parts=("futex",))


def _waits_at_conditions(cell: Breakdown) -> bool:
    """Are most of the known places where threads wait conditions? Who waits there spins for
    nothing."""
    at, known = waits_at([account.sites for account in cell.accounts], "condition")
    return known >= KIND_READINGS_MIN and at >= ONE_WORD * known


def _spins_for_nothing(cell: Breakdown) -> bool:
    """Who is not accused of a lock that spins before it sleeps."""
    return waits_for_no_lock(cell) or _waits_at_conditions(cell)


#: Threads of an interpreter that take turns use no more CPUs than this together, and one of them
#: runs, or waits for a CPU, for no less of the time.
IN_TURNS_MAX, IN_TURNS_MIN = 1.1, 0.85


def _held_by_the_interpreter(case: Case, words: str) -> Verdict | None:
    """Python's lock, of which a thread of the process always has it and runs.

    Where workers wait for work, for an answer or for a timer, nobody runs for some of the time; and
    without the lock two of them run together for some. A lock of the program's own, at which they
    were seen more often than at the interpreter's, goes before.
    """
    cell = case.cell
    if cell.threads < 2 or cell.level == 1 or not any(it.is_python for it in cell.accounts):
        return None
    own, others = waits_for_the_interpreter([account.sites for account in cell.accounts])
    if not own or own < others:
        return None
    # While they live: the interpreter may take long to start before.
    life = cell.mean("total") / cell.threads
    used, ready = cell.mean("cpu") / life, (cell.mean("cpu") + cell.mean("run_queue")) / life
    if used > IN_TURNS_MAX or ready < IN_TURNS_MIN:
        return None
    return Verdict(
        "lock",
        f"{words}: the threads of the process together use {number(used)} CPUs, as the "
        "interpreter's lock (the GIL) lets one run at a time",
    )


def _held(case: Case, words: str) -> Verdict | None:
    """A lock whose holder runs."""
    cell = case.cell
    how = contended(case)
    if not how:
        return None
    more = cell.cpus is not None and cell.threads > cell.cpus
    said = f"{words}{how}{cost_words(case) if more else ''}"
    if cell.at_barriers.behind:
        said = f"{said}; at the barrier behind it threads wait for who gets it last"
        is_less = cell.at_barriers.at_locks < cell.at_barriers.at_barriers
        return Verdict("lock", said, either="imbalance" if is_less else None)
    if _may_be_rounds(cell):
        return Verdict("lock", f"{said}; or for the slowest, at a barrier", either="imbalance")
    if _may_be_a_pool(cell):
        few = "or for work, of which there is too little at a time, at a condition"
        return Verdict("lock", f"{said}; {few}", either="imbalance")
    return Verdict("lock", said)


def _held_by_a_sleeper(case: Case, words: str) -> Verdict | None:
    """A lock whose holder waits."""
    cell, base = case.cell, case.base
    if base is None or not _holder_waits(cell, base):
        return None
    longer = f"{words}, {number(_timed(cell) / _timed(base))} × as long for an operation"
    sites = [account.sites for account in cell.accounts]
    if cell.is_jvm and not sleeps_in_a_jvm(sites) and not is_seen(cell):
        # A thread of a pool waits at a futex for the time of its next task, and so does one asleep.
        why = "threads idle until the time of their next task, or for a lock whose holder sleeps"
        return Verdict("none", f"{longer}, and hardly any runs: {why}")
    return Verdict(
        "lock",
        f"{longer}, and no thread hands out work: they wait for one another, as at a lock or in a "
        "pool whose holder sleeps",
    )


def _held_by_who_asks(case: Case, words: str) -> Verdict | None:
    """A lock whose holder waits for an answer from elsewhere."""
    cell, base = case.cell, case.base
    if base is None or not _asker_waits(cell, base):
        return None
    return Verdict(
        "lock",
        f"{words}, where one worker alone waits for no other, and hardly any thread runs: they "
        "wait for one another, as at a lock or in a pool whose holder waits for an answer",
        # Who answers looks like who feeds them, if it happens to be as slow as a lone worker.
        either=None if cell.dispatcher is None else "stage",
    )


def _tried_again(case: Case, words: str) -> Verdict | None:
    """A lock that is tried again after each sleep."""
    if case.base is None or not _try_again(case.cell, case.base):
        return None
    return Verdict(
        "lock",
        f"{words}, as one worker alone is not: they wait for one another, as at a lock that they "
        "try again after each sleep, or for a rate that they share",
    )


def _of_files(case: Case, words: str) -> Verdict | None:
    """A lock on a file; one worker has nobody of its own to wait for."""
    if case.cell.threads < 2 or case.cell.level == 1:
        return None
    return Verdict("lock", f"{words} (flock, fcntl)")


#: Functions that take a lock, of a server that wakes its sessions one by one, and what it is on.
LOCKED_ON = {
    "LockAcquire": "rows or tables",
    "LockAcquireExtended": "rows or tables",
    "ProcSleep": "rows or tables",
}


def _of_the_woken(case: Case, words: str) -> Verdict | None:
    """A lock whose holder wakes who waits for it by an eventfd or a signalfd, seen where it is
    taken; one worker has nobody of its own to wait for."""
    if case.cell.threads < 2 or case.cell.level == 1:
        return None
    seen = wake_ups_at(account.sites for account in case.cell.accounts)
    if seen.known < KIND_READINGS_MIN or seen.at_locks < ONE_WORD * seen.known:
        return None
    on = LOCKED_ON.get(seen.operation)
    lock = f"a lock on {on}" if on else "a lock"
    said = f"{words} {lock} that another one has (in {seen.operation} of {seen.module})"
    return Verdict("lock", said)


#: A lone worker that sleeps for no more than this share of its time has nothing to sleep for.
ALONE_ASLEEP_MAX = 0.1
#: Workers whose work differs by more between the busiest and the mean may sleep for want of it.
ASLEEP_UNEVEN_MAX = 1.25
#: Threads that wait for so many times as long for each operation wait for one another.
HELD_TIMES_MIN = 1.3


def _try_again(cell: Breakdown, base: Breakdown) -> bool:
    """Do workers sleep again and again where one alone does not, although no other thread gives
    them work, and all have as much? Then they sleep because of one another."""
    if not _are_alike(cell, base) or base.share("sleep") > ALONE_ASLEEP_MAX:
        return False
    uneven = cell.of_capacity("uneven") if cell.capacity else 1.0
    if uneven > ASLEEP_UNEVEN_MAX:
        return False
    return wait_often(cell, base, "sleep") or _sleeps_often(cell, base)


def _sleeps_often(cell: Breakdown, base: Breakdown) -> bool:
    """Is most of what threads were blocked for more than one worker sleep, beside waits for a disk
    that are as many with one, so that the switches do not tell how often they slept?"""
    asleep, more = (cell.mean(kind) - base.mean(kind) for kind in ("sleep", "blocked"))
    seen = cell.readings.get("sleep", 0)
    each = cell.per_trial("switches") / cell.threads
    is_most = asleep >= EXPLAINS * more
    return each >= LOCK_SWITCHES_MIN and seen >= KIND_READINGS_MIN and is_most


def _holder_waits(cell: Breakdown, base: Breakdown) -> bool:
    """Does a lone worker wait for a time (a JVM's threads sleep at futexes), as no other thread
    wakes it, and do several wait longer and more often for each operation? Each of them could wait
    for as long as the lone one, if it were not for the others."""
    if not _are_alike(cell, base) or base.share("futex", "sleep") < WHOLE_SHARE:
        return False
    is_longer = _timed(cell) >= HELD_TIMES_MIN * _timed(base)
    return is_longer and wait_often(cell, base)


#: A lone worker that waits at futexes for no more than this share of its time lacks no work.
ALONE_AT_FUTEXES_MAX = 0.1
#: Where an answer from elsewhere is waited for; who answers may sleep.
_ANSWERS = ("network", "poll", "pipe", "sleep")
#: An operation that takes as long as with one worker, within this share, gains nothing by more.
NO_GAIN = 0.15
#: With fewer threads than this that run or wait for a CPU at a time, hardly any runs.
HARDLY_RUNNING = 0.5


def _asker_waits(cell: Breakdown, base: Breakdown) -> bool:
    """Does a lone worker wait for answers from elsewhere, and for no other thread, and do several
    get no more of them, while hardly any thread runs? Then there is work for all, and nobody is
    busy handing it out: all but one wait for what is needed to ask."""
    if base.level != 1 or (cell.level or 0) < 2 or cell.is_go or not base.enough_samples:
        return False
    is_asking = base.share(*_ANSWERS) >= WHOLE_SHARE
    if not is_asking or base.share("futex") > ALONE_AT_FUTEXES_MAX:
        return False
    wall, before = cell.per_operation("wall_ns"), base.per_operation("wall_ns")
    is_idle = max(cell.ready, base.ready) <= HARDLY_RUNNING
    return wall >= (1 - NO_GAIN) * before and is_idle and _sleep_more(cell, base, "futex")


def _timed(cell: Breakdown) -> float:
    return cell.mean("futex") + cell.mean("sleep")


def _may_be_rounds(cell: Breakdown) -> bool:
    """Could the threads that wait for one another be those of uneven rounds, in which another one
    is the last each time? What a JVM's threads wait for is not read. Threads that never run
    together are none."""
    return cell.is_jvm and not all(account.in_turns for account in cell.accounts)


def _may_be_a_pool(cell: Breakdown) -> bool:
    """Could those that wait for one another be the threads of a pool without work? They wait at
    conditions, and hardly anybody where a lock is taken. Those that never run together do not."""
    in_turns = all(account.in_turns for account in cell.accounts)
    return _waits_at_conditions(cell) and not is_seen(cell) and not in_turns


def _are_alike(cell: Breakdown, base: Breakdown) -> bool:
    """Do the workers of a cell, and the only one of its base, do all the work, without a thread
    that hands it out? Goroutines run on any thread."""
    workers = cell.level or 0
    may_be = base.level == 1 and base.threads == 1 and workers > 1 and not cell.is_go
    return may_be and not (_is_fed(cell) or _is_fed(base))


def _is_fed(cell: Breakdown) -> bool:
    return 2 * sum(account.is_fed for account in cell.accounts) > cell.trials


def lacks_work(case: Case) -> bool:
    """Is it shown that the threads which wait at futexes have no work? One worker has no other to
    wait for, or one alone waits there, too; hardly any thread runs, and who hands out work waits
    for some itself; or they were seen where work is taken."""
    cell, base = case.cell, case.base
    is_alone = base is not None and base.level in (None, 1) and base.share("futex") >= WHOLE_SHARE
    giver = cell.dispatcher
    is_still = cell.ready <= HARDLY_RUNNING and giver is not None and not giver.waits_for_workers
    sites = [account.sites for account in cell.accounts]
    is_seen_idle = waits_for_work(sites) >= ONE_WORD
    return cell.level == 1 or is_alone or is_still or is_seen_idle


#: Waits at futexes that no sample saw may be those at a start, or at barriers.
LOCK_READINGS_MIN = 3
#: Threads wait repeatedly if each of them does so this often in a trial.
LOCK_SWITCHES_MIN = 10.0
#: The same for a lock whose hand-over wakes a thread: the CPU is idle during each wake-up.
HANDED_RUNNING_MIN = 0.3
HANDED_NS_MAX = 300_000.0
#: Share of the readings at futexes that one word must have to be the lock.
ONE_WORD = 0.5


def wait_often(cell: Breakdown, base: Breakdown, kind: str = "futex") -> bool:
    """Do threads wait repeatedly, and not only at a common start or end?"""
    blocked = sum(cell.readings.get(kind, 0) for kind in KINDS)
    return _sleep_more(cell, base, kind) and 2 * cell.readings.get(kind, 0) >= blocked


def _sleep_more(cell: Breakdown, base: Breakdown, kind: str) -> bool:
    """Do threads sleep more often for an operation than those of the base, and were they seen
    waiting for this?"""
    more = cell.per_operation("switches") - base.per_operation("switches")
    each = more * cell.per_trial("operations") / cell.threads
    return each >= LOCK_SWITCHES_MIN and cell.readings.get(kind, 0) >= LOCK_READINGS_MIN


def contended(case: Case) -> str:
    """How the active threads wait for one another, in words; empty if they do not.

    They do if work is conserved: one of them holds the lock and runs. Threads that wait for work
    leave the CPUs idle, also wait when there is only one thread, or have a dispatcher. One worker
    has nobody to wait for, whichever threads of the program start it and wait for it.
    """
    cell, base = case.cell, case.base
    # Idle threads of Go's runtime wait for work; its locks are known, or are missing.
    if cell.is_go or is_stopped(cell) or cell.threads < 2 or cell.level == 1:
        return ""
    if base is not None and base.threads == 1 and base.share("futex") >= WHOLE_SHARE:
        return ""
    if cell.dispatcher is not None:
        has_work = _one_word(cell) and _has_work(case, cell.dispatcher)
        wanted = cell.running >= RUNNING_MIN and (has_work or is_seen(cell))
        return _where(cell) if wanted else ""
    if cell.running >= RUNNING_MIN or _handed_over(cell):
        return _where(cell)
    return ""


#: A thread that sleeps no more than so many times as often as a JVM stops all threads waits for
#: the end of that, and for no other thread.
STOPS_TIMES = 1.25


def is_stopped(cell: Breakdown) -> bool:
    """Do the threads of a JVM sleep about as often as it stops them all, and no more?"""
    each = cell.per_trial("switches") / cell.threads
    return cell.is_jvm and each <= STOPS_TIMES * cell.per_trial("stops")


def waits_for_no_lock(cell: Breakdown) -> bool:
    """Are most of the words, or of the places in the program, where threads wait barriers, or what
    is done once for all? Where they take turns, only those whose names say so are."""
    if cell.at_barriers.behind:
        return False
    if _waits_by_name(cell):
        return True
    if all(account.in_turns for account in cell.accounts):
        return False
    seen = cell.readings.get("futex", 0)
    sites = [account.sites for account in cell.accounts]
    at_barriers, known = waits_at(sites, "barrier")
    once, _ = waits_at(sites, "once")
    # Few do not say what the cause is, but are enough not to accuse a lock.
    if seen <= 2 * known <= 4 * (at_barriers + once) and at_barriers + once:
        return True
    rounds = max(waits_share(sites, "barrier") * seen, sum(a.word.rounds for a in cell.accounts))
    others = rounds + waits_share(sites, "once") * seen
    return others > 0 and others >= ONE_WORD * seen


def _waits_by_name(cell: Breakdown) -> bool:
    """Are most of the waits at barriers, or for what is done once for all, by the names of the
    functions that wait, or else by their words? A function that waits at a condition and wakes all
    that wait there may be a barrier, or wake in vain."""
    named, known = waits_named([account.sites for account in cell.accounts])
    is_most, seen = named >= ONE_WORD * known, cell.readings.get("futex", 0)
    if known >= KIND_READINGS_MIN or 2 * known >= seen > 0:
        return is_most
    rounds = sum(account.word.rounds for account in cell.accounts)
    in_turns = all(account.in_turns for account in cell.accounts)
    return is_most and not in_turns and 0 < rounds >= ONE_WORD * seen


#: So many goroutines wait for a lock on the average, for each worker.
LOCKED_MIN = 0.02


def is_seen(cell: Breakdown) -> bool:
    """Were threads, or goroutines, seen where they take a lock? Who has no work waits elsewhere."""
    if cell.goroutines is not None:
        workers = cell.level or cell.threads
        return workers > 1 and cell.goroutines.locked >= LOCKED_MIN * workers
    sites = [account.sites for account in cell.accounts]
    # Where few waits of the cell were sampled, other cells of the run say which places are locks.
    at_known = waits_at_places(sites, cell.lock_places) if cell.lock_places else 0.0
    return max(waits_for_locks(sites), at_known) >= ONE_WORD or wait_for_locks_alone(sites)


def _has_work(case: Case, dispatcher: Dispatcher) -> bool:
    """Is there more work than the threads can do? Then their queue is full, or the clients wait for
    them although the clients have CPU time left and do not sleep."""
    if dispatcher.ran >= SATURATED:
        return False
    clients = client_roles(case)
    waiting = all(c.busiest < SATURATED and c.asleep < WHOLE_SHARE for c in clients)
    return dispatcher.waits_for_workers or (bool(clients) and waiting)


def _handed_over(cell: Breakdown) -> bool:
    """Are there short waits in sequence, as of a lock that is handed over to a sleeping thread?"""
    switches = cell.per_operation("switches")
    if cell.running < HANDED_RUNNING_MIN or switches <= 0:
        return False
    turn = cell.mean("futex") / switches / max(cell.threads - 1, 1)
    return turn <= HANDED_NS_MAX


def _one_word(cell: Breakdown) -> bool:
    seen = cell.readings.get("futex", 0)
    return seen > 0 and sum(a.word.readings for a in cell.accounts) >= ONE_WORD * seen


def _where(cell: Breakdown) -> str:
    seen = cell.readings.get("futex", 0)
    if _one_word(cell):
        at = min(1.0, sum(account.word.readings for account in cell.accounts) / seen)
        threads = max(account.word.threads for account in cell.accounts)
        return f", {percent(at)} of that at one futex, where {threads} threads wait"
    # Who sleeps, or waits at a pipe, does not run, though nobody holds it up.
    running = min(cell.running, cell.ready) if "run_queue" in cell.columns else cell.running
    run = f"{number(running)} of {cell.threads} threads run or could run"
    return f", while {run}: they wait for one another"


def _nobody(_: Breakdown) -> bool:
    """Whom a rule accuses whose evidence is no wait at a futex."""
    return False


_QUEUE, _FUTEX, _BOTH = ("run_queue",), ("futex",), ("futex", "cpu")

#: All rules that name a lock by thread time. What costs CPU time goes before who waits for whom.
RULES = (
    Rule(_woken_in_vain, (_QUEUE, _FUTEX), _waits_by_name),
    Rule(_spun_by_many, (_QUEUE, _FUTEX), _nobody),
    Rule(_spins_and_sleeps, (_BOTH,), _spins_for_nothing),
    Rule(_held_by_the_interpreter, (_FUTEX,), _nobody),
    Rule(_held, (_FUTEX,), waits_for_no_lock),
    Rule(_held_by_a_sleeper, (_FUTEX,), waits_for_no_lock),
    Rule(_held_by_who_asks, (_FUTEX,), waits_for_no_lock),
    Rule(_tried_again, (("sleep",),), _nobody),
    Rule(_of_files, (("file_lock",),), _nobody),
    Rule(_of_the_woken, (("wake_up",),), _nobody),
)
