"""What a large component of the thread time means: one function for each component."""

from __future__ import annotations

from collections import Counter

from concurve.explain.breakdown import Breakdown
from concurve.explain.hot import grew_in, is_locking, is_loop, is_waiting, place_of
from concurve.explain.others import (
    client_roles,
    is_used_up,
    others_in_words,
    outside_processes,
    taken_by_roles,
)
from concurve.explain.threads import Dispatcher
from concurve.explain.verdict import (
    RUNNING_MIN,
    SATURATED,
    WHOLE_SHARE,
    Case,
    Verdict,
    number,
    times,
)
from concurve.explain.waiting import KINDS, waits_at, waits_share
from concurve.findings.explanation import Cause
from concurve.stats.moments import mean
from concurve.words import count, percent

#: Another role or process is the cause of an excess if it can explain at least this share.
EXPLAINS = 0.5
IDLE = ("sleep", "child", "other")
OUTSIDE = ("network", "poll", "pipe")


def queueing(case: Case, amount: float) -> Verdict | None:
    """Waiting for a CPU: a quota, processes outside the trial, many threads, or another role."""
    cell = case.cell
    words = f"{percent(cell.share('run_queue'))} of it waiting for a CPU"
    quota = quota_words(cell)
    if quota:
        return Verdict("quota", f"{words}, as {quota}")
    costly = _lock_of_many(case)
    if costly:
        return costly._replace(words=f"{words}, but {costly.words}")
    outside = cell.per_operation("foreign_ns") + cell.per_operation("steal_ns")
    if outside >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, as {outside_processes(cell)}")
    why = _needed_by_roles(case, amount)
    if why:
        return Verdict("cpu", f"{words}{why}")
    if _held_back(cell, amount):
        how = "although CPUs were idle and the threads seldom sleep"
        return Verdict("quota", f"{words} {how}: a quota of CPU time holds them back")
    idle = "although CPUs were idle: threads were woken on a CPU where another one ran"
    return Verdict("none", f"{words} {idle}", open=True)


def _needed_by_roles(case: Case, amount: float) -> str:
    """Why the CPUs were too few for the roles of the trial, in words; empty if they were not."""
    cell = case.cell
    own = "1 thread" if cell.threads == 1 else f"{cell.threads} threads"
    granted = "" if cell.cpus is None else f" on {count(cell.cpus, 'CPU')}"
    if is_crowded(cell):
        return f" ({own}{granted}){_cost(case)}"
    rivals = [other for other in cell.others if other.cpus >= 0.05]
    if rivals and taken_by_roles(cell) >= EXPLAINS * amount:
        mine = f"{own} with nice {cell.accounts[0].nice}" if cell.accounts[0].nice else own
        return f", as {others_in_words(rivals)}; here {mine}{granted}"
    if is_used_up(cell) and cell.per_trial("foreign_ns") < cell.per_trial("cpu_ns"):
        return f" ({own}{granted}, all of them busy)"
    return ""


#: Threads are too many for the CPUs if so many more of them are ready at a time: one that hardly
#: works does not make them too many.
READY_MIN = 1.1


def is_crowded(cell: Breakdown) -> bool:
    """Are more of its threads ready at a time, on the average, than it has CPUs?"""
    if cell.cpus is None or cell.threads <= cell.cpus:
        return False
    ready = mean([(a.cpu_ns + (a.run_queue_ns or 0.0)) / a.wall_ns for a in cell.accounts])
    return ready > READY_MIN * cell.cpus


#: A quota limits a role if it held it back for this share of the time of its CPUs.
QUOTA_MIN = 0.05


def quota_words(cell: Breakdown) -> str:
    """What the quota of the control group is, and how often it was used up; empty if that was
    seldom."""
    found = [account.quota for account in cell.accounts if account.quota is not None]
    granted = (cell.cpus or 1) * cell.per_trial("wall_ns")
    if not found or cell.per_trial("throttled_ns") < QUOTA_MIN * granted:
        return ""
    periods, throttled = sum(q.periods for q in found), sum(q.throttled for q in found)
    often = f" in {percent(throttled / periods)} of the periods" if periods else ""
    return (
        f"the quota of its control group is {found[0].cpus:.3g} CPU seconds a second, and it was "
        f"held back{often}"
    )


