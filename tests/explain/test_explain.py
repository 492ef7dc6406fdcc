"""What limits a cell, from records made up for each cause and each edge."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from concurve.definition.purposes import Purposes, alone
from concurve.explain.accounts import Account, account
from concurve.explain.breakdown import Breakdown, breakdown
from concurve.explain.causes import cause_of
from concurve.explain.components import sync_of
from concurve.explain.others import (
    did_not_answer,
    is_doubtful,
    may_explain_all,
    outside_processes,
)
from concurve.explain.threads import dispatcher_of
from concurve.explain.verdict import Case, Verdict
from concurve.explain.waiting import lock_places
from concurve.explain.weights import outweighed
from concurve.findings.explanation import Cause
from concurve.readings.operations import Asked
from concurve.wire.record import (
    MachineRecord,
    RoleRecord,
    SiteRecord,
    SitesRecord,
    ThreadReadings,
    ThreadTimeline,
    ThreadTimelines,
    TrialRecord,
    Usage,
)
from concurve.wire.report import IndicatorLine
from tests.helpers.explaining import WALL, Thread, record, role, thread

ALONE_ASKED = Asked(alone("target"))
SERVED = Asked(Purposes("target", "target", ("load",), True))


def cell(
    make: Callable[[float], TrialRecord], trials: int = 5, asked: Asked = ALONE_ASKED
) -> Breakdown:
    """A cell of trials that differ a little."""
    rng = random.Random(1)
    accounts = [account(make(1 + 0.002 * rng.random()), asked) for _ in range(trials)]
    found = breakdown([each for each in accounts if each is not None])
    assert found is not None
    return found


def of(threads: Sequence[Thread], operations: float | None = 1000.0, **more: Any) -> Breakdown:
    """A cell of one role."""
    machine = {name: more.pop(name) for name in ("steal", "foreign") if name in more}
    trials = more.pop("trials", 5)
    return cell(
        lambda noise: record(role(threads, operations, noise=noise, **more), **machine), trials
    )


def only(record: TrialRecord) -> Account:
    found = account(record, ALONE_ASKED)
    assert found is not None
    return found


ALONE = of([thread(0.99, 0.01, switches=5)])
"""A base cell: one thread that computes."""


# -- each cause -------------------------------------------------------------------------------


def test_more_threads_than_cpus() -> None:
    said = cause_of(of([thread(0.5, 0.5)] * 4, 2000), ALONE)
    words = "50 % of it waiting for a CPU (4 threads on 2 CPUs), at 1.01 × the CPU time"
    assert said._replace(parts=()) == Verdict("cpu", words)


def pool(parent: Sequence[Thread]) -> Breakdown:
    """Four workers, a process each, on two CPUs, beside threads of the process that forked them."""
    workers = [thread(0.45, 0.55, pid=201 + n, tid=201 + n) for n in range(4)]
    own = [{**one, "pid": 300, "tid": 301 + n} for n, one in enumerate(parent)]
    return of([*workers, *own], 1800)


def test_threads_of_the_parent_of_a_pool_are_no_workers() -> None:
    resting = thread(0.01, 0.0, futex=0.99, switches=20)
    busy = pool([thread(0.3, 0.5, pipe=0.2, switches=400), resting])
    assert busy.threads == 5
    assert "(4 workers and 1 thread of the parent on 2 CPUs)" in cause_of(busy, ALONE).words
    piped = thread(0.06, 0.1, futex=0.84, switches=400, name="sort")
    assert pool([piped, {**resting, "name": "sort"}]).threads == 5, "another program"
    helping = pool([thread(0.06, 0.1, futex=0.84, switches=400), resting])
    assert helping.threads == 4 and helping.readings["futex"] == 0
    assert "(4 threads on 2 CPUs)" in cause_of(helping, ALONE).words


def test_waiting_for_its_turn_is_told_apart_from_what_it_costs() -> None:
    """Four threads on two CPUs, with half the operations of two: their CPU time doubled."""
    said = cause_of(of([thread(0.5, 0.5)] * 4, 1000), ALONE)
    assert said.cause == "cpu" and said.words.endswith("at 2.0 × the CPU time")


def test_another_role_takes_the_cpus_from_a_nice_one() -> None:
    def make(noise: float) -> TrialRecord:
        rivals = [
            role([thread(0.98)], None, f"background-{n}", cpus=(0,), noise=noise) for n in (1, 2)
        ]
        return record(role([thread(0.02, 0.98)], cpus=(0,), nice=19, noise=noise), *rivals)

    for base in (ALONE, None):
        said = cause_of(cell(make), base)
        assert said.cause == "cpu"
        assert "background-1 (nice 0), background-2 (nice 0) took 2.0 CPUs" in said.words
        assert "1 thread with nice 19 on 1 CPU" in said.words


def test_waiting_that_others_on_the_machine_explain_is_contamination() -> None:
    waiting = of([thread(0.7, 0.3)] * 2, 1400, foreign=0.3)
    said = cause_of(waiting, ALONE)
    assert said.cause == "contamination"
    assert "processes outside the trial used 30 % of the machine's CPU time" in said.words


def test_two_that_take_turns_at_a_pipe_are_no_lock_where_the_fewest_work() -> None:
    """One asks and one answers: where more ask, they wait for one another."""
    turns = of([thread(0.5, pipe=0.5)] * 2, 1000)
    assert cause_of(turns, None).cause == "none"
    assert cause_of(of([thread(0.25, pipe=0.75)] * 4, 1000), turns).cause == "lock"


def test_beside_other_processes_threads_that_wait_for_one_another_are_told_too() -> None:
    """Who holds a lock waits for a CPU, and all others for the lock."""
    waiting = of([thread(0.3, 0.4, futex=0.3)] * 2, 600, foreign=0.6)
    said = cause_of(seen_at(waiting, "mutex", "pthread_mutex_lock"), ALONE)
    assert said.cause == "contamination"
    assert said.words.endswith("mostly for locks: on a quiet machine one of them may limit it")
    without = cause_of(of([thread(0.7, 0.3)] * 2, 1400, foreign=0.3), ALONE)
    assert "futexes" not in without.words
    # Threads without work wait at futexes, too: what nothing shows is not said.
    for primitive, operation in (("condition", "pthread_cond_wait"), ("mutex", "BaseContext.Pool")):
        idle = cause_of(seen_at(waiting, primitive, operation), ALONE)
        assert idle.cause == "contamination" and "lock" not in idle.words
    assert "lock" not in cause_of(waiting, ALONE).words


@pytest.mark.parametrize(
    ("function", "at_log", "at_locks", "said"),
    [
        ("XLogFlush", 8, 2, "mostly until the log is written: on a quiet machine its disk may"),
        ("XLogFlush", 4, 6, "mostly for locks: on a quiet machine one of them may limit it"),
        ("XLogFlush", 2, 3, "for locks or the log: on a quiet machine one of them may limit it"),
        ("work", 0, 3, "for locks or the log: on a quiet machine one of them may limit it"),
    ],
)
def test_beside_other_processes_waits_for_the_log_are_not_called_waits_for_locks(
    function: str, at_log: int, at_locks: int, said: str
) -> None:
    """Of a database whose sessions flush a log; of few samples it is not told which it is."""
    waiting = of([thread(0.3, 0.4, futex=0.3)] * 2, 600, foreign=0.6)
    lock = SiteRecord(primitive="mutex", call="futex", module="/app", offset="0x1", found="cfi",
                      readings=at_locks, threads=2, operation="LWLockAcquire")  # fmt: skip
    log = msgspec.structs.replace(lock, readings=at_log, function=function, line=7)
    sites = SitesRecord(readings=at_log + at_locks, listed=(log, lock))
    accounts = [it._replace(sites=None, calls=(("fdatasync", 90),)) for it in waiting.accounts]
    accounts[0] = accounts[0]._replace(sites=sites)
    other = seen_at(waiting, "mutex", "LWLockAcquire")
    lone = waiting._replace(accounts=tuple(accounts))
    assert sync_of(lone) == "fdatasync"
    with patch("concurve.explain.causes.is_seen", lambda _: True):
        assert said in cause_of(lone, ALONE).words
    assert "mostly for locks" in cause_of(other, ALONE).words


def seen_at(
    cell: Breakdown, primitive: str, operation: str, beside: tuple[str, int, int] | None = None
) -> Breakdown:
    """The cell with sampled places of its waits: all in this function of a library, but those at
    another place, of which the kind, the readings and the threads are given."""
    site = SiteRecord(primitive=primitive, call="futex", module="/app", offset="0x1", found="cfi",
                      readings=10, threads=2, operation=operation)  # fmt: skip
    listed = [site]
    if beside is not None:
        kind, readings, threads = beside
        listed.append(msgspec.structs.replace(site, primitive=kind, readings=readings,
                                              threads=threads, line=56))  # fmt: skip
    sites = SitesRecord(readings=sum(it.readings for it in listed), listed=tuple(listed))
    return cell._replace(accounts=tuple(it._replace(sites=sites) for it in cell.accounts))


def test_the_same_neighbours_do_not_explain_a_loss() -> None:
    """Others had two thirds of the machine with one thread that waits actively, and have three
    quarters of it with five, which use 200 times the CPU time for the same."""
    base = of([thread(0.35, 0.1, poll=0.55)], 20_000, foreign=0.66)
    spinning = of([thread(0.1, 0.9)] * 5, 30, foreign=0.74)
    said = cause_of(spinning, base)
    assert said.cause == "cpu" and "5 threads on 2 CPUs" in said.words
    # With as many threads as CPUs, and the same work, it is what others took.
    kept = of([thread(0.15, 0.85)] * 2, 17_000, foreign=0.74)
    assert cause_of(kept, base).cause == "contamination"


def test_an_unexplained_loss_is_no_more_than_others_can_cause() -> None:
    base = of([thread(0.4, 0.0, poll=0.6)], 1000, foreign=0.5)
    for operations, cause in ((500, "contamination"), (50, "none")):
        slower = of([thread(0.9, 0.0, poll=0.1)], operations, foreign=0.5)
        assert may_explain_all(slower, base) == (cause == "contamination")


def test_who_waits_for_a_thread_that_nobody_held_up_was_not_kept_waiting_by_others() -> None:
    """Workers that take turns while the holder sleeps: the machine is busy, they hardly need it."""
    base = of([thread(0.01, 0.04, futex=0.95)], 1000, foreign=0.7)
    for queue in (0.02, 0.3):
        waiting = of([thread(0.01, queue, futex=0.99 - queue)] * 4, 1600, foreign=0.7)
        assert may_explain_all(waiting, base) == (queue == 0.3)
        assert cause_of(waiting, base).cause != "contamination"


def test_a_lock_is_seen_where_another_thread_hands_out_the_work() -> None:
    """Processes of a pool that share a lock: each has its word elsewhere, their places tell."""
    handing = thread(0.02, poll=0.98, name="handler", switches=4000)
    locked = of([*[thread(0.27, futex=0.73)] * 4, handing], 1250, words=[(70, 1)] * 4)
    base = of([thread(0.98, 0.02, switches=4), handing])
    assert cause_of(seen_at(locked, "mutex", "SemLock.__enter__"), base).cause == "lock"
    assert cause_of(seen_at(locked, "mutex", "BaseContext.Pool"), base).cause == "none"
    # The pool's own thread waits for the workers, more often than they for the lock.
    shared = seen_at(locked, "mutex", "SemLock.__enter__", beside=("condition", 30, 1))
    assert cause_of(shared, base).cause == "lock"
    # Where several wait at the condition, they have no work.
    idle = seen_at(locked, "mutex", "SemLock.__enter__", beside=("condition", 30, 2))
    assert cause_of(idle, base).cause == "none"


def test_a_third_thread_that_hardly_works_does_not_make_two_cpus_too_few() -> None:
    """A JVM has such threads; other processes keep its workers from the CPUs."""
    beside = of([thread(0.6, 0.4), thread(0.6, 0.4), thread(0.08, 0.02)], 1200, foreign=0.3)
    assert cause_of(beside, ALONE).cause == "contamination"


@pytest.mark.parametrize(("queue", "cause"), [(0.04, "none"), (0.08, "cpu")])
def test_a_little_waiting_for_cpus_of_which_there_are_enough_accuses_nobody(
    queue: float, cause: str
) -> None:
    assert cause_of(of([thread(1 - queue, queue)] * 2, 2000), of([thread(1.0)])).cause == cause


def test_cpus_that_are_used_up_by_whom() -> None:
    """Two threads wait long; most of what the CPUs did was for others, or for them."""
    busy = [thread(0.3, 0.6, sleep=0.1)] * 2
    assert cause_of(of(busy, 600, foreign=0.25), None).cause == "contamination"
    own = [thread(0.45, 0.55)] * 2
    assert cause_of(of(own, 900, foreign=0.02, cpus=(0,)), None).cause == "cpu"


def test_waiting_while_cpus_are_idle_accuses_nobody() -> None:
    said = cause_of(of([thread(0.7, 0.3)] * 2, 1400), ALONE)
    assert said.cause == "none" and "although CPUs were idle" in said.words


def test_threads_that_a_quota_holds_back() -> None:
    """Ready for 30 % of the time while CPUs are idle; threads that never sleep are not woken."""
    held = [thread(0.7, 0.3, switches=3)] * 2
    said = cause_of(of(held, 1400), ALONE)
    assert said.cause == "quota" and "a quota of CPU time holds them back" in said.words
    busy = cause_of(of(held, 1400, foreign=0.3), ALONE)
    assert busy.cause == "contamination"

    def bound(*cpus: int) -> Breakdown:
        """The threads in turns on one of these CPUs each."""

        def make(noise: float) -> TrialRecord:
            made = role(held, 1400, noise=noise)
            listed = tuple(
                msgspec.structs.replace(thread, cpus=(cpus[number % len(cpus)],))
                for number, thread in enumerate(made.threads.listed)
            )
            threads = msgspec.structs.replace(made.threads, listed=listed)
            return record(msgspec.structs.replace(made, threads=threads))

        return cell(make)

    assert cause_of(bound(0, 1), ALONE).cause == "none"
    all_on_one = cause_of(bound(0), ALONE)
    assert all_on_one.cause == "cpu" and "2 threads on 1 CPU" in all_on_one.words


def at_times(*shares: tuple[int, int]) -> Breakdown:
    """Four threads in a phase, on two CPUs, that never sleep; in each tenth of the time so many
    percent of a CPU were run, and waited for, by all of them."""

    def make(noise: float) -> TrialRecord:
        each = thread(0.2, 0.33, sleep=0.2, poll=0.27, switches=3)
        made = role([each] * 4, 1000, phase=True, noise=noise)
        lanes = tuple(
            ThreadTimeline(
                tid=thread.tid,
                running=tuple(running // 4 for running, _ in shares),
                runnable=tuple(ready // 4 for _, ready in shares),
                waits="-" * len(shares),
            )
            for thread in made.threads.listed
        )
        ends = tuple((at + 1) * WALL // len(shares) for at in range(len(shares)))
        followed = ThreadTimelines(ends_ns=ends, threads=4, listed=lanes)
        return record(msgspec.structs.replace(made, thread_timelines=followed))

    return cell(make)


def test_more_threads_than_cpus_wait_for_one_another_and_for_no_quota() -> None:
    """They have less and less work: many wait for a CPU at first, and CPUs are idle at the end. A
    quota leaves CPUs idle while threads are ready."""
    base = of([thread(0.99, 0.01, switches=5)], phase=True)
    apart = at_times(*[(200, 200)] * 3, *[(100, 0)] * 7)
    said = cause_of(apart, base)
    assert said.cause == "none" and "fewer for another" in said.words
    held = cause_of(at_times(*[(100, 180)] * 10), base)
    assert held.cause == "quota" and "a quota of CPU time holds them back" in held.words
    # Where nothing says what they did at which time, it is not known either.
    unknown = apart._replace(accounts=tuple(it._replace(ready_idle=None) for it in apart.accounts))
    assert cause_of(unknown, base).cause == "none"


def test_stolen_cpu_time_is_contamination_and_no_shared_data() -> None:
    assert cause_of(of([thread(1.0)] * 2, 1600, steal=0.2), ALONE).cause == "contamination"


def test_steal_from_the_cpus_in_use_casts_doubt_on_a_machine_of_many() -> None:
    def make(noise: float) -> TrialRecord:
        made = record(role([thread(1.0)], 1000.0, noise=noise), steal=0.1)
        return msgspec.structs.replace(made, machine=msgspec.structs.replace(made.machine, cpus=64))

    assert is_doubtful(cell(make))
    assert not is_doubtful(of([thread(1.0)], steal=0.01))


def on_many(
    threads: Sequence[Thread], operations: float, foreign: float = 0.0, steal: float = 0.0
) -> Breakdown:
    """A cell of a role that is bound to four CPUs of 64, and others that took so many CPUs: there,
    but for what the hypervisor did."""

    def make(noise: float) -> TrialRecord:
        made = role(threads, operations, noise=noise, cpus=(0, 1, 2, 3))
        quiet = record(msgspec.structs.replace(made, pid=100))
        wall, taken = quiet.wall_ns, round(foreign * quiet.wall_ns)
        busy = (made.usage.cpu_ns or 0) + taken
        machine = MachineRecord(
            cpus=64, busy_ns=busy, busy_ns_by_cpu={"0": busy}, steal_ns=round(steal * wall),
            foreign_cpu_ns=taken, foreign_low_priority_ns=0,
        )  # fmt: skip
        return msgspec.structs.replace(quiet, machine=machine)

    return cell(make)


def test_a_stranger_on_the_cpus_that_the_roles_are_bound_to_is_contamination() -> None:
    """0.9 of a CPU is 1.4 % of the machine, and 22 % of those four."""
    base = on_many([thread(0.99, 0.01, switches=5)], 1000)
    waiting = [thread(0.4, 0.6)] * 4
    said = cause_of(on_many(waiting, 1616, foreign=0.9), base)
    assert said.cause == "contamination"
    where = "the CPU time of the 4 CPUs that the roles are bound to, or more"
    assert said.words.endswith(f"while processes outside the trial used 22 % of {where}")
    assert cause_of(on_many(waiting, 1616), base).cause == "none"


def test_the_hypervisor_is_named_for_what_it_took_of_the_cpus_in_use() -> None:
    found = on_many([thread(0.9)] * 2, 1000, steal=0.19)
    assert is_doubtful(found)
    assert (
        outside_processes(found) == "the hypervisor took 9.5 % of the CPU time of the CPUs in use"
    )
    both = outside_processes(on_many([thread(0.9)] * 2, 1000, steal=0.19, foreign=0.9))
    assert both.startswith("processes outside the trial used 22 % of the CPU time of the 4 CPUs")
    assert both.endswith(" and the hypervisor took 6.6 % of the CPU time of the CPUs in use")
    little = on_many([thread(0.9)] * 2, 1000, steal=0.004)
    assert outside_processes(little) == "the hypervisor took some of the machine's CPU time"


def test_steal_that_grows_with_the_cpus_in_use_is_no_more_of_them() -> None:
    """Four threads need more CPU time each than two, beside the same share of steal."""
    base = on_many([thread(1.0)] * 2, 2000, steal=0.5)
    own = on_many([thread(1.0)] * 4, 3500, steal=1.0)
    assert cause_of(own, base).cause != "contamination"


def test_a_wait_at_a_condition_is_no_lock_that_spins_before_it_sleeps() -> None:
    """A first thread waits for blocks that are done; two threads need more of the caches."""
    busy = of([thread(0.93, futex=0.05, switches=400)] * 2, 1700)
    held = seen_at(busy, "mutex", "pthread_mutex_lock")
    spun = {"spin_locks": [0.1 * cpu for cpu in held.columns["cpu"]]}
    locked = cause_of(held._replace(columns=held.columns | spun), ALONE)
    assert locked.cause == "lock" and "spins before it sleeps" in locked.words
    assert locked.parts == ("futex", "cpu")
    unseen = cause_of(held, ALONE)
    assert unseen.cause == "lock" and unseen.parts == ("futex",), "nothing shows that they spin"
    assert unseen.words.endswith("whether they spin for it first was not sampled")
    waiting = cause_of(seen_at(busy, "condition", "pthread_cond_timedwait"), ALONE)
    assert waiting.cause != "lock"


def test_one_word_where_all_wait_is_a_lock() -> None:
    locked = of([thread(0.3, futex=0.7)] * 4, 1250, words=[(270, 4), (90, 1)])
    said = cause_of(locked, ALONE)
    where = "96 % of that at one futex, where 4 threads wait"
    words = f"70 % of it blocked on futexes, {where}, at 0.97 × the CPU time"
    assert said._replace(parts=()) == Verdict("lock", words)


def test_words_of_their_own_are_a_lock_where_work_is_conserved() -> None:
    """A JVM parks each thread at a word of its own."""
    locked = of([thread(0.3, futex=0.7)] * 4, 1250, words=[(70, 1)] * 4)
    said = cause_of(locked, ALONE)
    assert said.cause == "lock" and "they wait for one another" in said.words
    assert "while 1.2 of 4 threads run" in said.words
    polls = of([thread(0.3, futex=0.5, poll=0.2)] * 4, 1250, words=[(50, 1)] * 4)
    said = cause_of(polls, ALONE)
    assert said.cause == "lock" and "while 1.2 of 4 threads run" in said.words, said


@pytest.mark.parametrize("words", [[(380, 4)], [(95, 1)] * 4])
def test_an_idle_pool_is_no_lock(words: list[tuple[int, int]]) -> None:
    """Whether its threads wait at one condition or each at a word of its own."""
    dispatcher = thread(0.02, sleep=0.98, name="pool", tid=100, switches=4000)
    pool = [*[thread(0.02, futex=0.98)] * 4, dispatcher]
    base = of([thread(0.08, futex=0.92), dispatcher])
    said = cause_of(of(pool, 1000, words=words), base)
    assert said.cause == "none" and "no work for them" in said.words


def test_an_idle_pool_is_idle_on_a_busy_machine_too() -> None:
    base = of([thread(0.08, futex=0.92)])
    assert cause_of(of([thread(0.005, futex=0.995)] * 16, 1000, foreign=0.9), base).cause == "none"


def test_a_pool_with_more_threads_than_work_is_no_lock() -> None:
    """1.6 of 8 threads have work: a thread hands it out and waits for events, not for workers."""
    dispatcher = thread(0.1, poll=0.9, name="acceptor", switches=9000)
    pool = [*[thread(0.2, futex=0.8)] * 8, dispatcher]
    said = cause_of(of(pool, 1600, words=[(640, 8)]), of([thread(0.99), dispatcher]))
    assert said.cause == "none" and "acceptor gives them theirs" in said.words


def test_a_lone_thread_that_waits_has_nobody_to_wait_for() -> None:
    """Work comes from elsewhere, and more of it to more threads."""
    pool = of([thread(0.3, futex=0.7)] * 4, 3000, words=[(280, 4)])
    assert cause_of(pool, of([thread(0.4, futex=0.6)])).cause == "none"


def level(number: float, threads: Sequence[Thread], wall: float = 1.0, **more: Any) -> Breakdown:
    """A cell of whole runs of so many workers, each of which is one operation."""
    rng = random.Random(1)
    accounts = []
    for _ in range(5):
        made = role(threads, None, wall=round(wall * WALL), noise=1 + 0.002 * rng.random(), **more)
        first = msgspec.structs.replace(made, pid=100)
        accounts.append(account(record(first), ALONE_ASKED, number))
    found = breakdown([each for each in accounts if each is not None])
    assert found is not None
    return found


def timed(cpu: float = 0.1, switches: int = 160) -> Thread:
    """A worker that waits at futexes, as a sleeping thread of a JVM does."""
    return thread(cpu, futex=1 - cpu, name="Thread-1", switches=switches)


LAUNCHER = thread(0.001, futex=0.999, name="java", tid=100, switches=2)


def test_a_pool_whose_holder_sleeps_is_a_lock() -> None:
    """All of them wait at futexes, but nobody could wake the lone one: it waits for a time."""
    base = level(1, [timed(), LAUNCHER])
    said = cause_of(level(2, [timed(0.05), timed(0.05), LAUNCHER]), base)
    assert said.cause == "lock" and "2.1 × as long for an operation" in said.words
    eight = level(8, [*[timed(0.02, 45)] * 8, LAUNCHER])
    assert cause_of(eight, base).cause == "lock"


def test_sleepers_that_do_not_wait_for_one_another_hold_no_lock() -> None:
    """However few of the CPUs they use: each waits as long for an operation as one alone."""
    base = level(1, [timed(), LAUNCHER])
    assert cause_of(level(2, [timed(switches=80)] * 2, wall=0.5), base).cause == "none"
    # A slow start is shared: they wait a little longer, no more often.
    late = level(2, [timed(0.05, 80), timed(0.05, 80), LAUNCHER])
    assert cause_of(late, base).cause == "none"


def test_of_a_jvm_a_pool_whose_holder_sleeps_is_not_told_apart_from_idle_threads() -> None:
    """Both wait at futexes for a time, as the threads of a scheduled pool do until their next task;
    no sample names a line of Java."""
    machine = thread(0.001, futex=0.999, name="VM Thread", switches=5)
    base = level(1, [timed(), machine, LAUNCHER])
    said = cause_of(level(2, [timed(0.05), timed(0.05), machine, LAUNCHER]), base)
    assert said.cause == "none" and "or for a lock whose holder sleeps" in said.words


def test_a_thread_that_waits_throughout_is_not_active_where_all_hardly_run() -> None:
    """The listener of a log has a tenth of what threads use that sleep; it waits for work."""
    listener = thread(0.0005, futex=0.9995, switches=4)
    sleeper = thread(0.004, sleep=0.996, switches=25)
    base = level(1, [sleeper, listener, LAUNCHER])
    own = level(8, [*[sleeper] * 8, listener, LAUNCHER])
    assert (base.threads, own.threads) == (1, 8)
    assert cause_of(own, base).cause == "none"
    # One that waits for a lock is woken again and again, or runs.
    assert level(2, [sleeper, {**listener, "switches": 6}, LAUNCHER]).threads == 1
    assert level(2, [sleeper, {**listener, "switches": 25}, LAUNCHER]).threads == 2
    assert level(2, [sleeper, {**listener, "cpu": 0.03, "futex": 0.97}, LAUNCHER]).threads == 2


def of_python(threads: Sequence[Thread], wall: float, *locks: str | None) -> Breakdown:
    """Threads of a process that an interpreter of Python runs; a waits there for each of the
    ``locks``, and four at a condition."""
    sites = [
        SiteRecord(
            primitive="mutex" if lock else "condition", call="futex", module="/app.py",
            offset=f"0x{number}", found="cfi", readings=4, threads=1,
            waiters=(ThreadReadings(100, 4),), runtime="cpython", lock=lock,
        )
        for number, lock in enumerate([None, *locks])
    ]  # fmt: skip
    made = role(threads, None, wall=round(wall * WALL))
    listed = SitesRecord(readings=4 * len(sites), listed=tuple(sites))
    found = account(record(msgspec.structs.replace(made, pid=100, sites=listed)), ALONE_ASKED, 2)
    assert found is not None
    cells = breakdown([found] * 5)
    assert cells is not None
    return cells


def test_python_s_threads_that_run_one_at_a_time_and_always_wait_for_its_lock() -> None:
    """Their first thread takes results meanwhile, and looks like one that has no work for them."""
    first = thread(0.1, queue=0.02, futex=0.88, tid=100, switches=150)
    base = level(1, [thread(0.88, futex=0.12, switches=120), first])
    half = thread(0.44, queue=0.02, futex=0.54, switches=130)
    said = cause_of(of_python([half, half, first], 1.0, "GIL"), base)
    assert said.cause == "lock" and "the GIL" in said.words
    # Who waits for work leaves the CPU; who does not hold it runs beside another.
    rare = thread(0.3, futex=0.7, switches=130)
    assert "GIL" not in cause_of(of_python([rare, rare, first], 1.0, "GIL"), base).words
    both = thread(0.7, futex=0.3, switches=130)
    assert "GIL" not in cause_of(of_python([both, both, first], 0.7, "GIL"), base).words
    # An interpreter that takes a third of the run to start has no thread for it meanwhile.
    late = [{**one, "lived": 0.7} for one in (half, half)]
    said = cause_of(of_python([*late, first], 1.0, "GIL"), base)
    assert said.cause == "lock" and "the GIL" in said.words
    # Native code that holds a lock of the program's own, and not the interpreter's.
    own = of_python([half, half, first], 1.0, "GIL", "app.lock", "app.lock")
    assert "GIL" not in cause_of(own, base).words
    assert "GIL" not in cause_of(of_python([half, half, first], 1.0), base).words


def test_a_pool_that_another_thread_feeds_is_no_lock_though_its_feeder_hardly_runs() -> None:
    feeder = thread(0.02, futex=0.98, name="java", tid=150, switches=250)
    base = level(1, [timed(), feeder, LAUNCHER])
    said = cause_of(level(2, [timed(0.05), timed(0.05), feeder, LAUNCHER]), base)
    assert said.cause == "none"
    starting = {**feeder, "switches": 60}  # what a JVM needs to begin is no feeding
    base = level(1, [timed(), starting, LAUNCHER])
    said = cause_of(level(2, [timed(0.05), timed(0.05), starting, LAUNCHER]), base)
    assert said.cause == "lock"


def test_threads_that_ask_for_tasks_again_and_again_wait_for_who_has_them() -> None:
    """They wait with a timeout, more often than there is a task."""
    feeder = thread(0.01, sleep=0.99, name="pool", tid=100, switches=40)
    asking = thread(0.02, futex=0.98, name="pool", switches=200)
    eight = [{**asking, "cpu": 0.0025, "futex": 0.9975}] * 8
    for beside in (feeder, {**feeder, "cpu": 0.0}):
        said = cause_of(level(8, [*eight, beside]), level(1, [asking, beside]))
        assert said.cause == "none"
    rare = {**feeder, "cpu": 0.0, "switches": 20}
    assert cause_of(level(2, [asking] * 2 + [rare]), level(1, [asking, rare])).cause == "lock"


def test_a_holder_that_sleeps_while_the_others_wait_at_futexes() -> None:
    """Even where it is nobody's turn for a tenth of the time, while one wakes."""
    first = thread(0.001, futex=0.999, tid=100, switches=2)
    base = level(1, [thread(0.06, sleep=0.94, switches=160), first])
    own = [thread(0.01, futex=0.9, sleep=0.09, switches=45)] * 8
    said = cause_of(level(8, [*own, first]), base)
    assert said.cause == "lock" and "8.4 × as long for an operation" in said.words


