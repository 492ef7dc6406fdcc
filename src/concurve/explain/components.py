"""What a large component of the thread time means: one function for each component.

CPU time is in ``computing``, and what names a lock in ``locks``.
"""

from __future__ import annotations

from collections import Counter

from concurve.explain.breakdown import Breakdown
from concurve.explain.computing import spun_words
from concurve.explain.locks import (
    ALONE_ASLEEP_MAX,
    ASLEEP_UNEVEN_MAX,
    is_seen,
    is_stopped,
    lacks_work,
    lock_of,
    waits_for_no_lock,
)
from concurve.explain.others import (
    client_roles,
    is_doubtful,
    is_used_up,
    others_in_words,
    outside_processes,
    taken_by_others,
    taken_by_roles,
)
from concurve.explain.room import may_be_staged
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
from concurve.explain.waiting import waits_to_be_written
from concurve.findings.explanation import Cause
from concurve.stats.moments import mean
from concurve.words import count, percent

IDLE = ("sleep", "child", "other")
OUTSIDE = ("network", "poll", "pipe")


def queueing(case: Case, amount: float) -> Verdict | None:
    """Waiting for a CPU: a quota, processes outside the trial, many threads, or another role."""
    cell = case.cell
    quota = throttling(cell)
    if quota is not None:
        return quota
    words = f"{percent(cell.share('run_queue'))} of it waiting for a CPU"
    costly = lock_of(case, words, "run_queue")
    if costly is not None:
        return costly
    if taken_by_others(case) >= EXPLAINS * amount:
        return Verdict("contamination", f"{words}, as {outside_processes(cell)}")
    why = _needed_by_roles(case, amount)
    if why:
        return Verdict("cpu", f"{words}{why}")
    if _held_back(cell, amount):
        how = "although CPUs were idle and the threads seldom sleep"
        return Verdict("quota", f"{words} {how}: a quota of CPU time holds them back")
    idle = "although CPUs were idle: threads were woken on a CPU where another one ran"
    if _has_more_threads(cell):
        idle += ", or were more than the CPUs for a part of the time, and fewer for another"
    return Verdict("none", f"{words} {idle}", open=True)


def _needed_by_roles(case: Case, amount: float) -> str:
    """Why the CPUs were too few for the roles of the trial, in words; empty if they were not."""
    cell = case.cell
    own = _threads_of(cell)
    granted = "" if cell.cpus is None else f" on {count(cell.cpus, 'CPU')}"
    if is_crowded(cell):
        return f" ({own}{granted}){cost_words(case)}"
    rivals = [other for other in cell.others if other.cpus >= 0.05]
    if rivals and taken_by_roles(cell) >= EXPLAINS * amount:
        mine = f"{own} with nice {cell.accounts[0].nice}" if cell.accounts[0].nice else own
        return f", as {others_in_words(rivals)}; here {mine}{granted}"
    if is_used_up(cell) and cell.per_trial("foreign_ns") < cell.per_trial("cpu_ns"):
        return f" ({own}{granted}, all of them busy)"
    return ""


def _threads_of(cell: Breakdown) -> str:
    """``5 threads``; ``4 workers and 1 thread of the parent``, where processes tell them apart."""
    parents = min(account.parents for account in cell.accounts)
    workers = cell.threads - parents
    is_told = parents and workers > 1 and parents == max(it.parents for it in cell.accounts)
    if not is_told:
        return count(cell.threads, "thread")
    return f"{workers} workers and {count(parents, 'thread')} of the parent"


#: A quota limits a role if it held it back for this share of the time of those of its threads that
#: could run at once.
QUOTA_MIN = 0.05


def throttling(cell: Breakdown) -> Verdict | None:
    """The quota of the control group, where it held the threads back; ``None`` where that was
    seldom. A thread that is held back waits for a CPU, by its account."""
    quota = quota_words(cell)
    if not quota:
        return None
    part, waits = "run_queue", "waiting for a CPU"
    if part not in cell.columns:
        part, waits = "blocked", "not on a CPU"
    words = f"{percent(cell.share(part))} of it {waits}, as {quota}"
    return Verdict("quota", words, parts=(part,))