#: Threads that wait this long for a CPU for each time that they slept were not merely woken where
#: another one ran: a balancing scheduler moves them to an idle CPU sooner.
HELD_BACK_NS_MIN = 10_000_000.0


def _held_back(cell: Breakdown, amount: float) -> bool:
    """Were threads ready, and kept from CPUs that were idle? So a control group's quota does."""
    used = cell.per_operation("machine_busy_ns") + cell.per_operation("steal_ns")
    idle = cell.per_operation("machine_ns") - used
    sleeps = max(cell.per_trial("switches"), 1.0)
    each = cell.mean("run_queue") * cell.per_trial("operations") / sleeps
    is_pinned = any(account.pinned for account in cell.accounts)
    return idle >= EXPLAINS * amount and each >= HELD_BACK_NS_MIN and not is_pinned


def computing(case: Case, amount: float) -> Verdict | None:
    """More CPU time for the same operation."""
    cell, base = case.cell, case.base
    assert base is not None
    words = f"{times(cell, base)} the CPU time"
    if cell.per_operation("steal_ns") >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, while {outside_processes(cell)}")
    own, before = _in_kernel(cell), _in_kernel(base)
    if own is not None and before is not None and own - before >= EXPLAINS * amount:
        part = percent(min(1.0, (own - before) / amount))
        return Verdict(
            "kernel",
            f"{words}, and {part} of the increase is spent in the kernel{_kernel_work(cell)}",
        )
    spun = _spun(case, amount)
    if spun is not None:
        return spun
    slow = _slow_code(case, amount)
    if slow:
        return Verdict("none", f"{words}, {slow}")
    found = _shared_hardware(case, words)
    if found is None or found.cause not in ("coherency", "memory"):
        return found
    where = grew_in(cell.hot, base.hot, EXPLAINS * amount)
    return found._replace(
        words=f"{found.words}; most of the increase is in {where}" if where else found.words
    )


def _slow_code(case: Case, amount: float) -> str:
    """How long the compiler of a JVM waited for a CPU, in words, where that explains more CPU time:
    until it has compiled them, all workers run slow code. Empty elsewhere."""
    cell, base = case.cell, case.base
    if base is None or not cell.is_jvm:
        return ""
    own, before = (
        _at_once(side) * side.per_operation("compiler_queue_ns") for side in (cell, base)
    )
    # Slow code does some work, so this is the most that it can cost; of the rest little is left.
    slow = own - before
    if slow <= 0 or amount - slow >= EXPLAINS * slow:
        return ""
    waited = cell.per_trial("compiler_queue_ns") / 1e6
    return (
        f"but the compiler of the JVM waited {waited:.0f} ms for a CPU, and until it is done all "
        "threads run slow code: longer trials would tell more"
    )


def _spun(case: Case, amount: float) -> Verdict | None:
    """More CPU time because threads spin: without work, or for a lock."""
    cell, base = case.cell, case.base
    assert base is not None
    words = f"{times(cell, base)} the CPU time"

    def more(*names: str) -> float:
        return sum(cell.mean(name) - base.mean(name) for name in names)

    def is_most(name: str) -> bool:
        return more(name) >= EXPLAINS * amount

    # Of both kinds together, the greater one, as samples tell them apart by chance in part.
    is_spinning = more("spin_waits", "spin_locks") >= EXPLAINS * amount
    waits_more = more("spin_waits") >= more("spin_locks")
    if is_most("spin_waits") or (is_spinning and waits_more):
        said = f"{words}: {spinning_words(cell)}"
        return Verdict("imbalance", said, parts=("spin_waits",))
    if is_spinning:
        share = percent(cell.mean("spin_locks") / cell.mean("cpu"))
        at = place_of(cell.hot, is_locking) or place_of(cell.hot, is_loop)
        return Verdict("lock", f"{words}: {share} of it goes to spinning for a lock, in {at}")
    if is_most("spin_delays"):
        spin = f"{words}: {spinning_words(cell)}, and for threads that have no CPU"
        if is_crowded(cell):
            granted = f"{cell.threads} threads on {count(cell.cpus or 0, 'CPU')}"
            return Verdict("cpu", f"{spin} ({granted})")
        return Verdict("contamination", f"{spin}, while {outside_processes(cell)}")
    return None