def test_of_a_jvm_a_lock_is_not_told_apart_from_uneven_rounds() -> None:
    machine = thread(0.001, futex=0.999, name="VM Thread", switches=5)
    base = of([thread(0.99, 0.01, switches=5), machine])
    waiting = [thread(0.7, futex=0.3, switches=600)] * 2
    said = cause_of(of([*waiting, machine], 1400), base)
    assert (said.cause, said.either) == ("lock", "imbalance")
    assert said.words.endswith("or for the slowest, at a barrier")
    # Those that never run together have no uneven rounds; elsewhere places tell.
    turns = [thread(0.5, futex=0.5, switches=600)] * 2
    assert cause_of(of([*turns, machine], 1000), base).either is None
    assert cause_of(of(waiting, 1400), ALONE).either is None


def test_of_a_pool_at_a_condition_a_lock_is_not_told_apart_from_too_little_work() -> None:
    """Now one of its threads has a task, now two: one always runs, as the holder of a lock does."""
    waiting = of([thread(0.7, futex=0.3, switches=600)] * 2, 1400)
    said = cause_of(seen_at(waiting, "condition", "pthread_cond_wait"), ALONE)
    assert (said.cause, said.either) == ("lock", "imbalance")
    assert said.words.endswith("at a condition")
    assert cause_of(seen_at(waiting, "mutex", "pthread_mutex_lock"), ALONE).either is None
    turns = of([thread(0.5, futex=0.5, switches=600)] * 2, 1000)
    assert cause_of(seen_at(turns, "condition", "pthread_cond_wait"), ALONE).either is None


