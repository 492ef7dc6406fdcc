"""Go programs: threads of the runtime accuse nobody, goroutines do."""

from __future__ import annotations

from typing import Any

import pytest

from concurve.explain.breakdown import Breakdown
from concurve.explain.causes import cause_of
from concurve.explain.explanation import _stacks
from concurve.explain.lock_ceiling import waits_in_go
from concurve.explain.sentences import lock_allows
from concurve.explain.sites import sites_of
from concurve.explain.verdict import Case
from concurve.store import Store
from concurve.wire.record import Runtime, SiteRecord, SitesRecord
from tests.explain.test_losses import FIRST, cell, lost, worker
from tests.helpers.explaining import Thread, thread
from tests.helpers.made import made_run


def runtime(running: float, collecting: float = 0.0, **waiting: float) -> Runtime:
    """Means of 100 readings; the reasons of waits by short names, and ``calls`` of the system."""
    reasons = {
        "lock": "sync.Mutex.Lock", "send": "chan send", "receive": "chan receive",
        "group": "sync.WaitGroup.Wait", "marking": "GC worker (active)", "idle": "GC worker (idle)",
        "io": "IO wait",
    }  # fmt: skip
    calls = round(100 * waiting.pop("calls", 0.0))
    counts = {reasons[name]: round(100 * number) for name, number in waiting.items()}
    return Runtime(
        "go", readings=100, collecting=round(100 * collecting), running=round(100 * running),
        waiting=counts, in_calls=calls,
    )  # fmt: skip


def threads(*cpu: float) -> list[Thread]:
    """Threads on which goroutines run, the first one of the program among them; each waits at a
    futex when it has none."""
    started = [worker(share, futex=0.99 - share, switches=400) for share in cpu[1:]]
    first = thread(cpu[0], futex=0.99 - cpu[0], name="program", tid=FIRST, switches=400)
    watching = worker(0.01, switches=3000, sleep=0.98)
    return [first, *started, watching]


def go(level: int, cpu: tuple[float, ...], wall: float = 1.0, **more: Any) -> Breakdown:
    return cell(level, threads(*cpu), wall=wall, **more)


BASE = go(1, (0.6, 0.4), runtime=runtime(1.0, group=1))


def test_goroutines_that_fight_for_a_mutex_are_a_lock() -> None:
    own = go(2, (0.8, 0.8), wall=1.1, runtime=runtime(1.4, lock=0.6, group=1))
    said = cause_of(own, BASE)
    assert said.cause == "lock" and "0.6 goroutines wait for a sync.Mutex" in said.words


@pytest.mark.parametrize(
    ("waiting", "at", "is_told"),
    [(12.6, [60], True), (12.6, [40, 30], False), (12.6, [1], False), (1.4, [60], False)],
)
def test_more_processors_gain_nothing_where_a_mutex_is_hardly_ever_free(
    waiting: float, at: list[int], is_told: bool
) -> None:
    """Sixteen requests of which twelve wait at one place; not at two, or by few samples."""
    sites = mutexes(*at)
    own = go(2, (0.8, 0.8), wall=1.1, runtime=runtime(1.4, lock=waiting), sites=sites)
    found = cause_of(own, BASE)
    assert found.cause == "lock"
    case = Case(own, BASE, True)
    assert (waits_in_go(case, found) > 0) is is_told
    made = made_run(Store(), lambda n: 1.0, threads=(1, 2))
    said = lock_allows(made.cells[0], made.cells[1], case, found)
    assert said.endswith("on the average: more threads gain next to nothing.") is is_told
    seems = lock_allows(made.cells[0], made.cells[1], case, found, in_doubt=True)
    assert ("it seems to be nearly always taken" in seems) is is_told
    assert seems.endswith("more threads seem to gain next to nothing.") is is_told
    assert waits_in_go(Case(own, None, True), found) == 0, "a base is compared with nothing"


def mutexes(*readings: int, primitive: str = "mutex") -> SitesRecord:
    """Waits at places in the lines 1, 2 and so on."""
    listed = tuple(
        SiteRecord(
            primitive=primitive, call="sync.Mutex.Lock", module="/srv", offset="0x1", found="cfi",
            readings=seen, threads=4, function="main.work", operation="sync.(*Mutex).Lock", line=at,
        )
        for at, seen in enumerate(readings, 1)
    )  # fmt: skip
    return SitesRecord(readings=sum(readings), listed=listed)