def spinning_words(cell: Breakdown) -> str:
    """How threads spin without work, in words."""
    share = percent((cell.mean("spin_waits") + cell.mean("spin_delays")) / cell.mean("cpu"))
    runtime = place_of(cell.hot, is_waiting)
    if not runtime:
        at = place_of(cell.hot, is_loop)
        return f"threads spin until one with more work is done: {share} of the CPU time, in {at}"
    return (
        "threads of OpenMP spin while they wait for the end of a loop, or for the next one: "
        f"{share} of the CPU time is in {runtime}"
    )


#: With less resident memory than this, what threads work on fits into the caches of most machines.
BANDWIDTH_BYTES_MIN = 64 << 20
#: Less CPU time than so many times as much is no bandwidth.
BANDWIDTH_TIMES_MIN = 1.1
#: More CPU time per operation than by so much beyond the number of workers cannot come from a
#: bandwidth that they divide.
BANDWIDTH_SLACK = 1.05
#: Two threads of one core do not take longer than this, one after the other would take 2.
SMT_TIMES_MAX = 2.1
#: A clock that differs by less is the same.
CLOCK_MIN = 0.02


def _shared_hardware(case: Case, words: str) -> Verdict | None:
    """More CPU time of programs: cores that CPUs share, the bandwidth of memory, or shared data."""
    cell, base = case.cell, case.base
    assert base is not None
    ratio = cell.mean("cpu") / base.mean("cpu") if base.mean("cpu") else 0.0
    workers, before = _at_once(cell), _at_once(base)
    slower = _slower(cell, base)
    if slower - 1 >= max(CLOCK_MIN, EXPLAINS * (ratio - 1)):
        said = f"{words}, as the clock of the CPUs was {slower:.2f} × as fast in the base"
        return Verdict("clock", said)
    cores = cell.accounts[0].cores
    if cores is not None and before <= cores < workers and ratio <= SMT_TIMES_MAX:
        shared = (
            f"{words}: {workers} threads at once on {cores} cores, whose CPUs share them; or data "
            f"that the threads share. A run with {cores} would tell"
        )
        return Verdict("smt", shared, either="coherency")
    spins = "or a lock that only spins (cache misses, which would tell, are not counted)"
    bytes_used = max((account.rss_bytes or 0.0 for account in cell.accounts), default=0.0)
    may_divide = ratio <= BANDWIDTH_SLACK * workers / max(before, 1)
    if bytes_used >= BANDWIDTH_BYTES_MIN and may_divide:
        if ratio < BANDWIDTH_TIMES_MIN:
            return None  # runtimes that hold so much also start more for each worker
        large = f"it works on {bytes_used / (1 << 20):.0f} MiB"
        said = f"{words}: memory bandwidth ({large}), data that the threads share, {spins}"
        return Verdict("memory", said, either="coherency")
    if not bytes_used and may_divide:
        said = f"{words}: data that the threads share, memory bandwidth, {spins}"
        return Verdict("coherency", said, either="memory")
    why = "its memory fits into caches" if may_divide else "with more workers less is done"
    known = f"{why}, so it is not the bandwidth of memory"
    return Verdict("coherency", f"{words}: data that the threads share ({known}), {spins}")