def test_a_thread_that_is_busy_may_feed_the_others_though_it_never_waits() -> None:
    busy = thread(0.9, name="feeder", switches=9)
    assert level(2, [timed(), timed(), busy, LAUNCHER]).accounts[0].is_fed
    assert not level(2, [timed(), timed(), {**busy, "cpu": 0.2}, LAUNCHER]).accounts[0].is_fed


def trying(asleep: float, switches: int = 50, cpu: float | None = None) -> Thread:
    """A worker that sleeps before it tries again."""
    return thread(1 - asleep if cpu is None else cpu, sleep=asleep, switches=switches)


PARENT = thread(0.001, child=0.999, tid=100, switches=3)


def test_a_lock_that_is_tried_again_after_each_sleep_is_a_lock() -> None:
    base = level(1, [trying(0.0, 0), PARENT])
    said = cause_of(level(2, [trying(0.33), trying(0.33), PARENT], wall=0.75), base)
    assert said.cause == "lock" and "33 % of it asleep, as one worker alone is not" in said.words
    assert said.words.endswith("or for a rate that they share")


def test_sleeps_beside_waits_for_a_disk_are_those_of_a_lock_too() -> None:
    """Each commit of a database waits for the disk, with one writer as with two: switches do not
    tell how often a writer slept."""

    def writer(asleep: float, disk: float) -> Thread:
        return thread(0.25, sleep=asleep, disk=disk, switches=400)

    base = level(1, [writer(0.0, 0.75), PARENT])
    said = cause_of(level(2, [writer(0.5, 0.25)] * 2 + [PARENT], wall=0.95), base)
    assert said.cause == "lock" and "asleep, as one worker alone is not" in said.words
    few = cause_of(level(2, [writer(0.1, 0.65)] * 2 + [PARENT], wall=0.95), base)
    assert few.cause != "lock", "they wait for the disk"
    # One sleeps while the other one writes all of its rows, and then waits for the disk as long.
    own = [thread(0.18, sleep=0.36, disk=0.46, switches=400)] * 2
    said = cause_of(level(2, [*own, PARENT], wall=0.81), level(1, [writer(0.0, 0.75), PARENT]))
    assert said.cause == "lock"