def quota_words(cell: Breakdown) -> str:
    """What the quota of the control group is, and how often it was used up; empty if that was
    seldom."""
    found = [account.quota for account in cell.accounts if account.quota is not None]
    at_once = max(1, cell.threads if cell.cpus is None else min(cell.threads, cell.cpus))
    could_run = at_once * cell.per_trial("wall_ns")
    if not found or cell.per_trial("throttled_ns") < QUOTA_MIN * could_run:
        return ""
    periods, throttled = sum(q.periods for q in found), sum(q.throttled for q in found)
    often = f" in {percent(throttled / periods)} of the periods" if periods else ""
    return (
        f"the quota of its control group is {found[0].cpus:.3g} CPU seconds a second, and it was "
        f"held back{often}"
    )


#: A role that uses so much of a quota uses it up by itself: others of its group have little of it.
QUOTA_OWN_MIN = 0.8


def used_up_by_itself(cell: Breakdown) -> bool:
    """Is the quota most of the waits for CPUs, and is it the role that uses it up? The control
    group may hold others, too, such as a whole container."""
    allowed = [account.quota.cpus for account in cell.accounts if account.quota is not None]
    if not allowed:
        return False
    used = cell.per_operation("cpu_ns") / max(cell.per_operation("wall_ns"), 1.0)
    held_back, waited = cell.per_operation("throttled_ns"), cell.mean("run_queue")
    return used >= QUOTA_OWN_MIN * min(allowed) and held_back >= EXPLAINS * waited


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
    is_long = idle >= EXPLAINS * amount and each >= HELD_BACK_NS_MIN and not is_pinned
    return is_long and (not _has_more_threads(cell) or _are_idle_meanwhile(cell))


def _has_more_threads(cell: Breakdown) -> bool:
    """Had some threads that run no CPU of their own? Those of a JVM that compile run, too."""
    beside = max(account.beside for account in cell.accounts)
    return cell.cpus is not None and cell.threads + beside > cell.cpus


def _are_idle_meanwhile(cell: Breakdown) -> bool:
    """Were CPUs idle in the very intervals in which threads waited for one? More threads than CPUs
    also wait for one another, while at another time hardly any thread has work."""
    known = [it.ready_idle for it in cell.accounts if it.ready_idle is not None]
    return bool(known) and mean(known) >= EXPLAINS


def filing(case: Case, amount: float) -> Verdict | None:
    """Blocked on locks of files."""
    words = f"{percent(case.cell.share('file_lock'))} of it blocked on locks of files"
    return lock_of(case, words, "file_lock") or Verdict("none", words)


def waking(case: Case, amount: float) -> Verdict | None:
    """Waiting to be woken by another thread or process, while no socket is watched."""
    share = percent(case.cell.share("wake_up"))
    words = f"{share} of it waiting for"
    lock = lock_of(case, words, "wake_up")
    if lock is not None:
        return lock
    said = f"{words} a wake-up by another thread or process (in epoll, without a socket)"
    may_wait = case.cell.threads > 1 and case.cell.level != 1
    return Verdict("none", said, either_way=_TO_BE_WOKEN if may_wait else "")


#: What threads wait for that others wake, where no sampled place tells.
_TO_BE_WOKEN = "waiting for a lock or for work"


def spinning(case: Case, amount: float) -> Verdict | None:
    """More CPU time together with more waits at futexes."""
    cell, base = case.cell, case.base
    assert base is not None
    more = cell.mean("cpu") - base.mean("cpu")
    spun = spun_words(case, more) if more > 0 else None
    if spun is not None and spun.cause == "imbalance":
        return spun
    share = percent(cell.share("futex"))
    words = (
        f"{times(cell, base)} the CPU time, and {share} of its thread time is blocked on futexes"
    )
    return lock_of(case, words, "futex", "cpu")