def test_blocked_time_of_a_go_program_without_locks_is_not_drawn_as_locks() -> None:
    """Its threads wait in the runtime, and so do goroutines that it holds up to collect."""
    for primitive, root in (("other", "in Go's runtime"), ("mutex", "locks")):
        made = mutexes(30, primitive=primitive)
        waits = [worker(0.5, futex=0.5)] * 2
        own = cell(2, waits, runtime=runtime(1.0, calls=2.0), sites=made)
        roots = {stack.frames[0] for stack in _stacks(own, sites_of([made]))}
        assert root in roots and len(roots & {"in Go's runtime", "locks"}) == 1


@pytest.mark.parametrize("level", [1, 2])
def test_one_goroutine_on_two_threads_waits_for_nobody(level: int) -> None:
    """The runtime moves it; the thread that it left waits at a futex."""
    own = go(level, (0.5, 0.5), runtime=runtime(1.0, group=1))
    assert cause_of(own, None).cause == "none"
    assert cause_of(own, BASE).cause == ("none" if level == 1 else "serial")


def test_who_sends_to_a_full_channel_waits_for_the_stage_that_receives() -> None:
    base = go(1, (0.8, 0.8), runtime=runtime(1.6, send=0.4))
    own = go(2, (0.8, 0.8), runtime=runtime(1.6, send=1.4))
    said = cause_of(own, base)
    assert said.cause == "stage"
    other = go(2, (0.8, 0.8), wall=1.3, runtime=runtime(1.6, send=1.4))
    said = cause_of(other, BASE)
    assert said.cause == "stage" and "send to a channel" in said.words


def test_a_channel_with_one_place_is_a_lock() -> None:
    """Who sends takes the place, and receives what was sent: no other goroutine works."""
    own = go(2, (0.7, 0.7), wall=1.1, runtime=runtime(1.3, send=0.7, group=1))
    said = cause_of(own, BASE)
    assert said.cause == "lock" and "used as a lock" in said.words
    # What receives forces each item to the disk.
    forcing = go(2, (0.7, 0.7), wall=1.1, runtime=runtime(0.6, send=1.4, group=1, io=1.0))
    assert cause_of(forcing, BASE).cause == "stage"
    # A producer and a consumer, of which the first waits in the base, too.
    base = go(1, (0.6, 0.4), runtime=runtime(1.0, send=1.0, group=1))
    assert cause_of(own, base).cause == "stage"


def test_a_collector_that_had_the_other_cpu_for_itself() -> None:
    """It takes 0.6 of a CPU: beside one worker it costs nothing, beside two it does."""
    base = go(1, (0.8, 0.8), runtime=runtime(1.0, 0.8, marking=0.6, group=1))
    own = go(2, (0.99, 0.99), wall=0.8, runtime=runtime(1.3, 0.9, marking=0.75, group=1))
    said = cause_of(own, base)
    assert said.cause == "collector" and "marked 90 % of the time" in said.words
    assert lost(own, base).parts["collector"] > 0.5


def test_goroutines_of_uneven_work_are_an_imbalance_on_whichever_threads_they_run() -> None:
    own = go(2, (0.7, 0.73), wall=0.7, runtime=runtime(1.43, group=1))
    assert cause_of(own, BASE).cause == "imbalance"
    waiting = go(2, (0.7, 0.73), wall=0.7, runtime=runtime(1.43, group=1, receive=1.5))
    assert lost(waiting, BASE).parts["imbalance"] < 0.1


def test_goroutines_that_scale_are_not_accused() -> None:
    own = go(2, (0.99, 0.99), wall=0.5, runtime=runtime(2.0, group=1))
    assert cause_of(own, BASE).cause == "none"


@pytest.mark.parametrize("absent", [False, True])
def test_how_many_threads_the_runtime_keeps_changes_nothing(absent: bool) -> None:
    """The same work on two threads, or by turns on eight that wait for a goroutine in between."""
    more: dict[str, Any] = {"runtime": runtime(1.4, group=1)}
    if absent:
        more = {"absent": {"runtime": "it was stripped"}}
    few = go(2, (0.7, 0.7), wall=0.9, **more)
    many = go(2, (0.175,) * 8, wall=0.9, **more)
    for name in ("total", "blocked", "futex", "sleep", "cpu"):
        assert many.mean(name) == pytest.approx(
            few.mean(name), rel=0.03, abs=0.01 * few.mean("cpu")
        )
    assert few.mean("futex") == 0 and few.mean("total") == pytest.approx(few.mean("cpu"), rel=0.05)
    of_few, of_many = lost(few, BASE), lost(many, BASE)
    assert of_many.speedup == pytest.approx(of_few.speedup)
    assert of_many.parts == pytest.approx(of_few.parts, abs=0.02)
    assert cause_of(many, BASE).cause == cause_of(few, BASE).cause


