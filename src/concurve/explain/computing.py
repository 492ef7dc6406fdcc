"""More CPU time for the same operation: what it goes to. Pure."""

from __future__ import annotations

from collections import Counter

from concurve.explain.breakdown import Breakdown
from concurve.explain.hot import (
    grew_in,
    is_locking,
    is_loop,
    is_new,
    is_waiting,
    place_of,
    spins_in_loops,
)
from concurve.explain.others import grown_share, outside_processes, stolen_in
from concurve.explain.verdict import EXPLAINS, Case, Verdict, is_crowded, times
from concurve.stats.moments import mean
from concurve.words import count, listed, percent


def computing(case: Case, amount: float) -> Verdict | None:
    """More CPU time for the same operation."""
    cell, base = case.cell, case.base
    assert base is not None
    words = f"{times(cell, base)} the CPU time"
    if grown_share(cell, base, stolen_in) >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, while {outside_processes(cell)}")
    own, before = in_kernel(cell), in_kernel(base)
    if own is not None and before is not None and own - before >= EXPLAINS * amount:
        part = percent(min(1.0, (own - before) / amount))
        return Verdict(
            "kernel",
            f"{words}, and {part} of the increase is spent in the kernel{_kernel_work(cell)}",
            parts=("cpu", *_waits_for_kernel(cell, base)),
        )
    spun = spun_words(case, amount)
    if spun is not None:
        return spun
    slow = _slow_code(case, amount)
    if slow:
        return Verdict("none", f"{words}, {slow}")
    found = _shared_hardware(case, words)
    if found is None or found.cause not in ("coherency", "memory", "none"):
        return found
    where = grew_in(cell.hot, base.hot, EXPLAINS * amount)
    if found.cause != "none" and _may_work_anew(cell, base):
        if is_new(cell.hot, base.hot, EXPLAINS * amount):
            more = "there is more work, in functions that hardly ran in the base"
            found = Verdict("none", f"{words}: {more}")
        else:
            found = _or_anew(found)
    return found._replace(
        words=f"{found.words}; most of the increase is in {where}" if where else found.words
    )


#: CPU time that grew by more than this beyond the number of workers is no work that each does.
ANEW_SLACK = 1.05


def _may_work_anew(cell: Breakdown, base: Breakdown) -> bool:
    """May each worker do anew what the only one of the base did once? So do processes that each
    read the same input. They share no data, as far as is known."""
    are_apart = 2 * sum(account.apart for account in cell.accounts) > cell.trials
    more = cell.mean("cpu") / base.mean("cpu") if base.mean("cpu") else 0.0
    return are_apart and more <= ANEW_SLACK * cell.threads / base.threads


def _or_anew(found: Verdict) -> Verdict:
    """The verdict on processes: what is shared is not certain, so where nothing else is told beside
    it, no cause is."""
    words = f"{found.words}; or work that each worker does anew"
    stands_beside = found.either in ("memory", "coherency")
    return found._replace(
        cause=found.cause if stands_beside else "none",
        words=words,
        either=found.either if stands_beside else None,
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


#: For which threads spin, whatever they wait for.
SPINNING = ("spin_waits", "spin_delays", "spin_locks")
#: Threads of a server that spin for requests explain what these cost more from this share of it on.
#: Not all of it can be seen: who waits for such threads may spin in a loop that does more than
#: wait, and both write the lines that they look at. Nothing else that is known explains more.
SERVED_SPINNING_MIN = 0.25


def spun_words(case: Case, amount: float) -> Verdict | None:
    """More CPU time because threads spin: without work, or for a lock."""
    cell, base = case.cell, case.base
    assert base is not None
    words = f"{times(cell, base)} the CPU time"

    # A lone worker waits for nobody: what looks like waiting there is work, and grows as work does.
    grown = cell.mean("cpu") / base.mean("cpu") if base.threads == 1 and base.mean("cpu") else 1.0

    def more(*names: str) -> float:
        return sum(cell.mean(name) - grown * base.mean(name) for name in names)

    def is_most(name: str) -> bool:
        return more(name) >= EXPLAINS * amount

    # Of both kinds together, the greater one, as samples tell them apart by chance in part.
    is_spinning = more("spin_waits", "spin_locks") >= EXPLAINS * amount
    waits_more = more("spin_waits") >= more("spin_locks")
    # Threads of a server also spin until there is a request, and then all of them may do so.
    is_served = case.serving and spins_in_loops(cell.hot)
    if is_served and more(*SPINNING) >= SERVED_SPINNING_MIN * amount:
        spun = Verdict("cpu", f"{words}: {served_spinning_words(cell)}", parts=SPINNING)
        if more("spin_waits", "spin_delays") < more("spin_locks"):
            spun = spun._replace(words=f"{spun.words}, for a lock or for requests", either="lock")
        return spun
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


def served_spinning_words(cell: Breakdown) -> str:
    """How much the threads of a server spin, and where, in words."""
    share = percent(min(1.0, sum(map(cell.mean, SPINNING)) / cell.mean("cpu")))
    kinds = (place_of(cell.hot, which) for which in (is_loop, is_locking, is_waiting))
    at = next((it for it in kinds if it), "")
    return f"threads spin while they wait for others: {share} of the CPU time, in {at}"


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
            f"{words}: {workers} threads at once on {cores} cores, perhaps as their CPUs share "
            f"them, or for data that the threads share{_of_jvm(cell)}. A run with {cores} would "
            "tell"
        )
        return Verdict("smt", shared, either="coherency")
    if max(cell.threads, base.threads) <= 1:
        return Verdict("none", f"{words}: more work, or slower code: a lone thread shares no data")
    return _memory_or_data(case, words, ratio)