@pytest.mark.parametrize(
    ("base", "own"),
    [
        pytest.param([trying(0.4, 50)], [trying(0.7)] * 2, id="one alone sleeps, too"),
        pytest.param([trying(0.0, 0)], [trying(0.33, 3)] * 2, id="it sleeps once"),
        pytest.param([trying(0.0, 0)], [trying(0.0, 0), trying(0.66)], id="uneven"),
        pytest.param(
            [trying(0.0, 0)],
            [trying(0.33), trying(0.33), thread(0.9, name="feeder", switches=9)],
            id="another thread gives them work",
        ),
    ],
)
def test_who_sleeps_for_want_of_work_waits_for_no_lock(
    base: list[Thread], own: list[Thread]
) -> None:
    said = cause_of(level(2, [*own, PARENT], wall=0.75), level(1, [*base, PARENT]))
    assert said.cause != "lock"


def test_a_first_thread_that_was_seen_in_joins_alone_gives_no_work() -> None:
    """It was switched while it loaded a program, as often as one that gives out work."""
    first = thread(0.05, futex=0.95, tid=100, switches=60)

    def two(primitive: str) -> Breakdown:
        waited = SiteRecord(
            primitive=primitive, call="futex", module="/app", offset="0x1", found="cfi",
            readings=30, threads=1, waiters=(ThreadReadings(100, 30),),
        )  # fmt: skip
        made = role([trying(0.33), trying(0.33), first], None, wall=round(0.75 * WALL))
        sites = SitesRecord(readings=30, listed=(waited,))
        found = account(record(msgspec.structs.replace(made, pid=100, sites=sites)), ALONE_ASKED, 2)
        assert found is not None
        cells = breakdown([found] * 5)
        assert cells is not None
        return cells

    assert not two("join").accounts[0].is_fed and two("condition").accounts[0].is_fed