def synchronising(case: Case, amount: float) -> Verdict | None:
    """Blocked on futexes: a lock, or no work."""
    cell = case.cell
    words = f"{percent(cell.share('futex'))} of it blocked on futexes"
    if cell.stage is not None and may_be_staged(case):
        ran = f"{words}: {cell.stage.words}, and others wait for it"
        return Verdict("stage", ran, limit=cell.stage.name)
    writing = _behind_a_writer(case, words)
    if writing is not None:
        return writing
    lock = lock_of(case, words, "futex")
    if lock is not None:
        return lock
    dispatcher = cell.dispatcher
    if dispatcher and dispatcher.used_up and may_be_staged(case):
        runs = f"the thread {dispatcher.name} runs {percent(dispatcher.ran)} of the time"
        waiting = f"{words}: {runs} and the others wait for it"
        return Verdict("stage", waiting, limit=dispatcher.name)
    given = f" ({dispatcher.name} gives them theirs)" if dispatcher else ""
    why, either_way = f"idle, no work for them, it seems{given}", ""
    if cell.is_go:
        why = "of Go's runtime wait for a goroutine that can run"
    elif waits_for_no_lock(cell):
        why = "wait at a barrier, or for what another one does once for all"
    elif is_stopped(cell):
        why = "that the JVM stopped, all of them as often as they waited"
    elif not lacks_work(case):
        why, either_way = f"wait for a lock or for work{given}, not told apart", _AT_FUTEXES
    run = f"{number(cell.ready)} of {count(cell.threads, 'thread')} run"
    return Verdict("none", f"{words} while {run}: threads {why}", either_way=either_way)


#: The calls by which a program waits until the disk has what it wrote.
_SYNCS = ("fdatasync", "fsync")
#: One thread waits for the disk for so much of the time, at least, where others wait for it.
WRITING_MIN = 0.5


def sync_of(cell: Breakdown) -> str:
    """The call by which threads wait until the disk has what they wrote, if most of their waits for
    the disk are of that kind; else empty."""
    seen: Counter[str] = Counter()
    for account in cell.accounts:
        calls = dict(account.calls)
        for name in _SYNCS:
            seen[name] += calls.get(name, 0)
    if 2 * seen.total() < max(1, cell.readings.get("disk", 0)):
        return ""
    return seen.most_common(1)[0][0]


def _behind_a_writer(case: Case, words: str) -> Verdict | None:
    """Do threads wait at futexes for one that makes what it wrote durable? It is in that call for
    more of the time than any thread runs, and they wait where a lock is taken, or a log written."""
    cell = case.cell
    wall = cell.per_operation("wall_ns")
    if cell.threads < 2 or cell.level == 1 or not wall:
        return None
    call, writing = sync_of(cell), cell.mean("disk") / wall
    if not call or writing < max(WRITING_MIN, cell.ready):
        return None
    sites = [account.sites for account in cell.accounts]
    place = waits_to_be_written(sites)
    if not place and not is_seen(cell):
        return None
    at = f", most of them in {place}" if place else ""
    said = (
        f"{words}{at}, while another one waits {percent(min(1.0, writing))} of the time for the "
        f"disk to have what was written ({call})"
    )
    return Verdict("io", said)


#: What threads wait for at futexes, where nothing tells which.
_AT_FUTEXES = _TO_BE_WOKEN


#: Who waits for a disk reads or writes a page of eight blocks, which several threads may wait for,
#: and seldom for 0.08 s. With fewer blocks for its waits, by their number and their time, these are
#: for something else, and the blocks are those of a log, say.
BLOCKS_A_WAIT_MIN = 0.1
BLOCKS_A_SECOND_MIN = 100.0


def _waits_for_blocks(cell: Breakdown, *kinds: str, unknown: bool) -> bool:
    """Were enough blocks read and written in most trials for the waits of these kinds to be waits
    for the disk? Not in the first trial alone, which may load the program from the disk.
    ``unknown`` is the answer where a record does not tell."""
    blocked = cell.mean("blocked")
    part = sum(map(cell.mean, kinds)) / blocked if blocked else 0.0
    are_enough = []
    for account in cell.accounts:
        by_waits = BLOCKS_A_WAIT_MIN * part * account.switches
        by_time = BLOCKS_A_SECOND_MIN * part * account.blocked_ns / 1e9
        blocks = account.blocks
        are_enough.append(unknown if blocks is None else 0 < blocks >= min(by_waits, by_time))
    return 2 * sum(are_enough) > len(are_enough)