def test_a_goroutine_in_a_call_keeps_its_thread() -> None:
    """C that it calls waits at a futex: that is no idle thread."""
    called = go(2, (0.7, 0.3), runtime=runtime(1.0, calls=0.5))
    idle = go(2, (0.7, 0.3), runtime=runtime(1.0))
    assert idle.share("futex") == 0
    assert called.mean("futex") == pytest.approx(0.5 * called.per_operation("wall_ns"), rel=0.05)


def test_a_go_program_without_symbols_accuses_no_lock_and_says_what_is_missing() -> None:
    def made(level: int, wall: float) -> Breakdown:
        return go(level, (0.5, 0.5), wall=wall, absent={"runtime": "it was stripped"})

    own = made(2, 1.3)
    assert own.missing["runtime"] == "it was stripped"
    assert cause_of(own, made(1, 1.0)).cause != "lock"


def test_few_readings_say_nothing() -> None:
    few = Runtime("go", readings=2, running=2, waiting={"sync.Mutex.Lock": 4})
    own = go(2, (0.5, 0.5), wall=1.1, runtime=Runtime("go", readings=0))
    assert own.goroutines is None
    own = go(2, (0.5, 0.5), wall=1.1, runtime=few)
    assert own.is_go and own.goroutines is not None, "ten readings in five trials"
    assert go(1, (0.9,)).goroutines is None


# -- what is done when the others have ended ----------------------------------------------------


@pytest.mark.parametrize("waits", ["group", "receive"])
def test_what_one_goroutine_does_when_the_others_have_ended_is_serial(waits: str) -> None:
    """Two thirds by all, then a third by the first, which waited for their end before."""
    base = go(1, (0.7, 0.3), runtime=runtime(1.0, **{waits: 0.67}))
    own = go(2, (0.9, 0.6), wall=0.67, runtime=runtime(1.5, **{waits: 0.5}))
    said = cause_of(own, base)
    assert said.cause == "serial" and "for 49 % of the time one goroutine worked" in said.words
    assert lost(own, base).parts["serial"] == pytest.approx(0.5, abs=0.03)
    assert lost(own, base).parts["imbalance"] == pytest.approx(0.0, abs=0.01)


def test_a_goroutine_with_most_of_the_work_is_an_imbalance_while_another_waits_for_it() -> None:
    base = go(1, (0.3, 0.7), runtime=runtime(1.0, receive=1.0))
    own = go(2, (0.9, 0.6), wall=0.67, runtime=runtime(1.5, receive=1.0))
    assert cause_of(own, base).cause == "imbalance"


def test_a_goroutine_that_is_a_worker_itself_is_uneven_work() -> None:
    """In the base it does all, and waits for nobody."""
    base = go(1, (0.7, 0.3), runtime=runtime(1.0))
    own = go(2, (0.9, 0.6), wall=0.67, runtime=runtime(1.5, group=0.5))
    assert cause_of(own, base).cause == "imbalance"


def test_a_channel_from_which_those_take_that_put_back_is_a_lock() -> None:
    """Whoever has the connection waits for what is outside."""
    base = go(1, (0.1, 0.1), runtime=runtime(0.1, group=1, io=0.9))
    own = go(2, (0.1, 0.1), runtime=runtime(0.1, group=1, io=0.95, receive=0.95))
    said = cause_of(own, base)
    assert said.cause == "lock" and "a pool with too little in it" in said.words
    # Who answers is a goroutine of the program, which sleeps, beside one that accepts connections.
    asking = go(1, (0.1, 0.1), runtime=runtime(0.1, group=1, io=2.9))
    asked = go(2, (0.1, 0.1), runtime=runtime(0.15, group=1, io=2.95, receive=0.9))
    said = cause_of(asked, asking)
    assert said.cause == "lock" and "a pool with too little in it" in said.words
    # One that reads and hands on: the lone worker runs, or the reader waits until it takes.
    for alone in (runtime(1.0, group=1, io=0.9), runtime(0.2, send=0.8, group=1, io=0.2)):
        read = go(2, (0.5, 0.5), runtime=runtime(1.0, group=1, io=1.0, receive=0.9))
        assert cause_of(read, go(1, (0.5, 0.5), runtime=alone)).cause != "lock"
    # A source that is as slow as a lone worker, which waits for what is outside, too.
    even = go(1, (0.1, 0.1), runtime=runtime(0.1, group=1, io=1.75, receive=0.1, send=0.1))
    fed = go(4, (0.1, 0.1), runtime=runtime(0.2, group=1, io=2.0, receive=2.8))
    assert cause_of(fed, even).cause != "lock"
    # Workers that wait for one that deals out, as the lone one did.
    dealt = go(1, (0.9, 0.1), runtime=runtime(1.0, receive=0.9, group=1))
    said = cause_of(go(2, (0.9, 0.1), runtime=runtime(1.0, receive=1.9, group=1)), dealt)
    assert said.cause == "stage"