def _memory_or_data(case: Case, words: str, ratio: float) -> Verdict | None:
    """More CPU time of several threads: the bandwidth of memory, or shared data. ``ratio`` is how
    many times as much."""
    cell, base = case.cell, case.base
    assert base is not None
    workers, before = _at_once(cell), _at_once(base)
    unread = "cache misses, which would tell, are not counted"
    spins = f"or threads that spin, for a lock or for work ({unread}){_of_jvm(cell)}"
    bytes_used = max((account.rss_bytes or 0.0 for account in cell.accounts), default=0.0)
    may_divide = ratio <= BANDWIDTH_SLACK * workers / max(before, 1)
    if bytes_used >= BANDWIDTH_BYTES_MIN and may_divide:
        if ratio < BANDWIDTH_TIMES_MIN:
            return None  # runtimes that hold so much also start more for each worker
        large = f"it works on {bytes_used / (1 << 20):.0f} MiB"
        said = f"{words}: perhaps memory bandwidth ({large}), data that the threads share, {spins}"
        return _or_cores_of_the_host(Verdict("memory", said, either="coherency"), case, ratio)
    if not bytes_used and may_divide:
        said = f"{words}: perhaps data that the threads share, memory bandwidth, {spins}"
        return Verdict("coherency", said, either="memory")
    why = "its memory fits into caches" if may_divide else "more workers get less done per second"
    known = f"{why}, so it is not the bandwidth of memory"
    said = f"{words}: perhaps data that the threads share ({known}), {spins}"
    return _or_cores_of_the_host(Verdict("coherency", said), case, ratio)


def _or_cores_of_the_host(found: Verdict, case: Case, ratio: float) -> Verdict:
    """The verdict, where the CPUs of a virtual machine may be those of one core: who shares a core
    with one other is slower by so much at most, as if each had it by turns."""
    cell, base = case.cell, case.base
    is_more = base is not None and _at_once(cell) > _at_once(base)
    if not (cell.accounts[0].may_share_cores and is_more and ratio <= SMT_TIMES_MAX):
        return found
    cores = "CPUs of this virtual machine that share a core of its host, which it does not tell"
    return found._replace(words=f"{found.words}, or {cores}", either=found.either or "smt")


def _of_jvm(cell: Breakdown) -> str:
    """What more CPU time of Java may be beside all that: the compilers and the collector of a JVM
    use caches and cores that the workers need, and code is slow until it is compiled."""
    return ", or the compilers or the collector of the JVM" if cell.is_jvm else ""


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


def _waits_for_kernel(cell: Breakdown, base: Breakdown) -> tuple[str, ...]:
    """The waits for the address space, where they are most of what threads are blocked for more:
    they come from the same work in the kernel."""
    if not all("memory" in side.columns for side in (cell, base)):
        return ()
    waits, more = (cell.mean(name) - base.mean(name) for name in ("memory", "blocked"))
    return ("memory",) if more > 0 and waits >= EXPLAINS * more else ()


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
    counted = f"{listed(said)} in a trial" if said else ""
    calls = listed(names) if (names := _calls(cell)) else ""
    waits = f"threads wait in {calls}" if calls else ""
    if cell.share("memory") >= _MEMORY_MIN:
        often = f"for {percent(cell.share('memory'))} of the time"
        waits = f"threads wait {often} for the address space{f', in {calls}' if calls else ''}"
    return f" ({found})" if (found := "; ".join(filter(None, [counted, waits]))) else ""


#: Waits for the address space are told from this share of the thread time on.
_MEMORY_MIN = 0.02


#: At most so many system calls are named.
_CALLS_NAMED = 3


def _calls(cell: Breakdown) -> list[str]:
    """The system calls that threads waited in most; empty if there are none."""
    seen: Counter[str] = Counter()
    for account in cell.accounts:
        seen.update(dict(account.calls))
    return [name for name, _ in seen.most_common(_CALLS_NAMED)]


def mapping(case: Case, amount: float) -> Verdict | None:
    """Blocked while another thread changes the address space."""
    share = percent(case.cell.share("memory"))
    return Verdict(
        "kernel",
        f"{share} of it blocked while others change the address space "
        f"({', '.join(_calls(case.cell)) or 'page faults'})",
    )


def in_kernel(cell: Breakdown) -> float | None:
    """CPU time in the kernel per operation; ``None`` where a trial lacks it."""
    known = [a.system_ns / a.operations for a in cell.accounts if a.system_ns is not None]
    return mean(known) if len(known) == cell.trials else None