def storing(case: Case, amount: float) -> Verdict | None:
    """Blocked on the disk; or on files, of which hardly a block was read or written."""
    cell = case.cell
    share = percent(cell.share("disk"))
    if call := sync_of(cell):
        said = f"{share} of it blocked on the disk, until it has what was written ({call})"
        return Verdict("io", said)
    if _waits_for_blocks(cell, "disk", unknown=True):
        return Verdict("io", f"{share} of it blocked on the disk")
    are_none = all(account.blocks == 0 for account in cell.accounts)
    moved = "no block was" if are_none else "hardly a block was"
    words = f"{share} of it waiting for a file, or for its lock: {moved} read or written"
    may_be_locked = cell.threads > 1 and cell.level != 1
    return Verdict("io", words, either="lock" if may_be_locked else None)


def outside(case: Case, amount: float) -> Verdict | None:
    """Waiting for a network, for descriptors, or at a pipe: for the client, or for another
    thread?"""
    cell = case.cell
    kinds = {kind: cell.share(kind) for kind in OUTSIDE}
    most = max(kinds, key=lambda kind: kinds[kind])
    words = f"{percent(sum(kinds.values()))} of it waiting for "
    if case.serving:
        return _client(case, words, _NAMES[most])
    if most == "pipe":
        if cell.threads > 1 and cell.running >= RUNNING_MIN:
            # In the base, where the fewest work, who asks and who answers take turns.
            cause: Cause = "none" if case.base is None else "lock"
            return Verdict(cause, f"{words}one another, through pipes")
        return Verdict("none", f"{words}a pipe")
    if most == "network":
        return _at_sockets(case, words)
    if _are_of_a_ring(cell) and _waits_for_blocks(cell, "poll", unknown=False):
        return Verdict("io", f"{words}requests to io_uring, some of them to the disk")
    return Verdict("none", f"{words}events")


def _at_sockets(case: Case, words: str) -> Verdict:
    """Waiting at sockets: for another machine, or for one another, as their base shows."""
    if _ask_one_another(case.cell if case.base is None else case.base):
        return Verdict("none", f"{words}one another, through sockets")
    return Verdict("io", f"{words}the network")


#: Where one worker asks and another thread answers, the two together run for this share of the
#: time, at least and at most.
ASKING_MIN, ASKING_MAX = 0.85, 1.1


def _ask_one_another(base: Breakdown) -> bool:
    """Do the threads of a base with one worker take turns, so that one of them always runs, or
    waits for a CPU? Who waits for another machine leaves the CPU meanwhile."""
    return base.level == 1 and base.threads > 1 and ASKING_MIN <= base.ready <= ASKING_MAX


def _are_of_a_ring(cell: Breakdown) -> bool:
    """Are most of the waits for events at io_uring, where a program waits for sockets and for the
    disk alike?"""
    at_rings = sum(dict(account.calls).get("io_uring_enter", 0) for account in cell.accounts)
    return 2 * at_rings >= cell.readings.get("poll", 0) > 0


#: How a server waits for its next request, in words: who waits in epoll runs nothing, and "polling"
#: reads as if it did.
_NAMES = {"network": "network", "poll": "in poll or epoll", "pipe": "pipe"}


#: What to do where a thread of the client is used up, whose program is not looked at.
CLIENT_USED_UP = "the load cannot ask for more: give it more threads, or run several loads"


#: A client none of whose threads uses so much of a CPU is not accused beside a server that does: of
#: two that are hardly busy, it is most likely the client that lets time pass.
BUSY_MIN = 0.5