def test_a_first_thread_that_ran_before_the_others_began_gives_them_no_work() -> None:
    """Half of a short trial is the start of an interpreter."""
    starting = thread(0.49, futex=0.51, tid=100, switches=12)

    def half(one: Thread) -> Thread:
        return {**one, "lived": 0.5}

    base = level(1, [half(trying(0.0, 0)), starting])
    said = cause_of(level(2, [half(trying(0.5)), half(trying(0.5)), starting]), base)
    assert said.cause == "lock"
    # One that runs beside them may.
    busy = {**starting, "cpu": 0.7, "futex": 0.3}
    assert level(2, [half(trying(0.5)), half(trying(0.5)), busy]).accounts[0].is_fed


def test_a_jvm_s_main_that_ran_before_its_threads_began_is_not_active() -> None:
    """It waits more often than a first thread that only starts others, and computes as much."""
    main = thread(0.1, futex=0.9, name="java", tid=150, switches=40)
    workers = [{**timed(0.1), "lived": 0.87}] * 2
    assert level(2, [*workers, main, LAUNCHER]).threads == 2
    first = thread(0.1, futex=0.9, tid=100, switches=25)
    assert level(2, [*workers, first]).threads == 2
    assert level(2, [*workers, {**first, "switches": 40}]).threads == 2
    beside = [{**timed(0.1), "lived": 0.99}] * 2
    assert level(2, [*beside, main, LAUNCHER]).threads == 3


def test_a_dispatcher_that_is_used_up_is_the_limit() -> None:
    dispatcher = thread(0.98, name="acceptor", switches=2000)
    pool = [*[thread(0.2, futex=0.8)] * 8, dispatcher]
    said = cause_of(of(pool, 1000, words=[(640, 8)]), of([thread(0.9, futex=0.1), dispatcher]))
    assert (said.cause, said.limit) == ("stage", "acceptor")
    assert "acceptor runs 98 % of the time" in said.words


@pytest.mark.parametrize(
    ("load", "cause"),
    [
        (thread(0.3, network=0.7), "lock"),
        (thread(0.97), "cpu"),  # used up, as all CPUs are with it: it sends no more
        (thread(0.1, sleep=0.9), "none"),  # thinks before it sends more
    ],
)
def test_a_lock_in_a_server_is_one_while_clients_wait(load: Thread, cause: str) -> None:
    dispatcher = thread(0.2, poll=0.8, name="acceptor", switches=9000)

    def made(workers: list[Thread], done: float, words: list[tuple[int, int]]) -> Breakdown:
        return cell(
            lambda noise: record(
                role([*workers, dispatcher], done, words=words, noise=noise),
                role([load], None, "load", noise=noise),
            ),
            asked=SERVED,
        )

    base = made([thread(0.99)], 1000, [])
    locked = made([thread(0.3, futex=0.7)] * 4, 1250, [(280, 4)])
    assert cause_of(locked, base, True).cause == cause


def fed(sites: SitesRecord | None = None) -> Breakdown:
    """Two workers of a pool that wait at futexes for a quarter of the time, beside a thread that
    hands out their tasks."""
    feeder = thread(0.1, pipe=0.9, name="feeder", switches=9000)
    made = role([*[thread(0.75, futex=0.25)] * 2, feeder], 1500, words=[(50, 2)])
    made = msgspec.structs.replace(made, sites=sites)
    return cell(lambda noise: record(msgspec.structs.replace(made, wall_ns=round(noise * WALL))))


def waited_at(operation: str, readings: int, primitive: str = "mutex") -> SitesRecord:
    listed = SiteRecord(
        primitive=primitive, call="futex", module="/usr/bin/python3", offset="0x1", found="cfi",
        readings=readings, threads=1, operation=operation, function="work", line=14,
    )  # fmt: skip
    return SitesRecord(readings=readings, listed=(listed,))


def test_threads_at_futexes_are_idle_only_where_that_is_shown() -> None:
    """Without a place nobody can tell a lock from a queue of tasks."""
    base = of([thread(0.99), thread(0.1, pipe=0.9, name="feeder", switches=9000)])
    said = cause_of(fed(), base)
    assert said.cause == "none"
    assert "threads wait for a lock or for work (feeder gives them theirs), not told apart" in (
        said.words
    )
    at_queue = cause_of(fed(waited_at("SimpleQueue.get", 2)), base)
    assert at_queue.cause == "none" and "no work for them, it seems" in at_queue.words


def test_a_place_that_another_cell_shows_to_be_a_lock_is_one_with_few_samples_too() -> None:
    base = of([thread(0.99), thread(0.1, pipe=0.9, name="feeder", switches=9000)])
    few = fed(waited_at("SemLock.__enter__", 1))
    few = few._replace(
        accounts=(*few.accounts[:2], *(it._replace(sites=None) for it in few.accounts[2:]))
    )
    assert "not told apart" in cause_of(few, base).words
    many = [waited_at("SemLock.__enter__", 9)]
    assert cause_of(few._replace(lock_places=lock_places(many)), base).cause == "lock"
    work = [waited_at("SimpleQueue.get", 9)]
    assert lock_places(work) == lock_places([waited_at("SemLock.__enter__", 1)]) == frozenset()


@pytest.mark.parametrize(
    ("at_lock", "elsewhere", "cause"),
    [(5, 0, "lock"), (4, 0, "none"), (4, 1, "none")],
)
def test_few_sampled_waits_show_a_lock_where_all_of_them_are_at_one(
    at_lock: int, elsewhere: int, cause: Cause
) -> None:
    """Of each short trial one wait is sampled: five of five are no chance."""
    base = of([thread(0.99), thread(0.1, pipe=0.9, name="feeder", switches=9000)])
    lock, queue = (waited_at(it, 1) for it in ("SemLock.__enter__", "SimpleQueue.get"))
    found = [*[lock] * at_lock, *[queue] * elsewhere, *[None] * 5]
    own = fed()
    accounts = (it._replace(sites=of) for it, of in zip(own.accounts, found, strict=False))
    assert cause_of(own._replace(accounts=tuple(accounts)), base).cause == cause


def test_a_small_part_is_no_cause_beside_a_greater_one_that_is_not_told_apart() -> None:
    """Two in a hundred waits at pipes are not the limit where a quarter is at futexes: of a pool
    whose workers may wait for a lock or for work."""
    feeder = thread(0.05, pipe=0.95, name="feeder", switches=9000)
    base = of([thread(0.99), feeder])
    own = of([*[thread(0.72, futex=0.25, pipe=0.03)] * 2, feeder], 1500, words=[(50, 2)])
    said = outweighed(Case(own, base, False), cause_of(own, base))
    assert "for a lock or for work" in said.words and said.either_way


def test_a_lock_behind_a_queue_that_is_full() -> None:
    dispatcher = thread(0.2, futex=0.8, name="reader", switches=9000)
    locked = of([*[thread(0.3, futex=0.7)] * 4, dispatcher], 1250, words=[(280, 4), (80, 1)])
    assert cause_of(locked, of([thread(0.99), dispatcher])).cause == "lock"


def test_a_lock_that_is_handed_over_leaves_the_cpus_idle() -> None:
    """Each turn waits for a wake-up of 30 µs: 0.5 threads run on the average."""
    handed = of([thread(0.25, futex=0.75, switches=20_000)] * 2, 20_000, words=[(75, 1)] * 2)
    base = of([thread(0.99)], 40_000)
    assert cause_of(handed, base).cause == "lock"
    # The same with few, long waits: timers, not a lock.
    timed = of([thread(0.25, futex=0.75, switches=20)] * 2, 20, words=[(75, 1)] * 2)
    assert cause_of(timed, of([thread(0.99)], 40)).cause == "none"


def test_cpu_time_that_grows_is_coherency() -> None:
    said = cause_of(of([thread(1.0)] * 2, 500), ALONE)
    assert said.cause == "coherency" and "4.0 × the CPU time" in said.words


def test_a_lone_thread_shares_no_data() -> None:
    """As a slower version of a program: nobody is there to share with."""
    said = cause_of(of([thread(0.99, 0.01, switches=5)], 500), ALONE)
    assert said.cause == "none" and "more work, or slower code" in said.words
    assert "share" not in said.words.replace("shares no data", "")


def test_a_lock_that_spins_is_a_lock() -> None:
    spinning = of([thread(0.8, futex=0.2)] * 2, 800, words=[(40, 2)])
    said = cause_of(spinning, ALONE)
    assert said.cause == "lock" and "whether they spin for it first was not sampled" in said.words
    # Waits at a common start are few.
    start = of([thread(0.8, futex=0.2, switches=6)] * 2, 800, words=[(40, 2)])
    assert cause_of(start, ALONE).cause == "coherency"


def test_a_lock_needs_less_of_a_loss_than_others() -> None:
    """One per cent of the time at a futex, again and again, is a lock; once, it is a start."""
    for waiting, switches, cause in (
        (0.01, 100, "lock"), (0.01, 6, "none"), (0.04, 6, "none"), (0.2, 6, "lock"),
    ):  # fmt: skip
        held = thread(1 - waiting, futex=waiting, switches=switches)
        cell = of([held] * 2, 2000 * (1 - waiting), words=[(2, 2)])
        assert cause_of(cell, ALONE).cause == cause


def test_the_disk() -> None:
    writer = [thread(0.3, disk=0.7)]
    assert cause_of(of(writer), None).cause == "io"
    assert cause_of(of(writer * 2, 1300), of(writer)).cause == "io"