# -- goroutines that wait for nothing that limits -------------------------------------------------


@pytest.mark.parametrize("waits", ["receive", "send"])
def test_goroutines_that_wait_throughout_keep_no_worker_from_work(waits: str) -> None:
    """One waits for a signal, or sends what nobody takes, and main may wait for the end: they are
    in the base, too. All workers run, and lose what they lose to something else."""
    base = go(1, (0.6, 0.4), runtime=runtime(1.0, **{waits: 2.0}))
    for wall in (0.7, 1.1):
        own = go(2, (0.95, 0.95), wall=wall, runtime=runtime(1.95, **{waits: 2.0}))
        assert cause_of(own, base).cause not in ("stage", "lock")
    # Where workers are missing, it is not for these either.
    uneven = go(2, (0.7, 0.73), wall=0.7, runtime=runtime(1.43, **{waits: 2.0}))
    assert cause_of(uneven, base).cause not in ("stage", "lock")


def test_goroutines_that_wait_throughout_hide_no_stage() -> None:
    """Main waits for the end, one for a signal, and the workers for one that deals out."""
    dealt = go(1, (0.9, 0.1), runtime=runtime(1.0, receive=2.9))
    said = cause_of(go(2, (0.9, 0.1), runtime=runtime(1.0, receive=3.9)), dealt)
    assert said.cause == "stage" and "1.9 goroutines wait to receive" in said.words
    full = go(1, (0.8, 0.8), runtime=runtime(1.6, send=1.4, group=1))
    said = cause_of(go(2, (0.8, 0.8), runtime=runtime(1.6, send=2.4, group=1)), full)
    assert said.cause == "stage" and "1.4 goroutines wait to send" in said.words


def test_a_few_waits_for_a_mutex_are_no_lock_beside_what_one_does_alone() -> None:
    """For three quarters of the time both run, and wait a little; then main merges alone."""
    base = go(1, (0.7, 0.3), runtime=runtime(1.0, group=0.87), wall=0.46)
    own = go(2, (0.9, 0.8), wall=0.26, runtime=runtime(1.69, lock=0.08, group=0.77))
    assert cause_of(own, base).cause == "serial"


@pytest.mark.parametrize(("running", "locked"), [(1.95, 0.05), (1.9, 0.1), (1.97, 0.3)])
def test_a_lock_that_is_taken_back_at_once_is_one_however_few_wait(
    running: float, locked: float
) -> None:
    """Who waits for it spins, or runs again at once."""
    own = go(2, (0.95, 0.95), wall=0.9, runtime=runtime(running, lock=locked, group=1))
    assert cause_of(own, BASE).cause == "lock"


def test_of_workers_that_wait_for_what_is_outside_those_at_a_lock_are_told() -> None:
    """Half of an operation is an answer from elsewhere, with one worker as with two."""
    base = go(1, (0.3, 0.2), runtime=runtime(0.5, group=1, io=0.5))
    own = go(2, (0.35, 0.35), wall=0.7, runtime=runtime(0.7, group=1, io=0.7, lock=0.6))
    assert cause_of(own, base).cause == "lock"


def test_goroutines_that_take_turns_in_system_calls_are_not_one_alone() -> None:
    """On the average one of two runs, while the other one waits for the kernel."""
    base = go(1, (0.6, 0.4), runtime=runtime(0.6, group=1, calls=0.4))
    own = go(2, (0.5, 0.5), runtime=runtime(1.0, group=1, calls=0.7))
    assert cause_of(own, base).cause != "serial"
    alone = go(2, (0.5, 0.5), runtime=runtime(1.0, group=1))
    assert cause_of(alone, base).cause == "serial"
    # One that waits for a signal is in a call throughout.
    waiting = go(2, (0.5, 0.5), runtime=runtime(1.0, group=1, calls=1.0))
    assert (
        cause_of(waiting, go(1, (0.6, 0.4), runtime=runtime(1.0, group=1, calls=1.0))).cause
        == "serial"
    )