def _client(case: Case, words: str, kind: str) -> Verdict:
    """What a server waits for outside: its clients, or what its own sessions have locked, for which
    some wait as for a client (PostgreSQL). It is the clients where they are used up, sleep, or are
    a single session, which waits for no other. A client that is hardly busy is not accused where
    the server works: then the cause is not found."""
    found = client_roles(case)
    if not found:
        return Verdict("client", f"{words}the client ({kind})")
    cpus, busiest = sum(other.cpus for other in found), max(other.busiest for other in found)
    amount = f"used {number(cpus)} CPUs, its busiest thread {percent(busiest)} of one"
    used = f"which {amount}"
    if busiest >= SATURATED:
        said = f"{words}the client ({kind}), {used}: its CPU is used up"
        return Verdict("client", said, remedy=CLIENT_USED_UP)
    if max(other.asleep for other in found) >= WHOLE_SHARE:
        said = f"{words}the client ({kind}), {used}: it has CPU time left, and sleeps"
        return Verdict("client", f"{said} between requests")
    if surely := waits_for_no_session(case.cell):
        return Verdict("client", f"{words}the client ({kind}), {used}: {surely}")
    left = ": it has CPU time left"
    if is_doubtful(case.cell):
        left = f"; {outside_processes(case.cell)}, so it may have had no CPU"
    said = (
        f"{words}the client, or inside for a lock ({kind}). The client {amount}{left}. What "
        "decides: its rate with more sessions, and of a database its own list of what its sessions "
        f"wait for{_idle_beside(case.cell, cpus)}"
    )
    if busiest < BUSY_MIN <= _cpus_of(case.cell):
        return Verdict("none", said, either_way="waiting for the client or for locks")
    return Verdict("client", said, either="lock")


def waits_for_no_session(cell: Breakdown) -> str:
    """Why who waits at a socket waits for no other session, in words; empty where it may: it is the
    only one, or every session is a process, and who waits for another one watches no socket."""
    if cell.level == 1:
        return "its only session asks for one thing at a time"
    if all(it.apart and it.tells_wake_ups for it in cell.accounts):
        return "each session waits at a socket of its own"
    return ""


#: A server that uses no more than this share of a CPU, and its client so many times as much, may
#: be another one than the client asks.
IDLE_SERVER_CPUS_MAX, CLIENT_TIMES_MIN = 0.02, 5.0


def _cpus_of(cell: Breakdown) -> float:
    """How many CPUs its active threads use, as a mean; 0 where the time of an operation is not
    known."""
    wall = cell.per_operation("wall_ns")
    return cell.mean("cpu") / wall if wall else 0.0


def _idle_beside(cell: Breakdown, client_cpus: float) -> str:
    """What to check where the server hardly works while its client does; else empty."""
    cpus = _cpus_of(cell)
    if cpus > IDLE_SERVER_CPUS_MAX or client_cpus < CLIENT_TIMES_MIN * cpus:
        return ""
    return (
        f". The server used {percent(cpus)} of a CPU, the client {percent(client_cpus)}: check "
        "that the client asks this server"
    )


def _look_for_work(case: Case) -> bool:
    """Do workers sleep that one alone does not, because another one has more work than they? They
    may poll for the end of a round, or for tasks."""
    cell, base = case.cell, case.base
    if base is None or (cell.level or 0) < 2 or not cell.capacity:
        return False
    is_uneven = cell.of_capacity("uneven") > ASLEEP_UNEVEN_MAX
    return is_uneven and base.share("sleep") <= ALONE_ASLEEP_MAX


def idling(case: Case, amount: float) -> Verdict | None:
    """Asleep, or waiting for child processes."""
    kinds = {kind: case.cell.share(kind) for kind in IDLE}
    most = max(kinds, key=lambda kind: kinds[kind])
    if most == "sleep":
        asleep = lock_of(case, f"{percent(kinds[most])} of it asleep", "sleep")
        if asleep is not None:
            return asleep
        if _look_for_work(case):
            uneven = case.cell.of_capacity("uneven")
            said = (
                f"{percent(kinds[most])} of it asleep: the busiest worker ran {uneven:.2f} × as "
                "long as the mean of the workers, and the others slept again and again meanwhile, "
                "or looked for work"
            )
            return Verdict("imbalance", said, parts=("sleep", "cpu"))
    what = {"sleep": "asleep", "child": "waiting for child processes"}
    said = what.get(most, "blocked on something else")
    return Verdict("none", f"{percent(sum(kinds.values()))} of it {said}")


def blocked(case: Case, amount: float) -> Verdict | None:
    """Blocked, while samples do not say on what."""
    share = percent(case.cell.share("blocked"))
    few = ": the samples are too few" if case.cell.sampled else ""
    return Verdict("none", f"{share} of it blocked for an unknown reason{few}")