def counted(
    threads: Sequence[Thread], operations: float, read: int | None, written: int | None, **more: Any
) -> Breakdown:
    """A cell whose role read and wrote so many blocks; ``calls`` are its readings by call."""
    calls = more.pop("calls", {})

    def make(noise: float) -> TrialRecord:
        made = role(threads, operations, noise=noise)
        usage = msgspec.structs.replace(made.usage, block_inputs=read, block_outputs=written)
        assert made.waits is not None
        waits = msgspec.structs.replace(made.waits, calls=calls)
        return record(msgspec.structs.replace(made, usage=usage, waits=waits))

    return cell(make)


def test_who_waits_for_a_file_without_a_block_waits_for_no_disk() -> None:
    """Writers of one file take turns at its lock; what they write stays in memory."""
    writers = [thread(0.4, disk=0.6)] * 2
    said = cause_of(counted(writers, 1000, 0, 0), ALONE)
    assert (said.cause, said.either) == ("io", "lock")
    assert "waiting for a file, or for its lock: no block was read or written" in said.words
    for read, written in ((0, 900), (900, 0), (None, 0), (0, None)):
        said = cause_of(counted(writers, 1000, read, written), ALONE)
        assert said.either is None and "blocked on the disk" in said.words
    lone = cause_of(counted([thread(0.4, disk=0.6)], 1000, 0, 0), None)
    assert (lone.cause, lone.either) == ("io", None)


def test_a_block_of_a_log_or_a_program_that_is_loaded_is_no_wait_for_the_disk() -> None:
    writers = [thread(0.4, disk=0.6)] * 2
    log = counted(writers, 1000, 0, 8)
    said = cause_of(log, ALONE)
    assert (said.cause, said.either) == ("io", "lock")
    assert "for its lock: hardly a block was read or written" in said.words
    first, *others = counted(writers, 1000, 0, 0).accounts
    cold = log._replace(accounts=(first._replace(blocks=9000.0), *others))
    assert cause_of(cold, ALONE).either == "lock"


@pytest.mark.parametrize(("switches", "written"), [(10, 8), (5, 2), (9000, 160)])
def test_few_blocks_are_waits_for_a_disk_that_is_slow_or_waited_for_by_many(
    switches: int, written: int
) -> None:
    """Each wait is long, or there are many of another kind beside those for the disk."""
    writers = [thread(0.4, disk=0.6, switches=switches)] * 2
    assert "blocked on the disk" in cause_of(counted(writers, 1000, 0, written), ALONE).words


def test_requests_to_io_uring_are_some_to_the_disk_where_there_are_any() -> None:
    """An event loop waits there for its sockets."""
    waiting = [thread(0.2, poll=0.8)]
    calls = {"io_uring_enter": 80}
    said = cause_of(counted(waiting, 1000, 0, 900, calls=calls), None)
    assert said.cause == "io" and "io_uring" in said.words
    assert cause_of(counted(waiting, 1000, 0, 0, calls=calls), None).cause == "none"
    assert cause_of(counted(waiting, 1000, 0, 8, calls=calls), None).cause == "none", "a log"
    assert cause_of(counted(waiting, 1000, 0, 900), None).cause == "none"
    few = {"io_uring_enter": 8}
    assert cause_of(counted(waiting, 1000, 0, 900, calls=few), None).cause == "none"


def test_the_client() -> None:
    def make(noise: float) -> TrialRecord:
        load = role([thread(0.97, name="load")], 500, "load", noise=noise)
        return record(role([thread(0.1, network=0.9)] * 2, None, noise=noise), load)

    slow = cell(make, asked=SERVED)
    said = cause_of(slow, None, True)
    assert said.cause == "client" and "the load's thread load runs 97 %" in said.words
    # Without clients of its own it is the network that a program waits for.
    assert cause_of(of([thread(0.1, network=0.9)]), None).cause == "io"


@pytest.mark.parametrize(
    ("cpu", "asleep", "foreign", "said", "either"),
    [
        (0.97, 0.0, 0.0, "the load's thread load runs 97 % of the time", None),
        (0.2, 0.8, 0.0, "sleeps between requests", None),
        (0.2, 0.0, 0.0, "it has CPU time left. What decides", "lock"),
        (0.2, 0.0, 0.5, "so it may have had no CPU. What decides", "lock"),
    ],
)
def test_a_server_may_wait_inside_as_it_waits_for_its_clients(
    cpu: float, asleep: float, foreign: float, said: str, either: str | None
) -> None:
    """PostgreSQL waits for a row as for a client; so more sessions are never advised."""

    def make(noise: float) -> TrialRecord:
        kinds = {"sleep": asleep} if asleep else {"poll": 1 - cpu}
        load = role([thread(cpu, name="load", **kinds)], 500, "load", noise=noise)
        server = role([thread(0.1, poll=0.9)] * 2, None, noise=noise)
        return record(server, load, foreign=foreign)

    served = cell(make, asked=SERVED)
    found = cause_of(served, None, True)
    assert (found.cause, found.either) == ("client", either)
    assert said in found.words and "would ask for more" not in found.words
    assert (". The client used 0.2 CPUs, its busiest thread" in found.words) == (either is not None)
    lone = served._replace(accounts=tuple(it._replace(level=1) for it in served.accounts))
    assert cause_of(lone, None, True).either is None


@pytest.mark.parametrize("foreign", [0.0, 0.3])
def test_a_client_that_is_hardly_busy_beside_a_server_that_works_is_not_accused(
    foreign: float,
) -> None:
    """As one with 10 % of a CPU under PostgreSQL, whose sessions wait for a row as for a client.
    Beside a server that does nothing either, it may think between requests."""

    def found(busy: float) -> Verdict:
        def make(noise: float) -> TrialRecord:
            load = role([thread(0.1, name="load", poll=0.9)], 500, "load", noise=noise)
            server = role([thread(busy, poll=1 - busy)] * 2, None, noise=noise)
            return record(server, load, foreign=foreign)

        return cause_of(cell(make, asked=SERVED), None, True)

    at_work = found(0.4)
    assert (at_work.cause, at_work.either) == ("none", None)
    assert at_work.either_way == "waiting for the client or for locks"
    assert "What decides: its rate with more sessions" in at_work.words
    idle = found(0.1)
    assert (idle.cause, idle.either) == ("client", "lock")


def test_a_client_of_which_one_thread_waits_for_the_end_does_not_sleep() -> None:
    """wrk's first thread sleeps for as long as its load takes."""

    def make(noise: float) -> TrialRecord:
        load = [thread(0.4, 0.55, poll=0.05, name="wrk"), thread(0.0, sleep=1.0, name="wrk")]
        server = role([thread(0.3, 0.1, poll=0.6)], None, noise=noise)
        return record(server, role(load, 500, "load", noise=noise))

    assert "sleeps between requests" not in cause_of(cell(make, asked=SERVED), None, True).words


def test_a_server_that_hardly_works_beside_its_client_may_be_the_wrong_one() -> None:
    for cpu, is_told in ((0.001, True), (0.2, False)):

        def make(noise: float, cpu: float = cpu) -> TrialRecord:
            load = role([thread(0.2, name="load", poll=0.8)], 500, "load", noise=noise)
            return record(role([thread(cpu, poll=1 - cpu)], None, noise=noise), load)

        said = cause_of(cell(make, asked=SERVED), None, True).words
        assert ("check that the client asks this server" in said) == is_told


def test_a_server_that_used_no_cpu_time_did_not_answer() -> None:
    def make(cpu: float) -> Breakdown:
        load = role([thread(0.5, name="load")], 500, "load")
        server = role([thread(cpu, poll=1 - cpu)], None)
        return cell(lambda _: record(server, load), asked=SERVED)

    assert did_not_answer(make(0.0)) and not did_not_answer(make(0.01))


def test_a_program_without_a_bottleneck_is_not_accused() -> None:
    for threads in ([thread(0.99, 0.01)] * 2, [thread(0.985, 0.01, futex=0.005)] * 2):
        said = cause_of(of(threads, 2000), ALONE)
        assert said.cause == "none"
    assert cause_of(ALONE, None) == Verdict("none", "99 % of it on a CPU")


def test_sleepers_and_parents_are_not_accused() -> None:
    for kind in ("sleep", "child", "other", "poll"):
        sleeper = thread(0.01) | {kind: 0.99}
        assert cause_of(of([sleeper] * 4, 4), of([sleeper], 4)).cause == "none"


def test_an_excess_needs_an_interval_without_zero_and_some_size() -> None:
    rng = random.Random(2)
    noisy = cell(lambda _: record(role([thread(0.99)], 1000 * rng.uniform(0.5, 1.4))))
    assert cause_of(noisy, ALONE).cause == "none"
    assert cause_of(of([thread(1.0)], 970), ALONE).cause == "none"  # 3 % more CPU time
    assert cause_of(of([thread(1.0)] * 2, 500, trials=1), ALONE).cause == "none"


# -- whose time it is -------------------------------------------------------------------------


def test_parts_sum_to_the_time_of_the_active_threads() -> None:
    join = thread(0.0001, futex=0.99, name="main", tid=100, switches=3)
    found = only(record(role([thread(0.5, 0.2, futex=0.3), thread(0.4, 0.3, futex=0.3), join])))
    assert found.threads == 2 and found.idle == 1
    assert found.thread_ns == 2 * WALL
    assert found.cpu_ns + (found.run_queue_ns or 0) + found.blocked_ns == found.thread_ns
    assert found.readings["futex"] == 60 and not found.dispatcher