def _slower(cell: Breakdown, base: Breakdown) -> float:
    """How many times as fast the clock was in the base; 1 where it is not known."""
    own, before = ([a.khz for a in side.accounts if a.khz] for side in (cell, base))
    return mean(before) / mean(own) if own and before else 1.0


def _at_once(cell: Breakdown) -> int:
    return cell.threads if cell.cpus is None else min(cell.threads, cell.cpus)


#: A page fault takes about so long, and starting a thread.
_FAULT_NS = 500.0
_START_NS = 15_000.0
#: They are named if they explain this share of the time in the kernel.
_NAMED_SHARE = 0.2
#: Starting threads limits a program if it takes this share of the wall time.
_STARTING_SHARE = 0.3


def starting(cell: Breakdown) -> Verdict | None:
    """The kernel, where a program starts so many threads that little else can be limiting it."""
    started = [account.started for account in cell.accounts if account.started is not None]
    if not started or cell.accounts[0].system_ns is None:
        return None
    share = mean(started) * _START_NS / cell.per_trial("wall_ns")
    if share < _STARTING_SHARE:
        return None
    each = 1e6 * cell.per_trial("wall_ns") / 1e9 / mean(started)
    return Verdict(
        "kernel",
        f"{mean(started):,.0f} threads were started in a trial, one in {each:.0f} µs: most of the "
        "time goes to starting and ending them",
    )


def _kernel_work(cell: Breakdown) -> str:
    """What the kernel did most, as far as it is counted."""
    spent = cell.per_trial("system_ns")
    known = [account for account in cell.accounts if account.faults is not None]
    faults = mean([account.faults or 0.0 for account in known]) if known else 0.0
    started = mean([account.started or 0.0 for account in cell.accounts])
    said = []
    if faults * _FAULT_NS >= _NAMED_SHARE * spent:
        said.append(f"{faults:,.0f} page faults")
    if started * _START_NS >= _NAMED_SHARE * spent:
        said.append(f"{started:,.0f} threads started")
    calls = _calls(cell)
    if calls:
        said.append(f"waits in {calls}")
    if cell.share("memory") >= 0.02:
        said.append(f"{percent(cell.share('memory'))} of the time blocked on the address space")
    return f" ({', '.join(said)} in a trial)" if said else ""


#: At most so many system calls are named.
_CALLS_NAMED = 3


def _calls(cell: Breakdown) -> str:
    """The system calls that threads waited in most, in words; empty if there are none."""
    seen: Counter[str] = Counter()
    for account in cell.accounts:
        seen.update(dict(account.calls))
    return ", ".join(name for name, _ in seen.most_common(_CALLS_NAMED))


def mapping(case: Case, amount: float) -> Verdict | None:
    """Blocked while another thread changes the address space."""
    share = percent(case.cell.share("memory"))
    return Verdict(
        "kernel",
        f"{share} of it blocked while others change the address space "
        f"({_calls(case.cell) or 'page faults'})",
    )


def filing(case: Case, amount: float) -> Verdict | None:
    """Blocked on locks of files; one worker has nobody of its own to wait for."""
    cell = case.cell
    share = percent(cell.share("file_lock"))
    if cell.threads < 2 or cell.level == 1:
        return Verdict("none", f"{share} of it blocked on locks of files")
    return Verdict("lock", f"{share} of it blocked on locks of files (flock, fcntl)")


def _in_kernel(cell: Breakdown) -> float | None:
    """CPU time in the kernel per operation; ``None`` where a trial lacks it."""
    known = [a.system_ns / a.operations for a in cell.accounts if a.system_ns is not None]
    return mean(known) if len(known) == cell.trials else None


