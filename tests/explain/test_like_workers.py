"""Like workers, of which one by chance ran most, are no stage; and levels that do not count what
runs lose nothing to one. Records are made up, as such chances are not to be had twice."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from concurve.definition.purposes import alone
from concurve.explain.accounts import account
from concurve.explain.breakdown import Breakdown, breakdown
from concurve.explain.capacity import capacity_of
from concurve.explain.causes import cause_of, further_verdicts
from concurve.explain.losses import loss_of
from concurve.explain.room import is_full, may_be_staged, taken_by_strangers
from concurve.explain.verdict import Case
from concurve.explain.weights import outweighed, weigh
from concurve.readings.operations import Asked
from tests.helpers.explaining import WALL, Thread, record, role, thread

ASKED = Asked(alone("target"))
FIRST = 100
#: The process of a pool's first worker; the others follow it.
POOL = 200


def cell(
    level: float,
    trials: Sequence[Sequence[Thread]],
    wall: float = 1.0,
    cpus: tuple[int, ...] = (0, 1),
    foreign: float = 0.0,
    of: int = 2,
) -> Breakdown:
    """A cell of such trials, each with threads of its own, on a machine with so many CPUs."""
    accounts = []
    for number, threads in enumerate(trials):
        noise = 1 + 0.001 * number
        made = role(threads, None, wall=round(wall * WALL), noise=noise, cpus=cpus)
        made = msgspec.structs.replace(made, pid=FIRST)
        stored = record(made, foreign=foreign * of / 2)
        machine = msgspec.structs.replace(stored.machine, cpus=of)
        accounts.append(account(msgspec.structs.replace(stored, machine=machine), ASKED, level))
    found = breakdown([it for it in accounts if it is not None])
    assert found is not None
    return found


def parent(handled: float = 0.1, queue: float = 0.1) -> list[Thread]:
    """The process that starts a pool: its first thread waits, and others hand out tasks and take
    results. All have the name of the interpreter."""
    return [
        thread(0.03, 0.02, "python3", tid=FIRST, futex=0.95, switches=300),
        thread(handled, queue, "python3", tid=FIRST + 1, poll=0.98 - handled - queue, switches=230),
        thread(0.01, 0.05, "python3", tid=FIRST + 2, pipe=0.94, switches=300),
        thread(0.0, 0.0, "python3", tid=FIRST + 3, futex=1.0, switches=2),
    ]


def process(number: int, cpu: float, queue: float = 0.0, switches: int = 60) -> Thread:
    """A worker of the pool."""
    pid = POOL + number
    rest = max(0.0, 1.0 - cpu - queue)
    return thread(cpu, queue, "python3", tid=pid, pid=pid, futex=rest, switches=switches)


def pool(
    level: int, lucky: int, most: tuple[float, float], others: tuple[float, float]
) -> list[Thread]:
    """Like workers, of which one ran most."""
    shares = [most if number == lucky else others for number in range(level)]
    return [*parent(), *(process(number, *share) for number, share in enumerate(shares))]


BASE = cell(1, [[*parent(), process(0, 0.97)]] * 4)


def names_of(own: Breakdown, base: Breakdown = BASE) -> set[str]:
    """All causes that are named of a cell, in whichever place."""
    case = Case(own, base, False)
    said = outweighed(case, cause_of(own, base))
    second = weigh(case, said).runner_up
    further = {verdict.cause for verdict in further_verdicts(case)}
    return {said.cause, *further, *([second.cause] if second else [])}


@pytest.mark.parametrize("lucky", [[0, 0, 0, 0], [0, 1, 1, 0]], ids=["the same one", "another"])
def test_a_lucky_worker_of_two_is_no_stage(lucky: list[int]) -> None:
    """It holds the lock more often; the threads that hand out tasks are no third worker."""
    own = cell(2, [pool(2, one, (0.96, 0.0), (0.6, 0.02)) for one in lucky], wall=0.62)
    assert "stage" not in names_of(own)
    assert own.stage is None and max(own.capacity["stage"]) == 0


def test_a_lucky_worker_of_more_than_the_cpus_is_no_stage() -> None:
    """Four like workers on two CPUs: each waits for one, and that comes first."""
    trials = [pool(4, one, (0.55, 0.4), (0.45, 0.35)) for one in (0, 2, 1, 3)]
    own = cell(4, trials, wall=0.55)
    assert "stage" not in names_of(own)
    said = cause_of(own, BASE)
    assert said.cause == "cpu" and "waiting for a CPU" in said.words


def test_a_stage_in_front_of_more_workers_than_cpus_waits_for_a_cpu_as_they_do() -> None:
    """They are ready, so it does not keep them from work: the CPUs do."""
    stage = thread(0.6, 0.38, "feeder", tid=FIRST + 9, futex=0.02, switches=100)
    workers = [process(number, 0.3, 0.4) for number in range(4)]
    own = cell(4, [[*parent(), stage, *workers]] * 4)
    assert own.stage is None and "stage" not in names_of(own)


def test_a_lucky_one_of_more_like_workers_than_were_asked_for_is_no_stage() -> None:
    """One more than the level works, as where the thread that asks works, too: now this one has no
    rest, now that one. A stage is the same part of the program in each trial."""
    base = cell(1, [pool(2, n % 2, (0.95, 0.0), (0.5, 0.0)) for n in range(4)], cpus=(0, 1, 2, 3))
    trials = [pool(3, one, (0.95, 0.0), (0.5, 0.0)) for one in (0, 2, 1, 2)]
    own = cell(2, trials, wall=0.9, cpus=(0, 1, 2, 3))
    assert own.stage is None and "stage" not in names_of(own, base)
    assert max(own.capacity["stage"]) == 0
    always = cell(2, [pool(3, 0, (0.95, 0.0), (0.3, 0.0))] * 4, cpus=(0, 1, 2, 3))
    assert always.stage is not None, "it is the one that was created first, in each trial"


def test_who_starts_a_pool_behind_a_shell_is_no_worker() -> None:
    """The shell is the first process, and that of the interpreter one like those of the pool."""
    trials = []
    for lucky in (0, 1, 1, 0):
        shell = thread(0.0, 0.0, "sh", tid=FIRST, child=1.0, switches=2)
        starter = thread(0.06, 0.02, "python3", tid=150, pid=150, futex=0.92, switches=300)
        workers = [process(n, *((0.96, 0.0) if n == lucky else (0.6, 0.02))) for n in range(2)]
        trials.append([shell, starter, *workers])
    assert cell(2, trials, wall=0.62).stage is None


@pytest.mark.parametrize("foreign", [0.0, 0.3])
def test_a_thread_that_waits_for_a_cpu_hands_out_no_work_that_limits(foreign: float) -> None:
    """The thread that hands out tasks of a pool needs little, and is ready for long where others
    have the CPUs."""
    trials = []
    for _ in range(4):
        starter, handler, *rest = parent(0.1, 0.82)
        workers = [process(n, 0.3, 0.1, switches=400) for n in range(2)]
        trials.append([starter, handler, *rest, *workers])
    own = cell(2, trials, foreign=foreign)
    base = cell(1, [[*parent(0.1, 0.82), process(0, 0.6, 0.1, switches=400)]] * 4, foreign=foreign)
    assert "stage" not in names_of(own, base)
    assert cause_of(base, None).cause != "stage"


def test_a_worker_hands_out_no_work_to_the_threads_that_serve_it() -> None:
    """The threads of the parent are more than the workers, and wait for them."""
    busy = [{**it, "cpu": 0.2, "queue": 0.0, "futex": 0.8, "poll": 0.0, "pipe": 0.0,
             "switches": 90} for it in parent()[1:]]  # fmt: skip
    first = parent()[0]
    own = cell(2, [[first, *busy, process(0, 0.97, switches=90), process(1, 0.9, switches=90)]] * 4)
    assert cause_of(own, None).cause != "stage"


# -- a level that does not count what runs ---------------------------------------------------------


def java(level: int, cpu: float, wall: float = 1.0) -> list[Thread]:
    """A common pool, whose caller computes, too."""
    caller = thread(cpu, 0.0, "java", tid=FIRST + 1, futex=0.99 - cpu, switches=90)
    share = cpu / level
    names = (f"ForkJoinPool.commonPool-worker-{n}" for n in range(1, level + 1))
    return [
        thread(0.0, 0.0, "java", tid=FIRST, futex=1.0, switches=2),
        caller,
        *(thread(share, 0.0, name, futex=0.99 - share, switches=60) for name in names),
        thread(0.0, 0.0, "VM Thread", futex=1.0, switches=10),
    ]


@pytest.mark.parametrize("level", [2, 4])
def test_a_base_that_uses_the_cpus_already_is_said_first(level: int) -> None:
    """One worker was asked for, and two threads compute on two CPUs."""
    base = cell(1, [java(1, 0.875)] * 4)
    own = cell(level, [java(level, 0.875)] * 4, wall=1.01)
    said = cause_of(own, base)
    assert said.cause == "cpu" and said.is_uncounted
    assert "stage" not in names_of(own, base)
    loss = loss_of(own, base)
    assert loss is not None and loss.possible == pytest.approx(2 / 1.75, abs=0.01)
    assert loss.parts.get("stage", 0.0) == pytest.approx(0.0, abs=0.01)
    assert loss.speedup + sum(loss.parts.values()) == pytest.approx(loss.possible)


def test_what_others_leave_of_the_cpus_may_be_used_already() -> None:
    base = cell(1, [java(1, 0.65)] * 4, foreign=0.3)
    own = cell(2, [java(2, 0.65)] * 4, wall=1.01, foreign=0.3)
    assert cause_of(own, base).is_uncounted


def test_what_others_use_beside_pinned_cpus_is_not_taken_off_them() -> None:
    """Half of a machine with 4 CPUs is busy with others; 1.2 of the 2 CPUs of the role are used."""
    base = cell(1, [java(1, 0.6)] * 4, foreign=0.5, of=4)
    own = cell(2, [java(2, 0.6)] * 4, wall=1.01, foreign=0.5, of=4)
    assert not is_full(own, base) and may_be_staged(Case(own, base, serving=False))
    assert not cause_of(own, base).is_uncounted
    every = [cell(n, [java(n, 0.6)] * 4, foreign=0.5, of=4, cpus=(0, 1, 2, 3)) for n in (2, 1)]
    assert taken_by_strangers(every[0], every[1]) == pytest.approx(0.5)


def test_a_base_that_leaves_a_cpu_may_scale() -> None:
    base = cell(1, [java(1, 0.875)] * 4, cpus=(0, 1, 2, 3))
    own = cell(2, [java(2, 0.875)] * 4, cpus=(0, 1, 2, 3))
    assert not cause_of(own, base).is_uncounted


def test_the_ideal_is_no_more_than_the_cpus_over_those_that_the_base_used() -> None:
    """Of two CPUs it used 1.4: no more than 1.43 × as fast is possible, whoever used them."""
    helper = thread(0.4, 0.0, "helper", futex=0.6, switches=60)
    worker = thread(1.0, 0.0, "worker-1", switches=3)
    base = cell(1, [[*parent(0.0, 0.0), worker, helper]] * 4)
    own = cell(2, [[*parent(0.0, 0.0), worker, worker]] * 4, wall=0.72)
    loss = loss_of(own, base)
    assert loss is not None and loss.possible == pytest.approx(2 / 1.43, abs=0.02)
    assert loss.speedup + sum(loss.parts.values()) == pytest.approx(loss.possible)


def test_a_slower_cell_has_another_reason() -> None:
    """It costs twice the CPU time: that the base used all CPUs does not explain it."""
    base = cell(1, [java(1, 0.875)] * 4)
    own = cell(2, [java(2, 0.875)] * 4, wall=2.0)
    assert not cause_of(own, base).is_uncounted


def test_the_division_of_a_trial_is_known_with_and_without_its_stage() -> None:
    """The trials of a cell decide together whether there is one."""
    made = msgspec.structs.replace(role(pool(3, 0, (0.95, 0.0), (0.3, 0.0)), None), pid=FIRST)
    found = capacity_of(made, 2, 4, 0.0)
    assert found is not None and found.limit is not None and found.stage > 0
    other = found.unstaged
    assert other is not None and other.limit is None and other.stage == 0