def test_a_jvm_s_own_threads_do_no_operations() -> None:
    service = [thread(0.5, name=name) for name in ("C2 CompilerThre", "G1 Conc#0", "VM Thread")]
    found = only(record(role([thread(1.0, name="Thread-0"), *service])))
    assert (found.threads, found.idle) == (1, 3)


def test_threads_that_ended_early_count_for_their_lives() -> None:
    found = only(record(role([thread(1.0), thread(1.0, lived=0.5)])))
    assert found.thread_ns == 1.5 * WALL and found.blocked_ns == 0


def test_threads_that_outlive_the_measured_phase_count_inside_it_only() -> None:
    longer = role([thread(0.9, lived=2.0)] * 2, phase=True)
    phase = msgspec.structs.replace(
        longer.phases[0], usage=Usage(cpu_ns=WALL, run_queue_ns=WALL // 2)
    )
    found = only(record(msgspec.structs.replace(longer, phases=(phase,))))
    assert (found.thread_ns, found.cpu_ns, found.blocked_ns) == (2 * WALL, WALL, WALL // 2)


def test_a_thread_that_sets_up_and_waits_for_the_end_is_a_bystander() -> None:
    """Its CPU time and its waits came before the measured phase."""
    main = thread(0.4, 0.1, disk=0.5, name="main", tid=100, lived=1.5, switches=500)
    made = role([thread(0.9, 0.1)] * 2 + [main], phase=True)
    usage = Usage(cpu_ns=round(1.8 * WALL), run_queue_ns=round(0.2 * WALL))
    phase = msgspec.structs.replace(made.phases[0], usage=usage)
    found = only(record(msgspec.structs.replace(made, phases=(phase,))))
    assert (found.threads, found.thread_ns, found.blocked_ns) == (2, 2 * WALL, 0)
    # Its share of the phase makes it one of those who work.
    phase = msgspec.structs.replace(phase, usage=Usage(cpu_ns=round(2.2 * WALL), run_queue_ns=0))
    assert only(record(msgspec.structs.replace(made, phases=(phase,)))).threads == 3


def test_workers_that_outlive_the_phase_explain_it_in_part() -> None:
    """As in a JVM whose first computation is not measured: its main thread did the start."""
    for count in (1, 2):
        workers = [thread(0.9, lived=1.6, name="Thread-1")] * count
        main = thread(0.15, lived=1.8, name="java", switches=60)
        made = role([main, *workers], phase=True)
        usage = Usage(cpu_ns=round(0.95 * count * WALL), run_queue_ns=0)
        phase = msgspec.structs.replace(made.phases[0], usage=usage)
        found = only(record(msgspec.structs.replace(made, phases=(phase,))))
        assert (found.threads, found.thread_ns) == (
            count,
            count * WALL,
        ) and found.dispatcher is None


def test_a_main_thread_that_works_like_the_others_is_none_of_the_bystanders() -> None:
    workers = [thread(0.9, name="omp")] * 15 + [thread(0.9, name="omp", tid=100, lived=1.05)]
    made = role(workers, phase=True)
    usage = Usage(cpu_ns=round(16 * 0.9 * WALL), run_queue_ns=0)
    phase = msgspec.structs.replace(made.phases[0], usage=usage)
    assert only(record(msgspec.structs.replace(made, phases=(phase,)))).threads == 16


def test_a_first_thread_that_waits_in_a_join_is_not_active() -> None:
    """Throttled threads get little CPU time, and starting them took some, too."""
    worker = thread(0.01, 0.99, switches=20)

    def first(switches: int) -> Thread:
        return thread(0.002, 0.1, futex=0.898, name="main", tid=100, switches=switches)

    assert only(record(role([worker, first(3)]))).threads == 1
    # One that waits again and again does part of the work.
    assert only(record(role([worker, first(40)]))).threads == 2


def test_a_starving_thread_is_active() -> None:
    found = only(record(role([thread(0.95, 0.05), thread(0.01, 0.99), thread(0.001, 0.1)])))
    assert found.threads == 2
    # A command that a script calls first waits for a CPU, too, and does none of the work.
    short = thread(0.2, 0.8, name="sh", lived=0.02)
    assert only(record(role([thread(0.95, 0.05), *[short] * 3]))).threads == 1


def test_a_thread_that_waits_for_requests_to_a_disk_is_not_active() -> None:
    """A thread of a database takes what has been read or written, of which there is hardly any: it
    waits for the disk all the time, and those that answer do not."""
    answering = thread(0.2, futex=0.8, switches=2500)
    waiting = thread(0.002, disk=0.998, name="io", switches=20)
    found = only(record(role([*[answering] * 4, waiting])))
    assert found.threads == 4 and found.readings["disk"] == 0
    # One that is woken often, or waits as long as a request takes, has the disk work for it.
    for busy in ({**waiting, "switches": 60}, thread(0.01, disk=0.99, switches=20)):
        assert only(record(role([*[answering] * 4, busy]))).readings["disk"] > 0


def test_a_starving_thread_of_another_kind_is_no_worker() -> None:
    """The handlers of a pool are ready for long where others have the CPUs."""
    workers = [thread(0.5, 0.5, name="python3", tid=n, pid=n) for n in (200, 201)]
    handlers = [thread(0.004, 0.6, name="python3", tid=n, pid=100) for n in (101, 102, 103)]
    parent = thread(0.02, child=0.9, name="python3", tid=100, pid=100, switches=9)
    assert only(record(role([*workers, *handlers, parent]))).threads == 2


def test_processes_count_like_threads() -> None:
    workers = [thread(0.5, 0.5, name="fork", tid=n, pid=n) for n in range(200, 208)]
    parent = thread(0.001, child=0.99, name="fork", tid=100, switches=9)
    said = cause_of(of([*workers, parent], 4000), ALONE)
    assert said.cause == "cpu" and "8 threads on 2 CPUs" in said.words


def test_threads_that_are_not_listed_are_counted() -> None:
    full = role([thread(0.02, 0.98)] * 4, 1000)
    threads = msgspec.structs.replace(full.threads, total=100, peak=100)
    usage = Usage(cpu_ns=2 * WALL, run_queue_ns=98 * WALL)
    found = only(record(msgspec.structs.replace(full, threads=threads, usage=usage)))
    assert found.threads == 100 and found.thread_ns == 100 * WALL


# -- what is missing --------------------------------------------------------------------------


def test_without_samples_what_blocks_is_not_named() -> None:
    blind = of([thread(0.3)] * 4, 1250, sampled=False)
    said = cause_of(blind, of([thread(0.99)], sampled=False))
    assert said.cause == "none" and "for an unknown reason" in said.words
    assert blind.missing["waits"] == "kernel says no"
    assert not blind.sampled and "futex" not in blind.columns


def test_a_base_that_hardly_waits_needs_no_samples_of_it() -> None:
    """What the cell waits for more is known from the cell's own samples."""
    held = [thread(0.5, futex=0.5, switches=400)] * 2
    few = cell(lambda _: record(role([thread(0.95, futex=0.05, readings=5)], 1000)), 4)
    many = cell(lambda _: record(role(held, 1000, words=[(100, 2, 0)])), 4)
    assert not few.enough_samples and cause_of(many, few).cause == "lock"


def test_few_samples_do_not_name_what_blocks() -> None:
    few = [thread(0.3, futex=0.5, disk=0.2, readings=5)] * 4
    said = cause_of(of(few, 1250, trials=1), ALONE)
    assert said.cause == "none" and "too few" in cause_of(of(few, 1250, trials=1), None).words
    assert cause_of(of(few, 1250, trials=5), ALONE).cause == "lock"
    clear = [thread(0.3, disk=0.7, readings=9)]
    assert cause_of(of(clear, trials=1), None).cause == "io"  # six of six


def test_a_lesser_part_is_no_cause_beside_a_greater_one_that_is_not_known() -> None:
    blind = of([thread(0.6)] * 2, 1000, sampled=False)  # 0.2 more on a CPU, 0.8 more blocked
    said = cause_of(blind, of([thread(0.99)], sampled=False))
    assert said.cause == "none" and "for an unknown reason" in said.words


def test_kernel_threads_that_write_for_a_program_are_no_contamination() -> None:
    """They count as others: 10 % of the machine here."""
    queued = of([thread(0.25, 0.2, disk=0.55)] * 2, 1500, foreign=0.1)
    assert cause_of(queued, of([thread(0.35, disk=0.65)])).cause == "io"


def test_a_cell_without_a_clear_excess_is_named_by_what_most_of_its_time_goes_to() -> None:
    writer = thread(0.3, disk=0.7)
    queued = of([thread(0.2, 0.2, disk=0.6)] * 2, 2000)
    said = cause_of(queued, of([writer]))
    assert said.cause == "io" and "60 % of it blocked on the disk" in said.words


def test_a_loss_that_no_part_explains_on_a_disturbed_machine_is_contamination() -> None:
    rng = random.Random(3)

    def noisy(_: float) -> TrialRecord:
        queue = rng.uniform(0.02, 0.6)
        return record(role([thread(1 - queue, queue)] * 2, 2000 * (1 - queue)), foreign=0.1)

    assert cause_of(cell(noisy), ALONE).cause == "contamination"


def test_without_run_queue_time_samples_stand_in() -> None:
    rough = of([thread(0.5, 0.5, other=0.01)] * 4, 2000, queue_absent="no privilege")
    assert rough.missing["run_queue"] == "no privilege; it is estimated from samples"
    assert rough.share("run_queue") == pytest.approx(0.49, abs=0.02)
    assert cause_of(rough, ALONE).cause == "cpu"


def test_with_neither_what_is_no_cpu_time_is_one_part() -> None:
    blind = of([thread(0.5, 0.5)] * 4, 2000, queue_absent="no privilege", sampled=False)
    assert "run_queue" not in blind.columns and blind.share("blocked") == pytest.approx(0.5)
    assert cause_of(blind, ALONE).cause == "none"


def worked(seconds: Sequence[float], threads: Sequence[Thread]) -> RoleRecord:
    """Workers outlive their measured phase and report how long each of them worked in it."""
    made = role(threads, phase=True)
    lines = tuple(
        IndicatorLine("worker_compute_seconds", value, "s", f"worker-{n}")
        for n, value in enumerate(seconds)
    )
    return msgspec.structs.replace(made, indicators=made.indicators + lines)


def test_workers_that_say_when_they_were_done_wait_for_nothing_afterwards() -> None:
    """Eight of them took turns on two CPUs; at the gate before, and when they are done, they have
    nothing to do: that is no lock."""
    workers = [thread(0.08, 0.1, lived=3.0, futex=0.8)] * 8
    found = only(record(worked([0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1.0, 1.0], workers)))
    assert (found.threads, found.thread_ns, found.idle) == (8, 5e9, 0)
    assert found.cpu_ns + (found.run_queue_ns or 0) + found.blocked_ns == pytest.approx(5e9)
    silent = only(record(role(workers, phase=True)))
    assert silent.thread_ns == 8e9, "without that, all of the phase counts"


def test_workers_that_are_no_kernel_threads_say_nothing_of_these() -> None:
    found = only(record(worked([1.0] * 300, [thread(0.9, lived=3.0)] * 2)))
    assert found.threads == 2


def test_a_thread_that_deals_out_work_runs_no_more_than_all_the_time() -> None:
    """Its CPU time is that of its life, which is longer than the measured phase."""
    first = thread(0.9, name="main", tid=100, lived=3.0, switches=3000)
    workers = [thread(0.3, futex=0.7, lived=3.0, name=f"worker-{n}") for n in (1, 2)]
    listed = role([first, *workers]).threads.listed
    found = dispatcher_of(listed, [], listed[1:], WALL)
    assert found is not None and found.ran == pytest.approx(0.9)


def test_what_others_took_is_not_known_where_nobody_says() -> None:
    """Not 0: a machine without these counters may be as busy as any."""
    made = record(role([thread(0.7, 0.3)] * 2, 1400))
    machine = MachineRecord(cpus=2, absent={"steal_ns": "/proc/stat has no such column"})
    found = only(msgspec.structs.replace(made, machine=machine))
    assert found.missing["steal"] == "/proc/stat has no such column"
    assert found.missing["foreign_cpu"] == "the runner gave no reason"
    assert not {"steal", "foreign_cpu"} & only(made).missing.keys()


def test_no_operations_no_picture() -> None:
    assert breakdown([only(record(role([thread(1.0)], 0.0)))]) is None


def test_a_run_that_reports_no_operations_is_one() -> None:
    found = only(record(role([thread(1.0)], None)))
    assert (found.operations, found.counted) == (1.0, "run")


def test_operations_that_the_clients_report_are_summed() -> None:
    loads = [role([thread(0.1)], 50.0, f"load-{n}") for n in (1, 2)]
    found = account(record(role([thread(0.5)], None), *loads), SERVED)
    assert found is not None and (found.operations, found.counted) == (100.0, "reported")


def test_processes_that_ask_one_another_through_sockets_wait_for_no_other_machine() -> None:
    """In the base one asks and one answers, so one of the two always runs."""
    asks, answers = thread(0.4, network=0.6), thread(0.48, network=0.52)
    base = level(1, [asks, answers])
    said = cause_of(base, None)
    assert said.cause == "none" and "one another, through sockets" in said.words
    beside = level(2, [{**asks, "cpu": 0.2, "network": 0.8}] * 2 + [answers])
    assert "one another, through sockets" in cause_of(beside, base).words
    waits = level(1, [thread(0.2, network=0.8), thread(0.2, network=0.8)])
    assert cause_of(waits, None).cause == "io"
    # Eight that wait for another machine are ready for as long together.
    crowd = level(8, [thread(0.11, network=0.89)] * 8)
    assert cause_of(crowd, None).cause == "io"


def test_cpus_limit_nothing_where_workers_fit_them_and_lose_nothing() -> None:
    """Helpers make more threads ready than there are CPUs; the work still scales, or better."""
    helper = thread(0.3, pipe=0.7, name="helper", switches=900)
    base = level(1, [thread(0.55, pipe=0.45, switches=900), helper])
    busy = thread(0.65, 0.35, switches=20)
    own = level(2, [busy, busy, {**helper, "queue": 0.1}, {**helper, "queue": 0.1}], wall=0.45)
    assert own.threads == 4 and cause_of(own, base).cause == "none"
    # More workers than CPUs are limited by these, though as much is done as can be.
    many = level(4, [thread(0.5, 0.5, switches=20)] * 4, wall=0.5)
    assert cause_of(many, level(1, [thread(0.99, 0.01, switches=2)])).cause == "cpu"


def test_what_is_above_all_of_the_base_in_each_trial_is_no_chance() -> None:
    """A line of a cache costs twice or five times as much, as its CPUs are near or far."""
    base = level(1, [thread(0.99, 0.01, switches=2)])

    def by_turns(*walls: float) -> Breakdown:
        busy = thread(0.99, 0.01, switches=2)
        found = [
            account(record(role([busy, busy], None, wall=round(it * WALL))), ALONE_ASKED, 2)
            for it in walls
        ]
        made = breakdown([each for each in found if each is not None])
        assert made is not None
        return made

    assert cause_of(by_turns(2.5, 1.0, 2.5, 1.0), base).cause == "coherency"
    assert cause_of(by_turns(2.5, 1.0, 1.0), base).cause == "none"  # too few to say so
    assert cause_of(by_turns(2.5, 0.4, 2.5, 0.4), base).cause == "none"


def test_a_compiler_of_a_jvm_that_runs_beside_the_workers_is_no_quota() -> None:
    """Three threads run for a part of the time, on two CPUs."""
    machine = thread(0.001, futex=0.999, name="VM Thread", switches=5)
    compiler = thread(0.1, futex=0.9, name="C2 CompilerThre", switches=70)
    base = level(1, [thread(0.98, 0.02, switches=3), machine, compiler, LAUNCHER])
    busy = thread(0.78, 0.22, switches=6)
    own = level(2, [busy, busy, machine, compiler, LAUNCHER], wall=0.64)
    assert cause_of(own, base).cause != "quota"


def parked(*callers: str) -> SiteRecord:
    """Where a thread of a JVM is parked."""
    return SiteRecord(
        primitive="condition", call="futex", module="/jvm/libjvm.so", offset="0x1", found="cfi",
        readings=3, threads=1, waiters=(ThreadReadings(101, 3),), callers=callers,
        function="os::PlatformEvent::park(long)" if "JVM_Sleep" in callers else "Parker::park()",
    )  # fmt: skip


def test_a_thread_of_a_jvm_that_was_seen_asleep_holds_what_the_others_wait_for() -> None:
    """In a scheduled pool nobody sleeps: its threads are parked until their time."""
    machine = thread(0.001, futex=0.999, name="VM Thread", switches=5)
    base = level(1, [timed(), machine, LAUNCHER])
    own = level(2, [timed(0.05), timed(0.05), machine, LAUNCHER])

    def at(*sites: SiteRecord) -> Breakdown:
        seen = SitesRecord(readings=6, listed=sites)
        accounts = tuple(it._replace(sites=seen) for it in own.accounts)
        return own._replace(accounts=accounts)

    asleep = parked("JavaThread::sleep(long)", "JVM_Sleep")
    assert cause_of(at(parked("Unsafe_Park"), asleep), base).cause == "lock"
    assert cause_of(at(parked("Unsafe_Park"), parked("Unsafe_Park")), base).cause == "none"


def test_what_others_took_counts_for_the_part_of_a_trial_that_is_measured() -> None:
    """A phase of a tenth of the trial cannot have lost what they took in all of it."""
    threads = [thread(0.4, 0.6)]
    for phase, share in ((1.0, 1.0), (0.1, 0.1)):
        made = record(role(threads, 1000, phase=True), foreign=0.2)
        first = made.roles[0]
        inner = tuple(
            msgspec.structs.replace(it, wall_ns=round(phase * it.wall_ns)) for it in first.phases
        )
        changed = msgspec.structs.replace(first, phases=inner)
        found = only(msgspec.structs.replace(made, roles=(changed,)))
        assert found.foreign_ns == pytest.approx(share * 0.4 * WALL)
        assert found.machine_ns == pytest.approx(share * 2 * WALL)