def spinning(case: Case, amount: float) -> Verdict | None:
    """More CPU time together with repeated futex waits: a lock that spins before it sleeps. Shared
    data alone make no thread sleep."""
    cell, base = case.cell, case.base
    assert base is not None
    waiting = cell.mean("futex") - base.mean("futex")
    computing = cell.mean("cpu") - base.mean("cpu")
    spun = _spun(case, computing) if computing > 0 else None
    if spun is not None and spun.cause == "imbalance":
        return spun
    if waiting < 0 or not wait_often(cell, base):
        return None
    how = contended(case) if cell.stage is None else ""
    if not how or computing < 0.5 * waiting or cell.per_operation("steal_ns") >= EXPLAINS * amount:
        return None
    return Verdict(
        "lock",
        f"{times(cell, base)} the CPU time and {percent(cell.share('futex'))} of it blocked on "
        f"futexes, as of a lock that spins before it sleeps{how}",
    )


#: A lock of more threads than CPUs costs so many times the CPU time: waiting for one's turn costs
#: nothing.
COSTLY_TIMES_MIN = 1.25


def _lock_of_many(case: Case) -> Verdict | None:
    """A lock that costs CPU time where more threads are ready than there are CPUs: they are woken
    in vain, or they spin."""
    cell, base = case.cell, case.base
    if base is None or not is_crowded(cell):
        return None
    amount = cell.mean("cpu") - base.mean("cpu")
    if cell.mean("cpu") < COSTLY_TIMES_MIN * base.mean("cpu"):
        return None
    herd = woken_in_vain(case)
    if herd:
        return Verdict("lock", herd, parts=("cpu",))
    spun = _spun(case, amount)
    return spun._replace(parts=("cpu",)) if spun and spun.cause == "lock" else None


#: Threads are woken in vain if an operation takes so many times as many sleeps.
VAIN_SLEEPS_TIMES_MIN = 2.0


def woken_in_vain(case: Case) -> str:
    """How threads cost CPU time by being woken, in words; empty if they do not.

    The same work takes several times as many sleeps, at futexes, and the kernel's part of the CPU
    time grew by most of what it costs more. Threads that find work when they are woken sleep no
    more often for the same work, however many they are; and those that wait for the end of a round
    cost little.
    """
    cell, base = case.cell, case.base
    if base is None or cell.is_go or cell.threads < 2 or not wait_often(cell, base):
        return ""
    own, before = _in_kernel(cell), _in_kernel(base)
    amount = cell.mean("cpu") - base.mean("cpu")
    if own is None or before is None or amount <= 0 or own - before < EXPLAINS * amount:
        return ""
    sleeps, less = cell.per_operation("switches"), base.per_operation("switches")
    if sleeps < VAIN_SLEEPS_TIMES_MIN * less:
        return ""
    often = f"{sleeps / less:.1f} × as often" if less >= 1 else f"{sleeps:,.0f} times"
    part = percent(min(1.0, (own - before) / amount))
    return (
        f"for the same work threads sleep and are woken {often}, at {times(cell, base)} the CPU "
        f"time, of whose increase {part} is the kernel's: they are woken for what another one "
        "has, or takes"
    )


def _cost(case: Case) -> str:
    """The increase of CPU time, which costs throughput; waiting while other threads run does
    not."""
    return f", at {times(case.cell, case.base)} the CPU time" if case.base is not None else ""


def synchronising(case: Case, amount: float) -> Verdict | None:
    """Blocked on futexes: a lock, or no work."""
    cell = case.cell
    words = f"{percent(cell.share('futex'))} of it blocked on futexes"
    if cell.stage is not None:
        ran = f"{words}: {cell.stage.words}, and others wait for it"
        return Verdict("stage", ran, limit=cell.stage.name)
    lock = _lock(case, words)
    if lock is not None:
        return lock
    dispatcher = cell.dispatcher
    if dispatcher and dispatcher.ran >= SATURATED:
        runs = f"the thread {dispatcher.name} runs {percent(dispatcher.ran)} of the time"
        waiting = f"{words}: {runs} and the others wait for it"
        return Verdict("stage", waiting, limit=dispatcher.name)
    if case.base is not None and _holder_waits(cell, case.base):
        times_as_long = _timed(cell) / _timed(case.base)
        return Verdict(
            "lock",
            f"{words}, {number(times_as_long)} × as long for an operation, and no thread hands out "
            "work: they wait for one another, as at a lock or in a pool whose holder sleeps",
        )
    given = f", {dispatcher.name} hands it out" if dispatcher else ""
    why = f"idle, no work for them{given}"
    if _is_stopped(cell):
        why = "that the JVM stopped, all of them as often as they waited"
    run = f"{number(cell.running)} of {count(cell.threads, 'thread')} run"
    return Verdict("none", f"{words} while {run}: threads {why}")


def _lock(case: Case, words: str) -> Verdict | None:
    """A lock that threads wait for at futexes while its holder runs, or that costs CPU time."""
    cell = case.cell
    costly = _lock_of_many(case)
    if costly:
        return costly._replace(words=f"{words}: {costly.words}")
    how = contended(case)
    if not how:
        return None
    more = cell.cpus is not None and cell.threads > cell.cpus
    said = f"{words}{how}{_cost(case) if more else ''}"
    if _may_be_rounds(cell):
        return Verdict("lock", f"{said}; or for the slowest, at a barrier", either="imbalance")
    return Verdict("lock", said)


def storing(case: Case, amount: float) -> Verdict | None:
    """Blocked on the disk."""
    return Verdict("io", f"{percent(case.cell.share('disk'))} of it blocked on the disk")


def outside(case: Case, amount: float) -> Verdict | None:
    """Waiting for a network, for descriptors, or at a pipe: for the client, or for another
    thread?"""
    cell = case.cell
    kinds = {kind: cell.share(kind) for kind in OUTSIDE}
    most = max(kinds, key=lambda kind: kinds[kind])
    words = f"{percent(sum(kinds.values()))} of it waiting for "
    if case.serving:
        return Verdict("client", f"{words}the client ({_NAMES[most]}){_clients(case)}")
    if most == "pipe":
        if cell.threads > 1 and cell.running >= RUNNING_MIN:
            # In the base, where the fewest work, who asks and who answers take turns.
            cause: Cause = "none" if case.base is None else "lock"
            return Verdict(cause, f"{words}one another, through pipes")
        return Verdict("none", f"{words}a pipe")
    if most == "network":
        return Verdict("io", f"{words}the network")
    return Verdict("none", f"{words}events")


_NAMES = {"network": "network", "poll": "polling", "pipe": "pipe"}


def _clients(case: Case) -> str:
    found = client_roles(case)
    if not found:
        return ""
    cpus, busiest = sum(other.cpus for other in found), max(other.busiest for other in found)
    if busiest >= SATURATED:
        said = "its CPU is used up"
    elif max(other.asleep for other in found) >= WHOLE_SHARE:
        said = "it has CPU time left, and sleeps between requests"
    else:
        said = "it has CPU time left: more sessions would ask for more"
    return f", which used {number(cpus)} CPUs, its busiest thread {percent(busiest)} of one: {said}"


def idling(case: Case, amount: float) -> Verdict | None:
    """Asleep, or waiting for child processes."""
    kinds = {kind: case.cell.share(kind) for kind in IDLE}
    most = max(kinds, key=lambda kind: kinds[kind])
    if most == "sleep" and case.base is not None and _try_again(case.cell, case.base):
        return Verdict(
            "lock",
            f"{percent(kinds[most])} of it asleep, as one worker alone is not: they wait for one "
            "another, as at a lock that they try again after each sleep",
        )
    what = {"sleep": "asleep", "child": "waiting for child processes"}
    said = what.get(most, "blocked on something else")
    return Verdict("none", f"{percent(sum(kinds.values()))} of it {said}")


def blocked(case: Case, amount: float) -> Verdict | None:
    """Blocked, while samples do not say on what."""
    share = percent(case.cell.share("blocked"))
    few = ": the samples are too few" if case.cell.sampled else ""
    return Verdict("none", f"{share} of it blocked for an unknown reason{few}")


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
    return uneven <= ASLEEP_UNEVEN_MAX and wait_often(cell, base, "sleep")


def _holder_waits(cell: Breakdown, base: Breakdown) -> bool:
    """Does a lone worker wait for a time (a JVM's threads sleep at futexes), as no other thread
    wakes it, and do several wait longer and more often for each operation? Each of them could wait
    for as long as the lone one, if it were not for the others."""
    if not _are_alike(cell, base) or base.share("futex", "sleep") < WHOLE_SHARE:
        return False
    is_longer = _timed(cell) >= HELD_TIMES_MIN * _timed(base)
    return is_longer and not _waits_for_no_lock(cell) and wait_often(cell, base)


def _timed(cell: Breakdown) -> float:
    return cell.mean("futex") + cell.mean("sleep")


def _may_be_rounds(cell: Breakdown) -> bool:
    """Could the threads that wait for one another be those of uneven rounds, in which another one
    is the last each time? What a JVM's threads wait for is not read. Threads that never run
    together are none."""
    return cell.is_jvm and not all(account.in_turns for account in cell.accounts)


def _are_alike(cell: Breakdown, base: Breakdown) -> bool:
    """Do the workers of a cell, and the only one of its base, do all the work, without a thread
    that hands it out? Goroutines run on any thread."""
    workers = cell.level or 0
    may_be = base.level == 1 and base.threads == 1 and workers > 1 and not cell.is_go
    return may_be and not (_is_fed(cell) or _is_fed(base))


def _is_fed(cell: Breakdown) -> bool:
    return 2 * sum(account.is_fed for account in cell.accounts) > cell.trials


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
    more = cell.per_operation("switches") - base.per_operation("switches")
    each = more * cell.per_trial("operations") / cell.threads
    blocked = sum(cell.readings.get(kind, 0) for kind in KINDS)
    seen = cell.readings.get(kind, 0)
    return each >= LOCK_SWITCHES_MIN and seen >= LOCK_READINGS_MIN and 2 * seen >= blocked


def contended(case: Case) -> str:
    """How the active threads wait for one another, in words; empty if they do not.

    They do if work is conserved: one of them holds the lock and runs. Threads that wait for work
    leave the CPUs idle, also wait when there is only one thread, or have a dispatcher. One worker
    has nobody to wait for, whichever threads of the program start it and wait for it.
    """
    cell, base = case.cell, case.base
    # Idle threads of Go's runtime wait for work; its locks are known, or are missing.
    if (
        cell.is_go
        or _is_stopped(cell)
        or _waits_for_no_lock(cell)
        or cell.threads < 2
        or cell.level == 1
    ):
        return ""
    if base is not None and base.threads == 1 and base.share("futex") >= WHOLE_SHARE:
        return ""
    if cell.dispatcher is not None:
        wanted = (
            cell.running >= RUNNING_MIN and _one_word(cell) and _has_work(case, cell.dispatcher)
        )
        return _where(cell) if wanted else ""
    if cell.running >= RUNNING_MIN or _handed_over(cell):
        return _where(cell)
    return ""


#: A thread that sleeps no more than so many times as often as a JVM stops all threads waits for
#: the end of that, and for no other thread.
STOPS_TIMES = 1.25


def _is_stopped(cell: Breakdown) -> bool:
    """Do the threads of a JVM sleep about as often as it stops them all, and no more?"""
    each = cell.per_trial("switches") / cell.threads
    return cell.is_jvm and each <= STOPS_TIMES * cell.per_trial("stops")


def _waits_for_no_lock(cell: Breakdown) -> bool:
    """Are most of the words, or of the places in the program, where threads wait barriers, or what
    is done once for all? Not where they take turns."""
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
        return f", {percent(at)} of that at one word where {threads} threads wait"
    many = max(account.word.words for account in cell.accounts) >= cell.threads
    own = ", at words of their own" if many and seen >= 10 * cell.threads else ""
    run = f"{number(cell.running)} of {cell.threads} threads run"
    return f"{own}, while {run}: they wait for one another"
