"""How a lost speed-up is divided, and which cause that names, from records made up for it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from concurve.definition.purposes import Purposes, alone
from concurve.estimate import Estimate
from concurve.explain.accounts import account
from concurve.explain.breakdown import Breakdown, breakdown
from concurve.explain.capacity import PARTS, capacity_of
from concurve.explain.causes import cause_of
from concurve.explain.losses import Loss, loss_of
from concurve.explain.sentences import reason
from concurve.explain.waiting import waits_at_barriers
from concurve.host.machine_check import is_virtual
from concurve.readings.operations import Asked
from concurve.wire.record import (
    CpuQuota,
    RoleRecord,
    SiteRecord,
    SitesRecord,
    ThreadReadings,
    TrialRecord,
)
from tests.helpers.explaining import WALL, Thread, record, role, thread

ASKED = Asked(alone("target"))
FIRST = 100
"""The number of the role's first process and thread."""


def program(threads: Sequence[Thread], wall: float = 1.0, **more: Any) -> RoleRecord:
    """A program of one process that says nothing of itself."""
    changes = {name: more.pop(name) for name in ("peak", "total") if name in more}
    runtime = more.pop("runtime", None)
    sites = more.pop("sites", None)
    absent = more.pop("absent", {})
    used: dict[str, Any] = {}
    if "system" in more:
        used["system_ns"] = round(more.pop("system") * wall * WALL)
    if "rss" in more:
        used["rss_bytes_max"] = more.pop("rss")
    made = msgspec.structs.replace(role(threads, None, wall=round(wall * WALL), **more), pid=FIRST)
    usage = msgspec.structs.replace(made.usage, **used)
    threads_record = msgspec.structs.replace(made.threads, **changes)
    return msgspec.structs.replace(
        made,
        usage=usage,
        threads=threads_record,
        runtime=runtime,
        absent=made.absent | absent,
        sites=sites,
    )


def cell(
    level: float | None, threads: Sequence[Thread], wall: float = 1.0, **more: Any
) -> Breakdown:
    """A cell of trials that differ a little; ``level`` workers were asked for."""
    rng = random.Random(1)
    machine = {name: more.pop(name) for name in ("steal", "foreign") if name in more}
    asked = more.pop("asked", ASKED)
    cores = more.pop("cores", None)
    is_virtual = more.pop("virtual", False)
    khz = more.pop("khz", None)
    accounts = [
        account(
            _at(khz, record(program(threads, wall, noise=noise, **more), **machine)),
            asked,
            level,
            cores,
            is_virtual,
        )
        for noise in (1 + 0.002 * rng.random() for _ in range(5))
    ]
    found = breakdown([each for each in accounts if each is not None])
    assert found is not None
    return found


def _at(khz: int | None, made: TrialRecord) -> TrialRecord:
    machine = msgspec.structs.replace(made.machine, khz=khz)
    return msgspec.structs.replace(made, machine=machine)


def joining(cpu: float = 0.0) -> Thread:
    """A first thread that waits for the others in a join."""
    return thread(cpu, futex=0.99 - cpu, name="program", tid=FIRST, switches=3)


def worker(cpu: float = 1.0, lived: float = 1.0, switches: int = 2, **more: Any) -> Thread:
    """A thread without a name of its own; the shares are those of its life."""
    return thread(cpu, lived=lived, name="program", switches=switches, **more)


BASE = cell(1, [worker(), joining()])


def lost(own: Breakdown, base: Breakdown = BASE) -> Loss:
    loss = loss_of(own, base)
    assert loss is not None
    assert loss.speedup + sum(loss.parts.values()) == pytest.approx(loss.possible)
    return loss


# -- each cause -------------------------------------------------------------------------------


def test_a_part_that_the_first_thread_does_alone_is_serial() -> None:
    """A quarter of the work, before and after the workers: Amdahl's law."""
    base = cell(1, [worker(lived=0.75), joining(0.25)], wall=1.0)
    own = cell(2, [worker(lived=0.6), worker(lived=0.6), joining(0.4)], wall=0.625)
    said = cause_of(own, base)
    assert said.cause == "serial" and "for 40 % of the time no worker worked" in said.words
    loss = lost(own, base)
    assert loss.speedup == pytest.approx(1.6) and loss.possible == 2
    assert loss.parts["serial"] == pytest.approx(0.4, abs=0.01)


def test_a_script_that_starts_the_program_is_serial() -> None:
    """Its children come and go before there are workers, and it reads at a pipe what they print: no
    wait for a lock, and no worker beside the others."""

    def started(level: int) -> list[Thread]:
        script = thread(0.25, pipe=0.45, futex=0.3, name="python3", tid=100, switches=25)
        children = [
            thread(0.5, lived=0.06, name="bash", tid=pid, pid=pid, switches=4)
            for pid in range(110, 118)
        ]
        working = thread(0.98, lived=0.5, name="python3", switches=3)
        return [script, *children, *({**working, "tid": n, "pid": n} for n in (201, 202)[:level])]

    own = cell(2, started(2), wall=0.75, peak=4)
    base = cell(1, started(1), peak=3)
    said = cause_of(own, base)
    assert said.cause == "serial"
    assert "no worker worked, while another thread ran" in said.words


def test_work_between_rounds_of_threads_is_serial() -> None:
    """Threads of ten rounds live one after the other, two at once."""
    base = cell(1, [*[worker(lived=0.075)] * 10, joining(0.25)], peak=2)
    own = cell(2, [*[worker(lived=0.06)] * 20, joining(0.4)], wall=0.625, peak=3)
    assert cause_of(own, base).cause == "serial"
    assert lost(own, base).parts["serial"] == pytest.approx(0.4, abs=0.01)


def test_a_program_that_starts_no_workers_is_serial() -> None:
    only = thread(0.99, name="program", tid=FIRST, switches=3)
    said = cause_of(cell(2, [only]), cell(1, [only]))
    assert said.cause == "serial"


def test_a_worker_with_hardly_any_of_the_work_is_an_imbalance() -> None:
    """It ran, and ended long before the other. A pool of which only one has work is serial."""
    own = cell(2, [worker(), worker(lived=0.06), joining()], wall=0.94)
    said = cause_of(own, BASE)
    assert said.cause == "imbalance" and lost(own).parts["imbalance"] > 0.8
    idle = worker(0.002, futex=0.998)
    assert cause_of(cell(2, [worker(), idle, joining()]), BASE).cause == "serial"
    # One of three that were asked for is not there.
    three = cell(3, [worker(), worker(lived=0.06), joining()], wall=0.94, cpus=(0, 1, 2))
    assert cause_of(three, BASE).cause == "serial"


def varying(level: int, threads: list[Thread], *walls: float) -> Breakdown:
    """A cell whose trials took so long, each for the same work."""
    made = [cell(level, threads, wall=wall).accounts[0] for wall in walls]
    found = breakdown(made)
    assert found is not None
    return found


def test_equal_workers_on_cpus_whose_speed_varies_are_no_imbalance() -> None:
    """The same work of one worker takes 0.7 to 1.1 s, so two workers differ as much by chance."""
    late = [worker(), worker(lived=0.7), joining()]
    own = varying(2, late, 0.6, 0.57, 0.62, 0.55)
    alone = [worker(), joining()]
    noisy = varying(1, alone, 0.7, 1.0, 1.1, 0.85)
    assert cause_of(own, noisy).cause == "none"
    steady = varying(1, alone, 0.91, 0.92, 0.9, 0.92)
    assert cause_of(own, steady).cause == "imbalance"
    # One that has hardly any of the work has less than by chance.
    far = varying(2, [worker(), worker(lived=0.1), joining()], 0.85, 0.8, 0.9, 0.82)
    assert cause_of(far, noisy).cause == "imbalance"


def test_even_work_on_cpus_of_different_speed_is_no_imbalance() -> None:
    """Where one of two CPUs is slower, all cost as much more as the other worker waits."""
    late = [worker(), worker(lived=0.49 / 0.65), joining()]
    assert cause_of(cell(2, late, wall=0.65, virtual=True), BASE).cause != "imbalance"
    # The CPUs of no virtual machine are so by turns.
    assert cause_of(cell(2, late, wall=0.65), BASE).cause == "imbalance"
    # Uneven work costs nothing more, or far less than the others wait.
    uneven = cell(2, [worker(), worker(lived=0.5 / 0.65), joining()], wall=0.565, virtual=True)
    assert cause_of(uneven, BASE).cause == "imbalance"
    many = [worker(lived=0.7)] * 7
    eight = tuple(range(8))
    more = cell(8, [worker(), *many, joining()], wall=0.185, virtual=True, cpus=eight)
    assert cause_of(more, cell(1, [worker(), joining()], cpus=eight)).cause == "imbalance"


def test_a_worker_with_most_of_the_work_is_an_imbalance() -> None:
    own = cell(2, [worker(), worker(lived=0.43), joining()], wall=0.7)
    said = cause_of(own, BASE)
    assert said.cause == "imbalance" and "the busiest worker ran 1.40 × as long" in said.words
    loss = lost(own)
    assert loss.speedup == pytest.approx(1.43, abs=0.01)
    assert loss.parts["imbalance"] == pytest.approx(0.57, abs=0.01)


def test_workers_that_wait_for_the_last_one_are_an_imbalance_too() -> None:
    """They stay until the end, as in a pool, but wait once and no more."""
    light = worker(0.43, futex=0.57)
    assert cause_of(cell(2, [worker(), light, joining()], wall=0.7), BASE).cause == "imbalance"


def test_an_imbalance_of_more_workers_than_cpus() -> None:
    own = cell(8, [worker(), *[worker(0.4, 0.15, queue=0.6)] * 7, joining()], wall=0.7)
    assert cause_of(own, BASE).cause == "imbalance"
    assert lost(own).possible == 2


def producer(cpu: float = 0.99) -> Thread:
    return worker(cpu, switches=40)


def consumer(cpu: float) -> Thread:
    return worker(cpu, switches=900, futex=0.99 - cpu)


def test_a_producer_that_is_busy_throughout_is_the_stage() -> None:
    """More consumers get no more, for all of the loss."""
    base = cell(1, [producer(), consumer(0.5), joining()])
    own = cell(2, [producer(), *[consumer(0.25)] * 2, joining()])
    said = cause_of(own, base)
    assert (said.cause, said.limit) == ("stage", "program")
    assert "ran 99 % of its life, while others waited for it again and again" in said.words
    loss = lost(own, base)
    assert loss.speedup == pytest.approx(1) and loss.parts["stage"] == pytest.approx(1, abs=0.03)


def test_a_first_thread_that_takes_results_waits_for_no_stage() -> None:
    """It has started the only worker, after a fifth of the time, and waits for each of its results;
    a thread of a library that it loaded has next to no work."""
    taking = thread(0.2, futex=0.79, name="program", tid=FIRST, switches=150)
    beside = worker(0.15, futex=0.84)
    said = cause_of(cell(1, [worker(0.99, lived=0.8), beside, taking]), None)
    assert said.cause == "none", said.words


def test_a_stage_is_no_lock_where_waiting_for_a_cpu_is_the_greatest_loss() -> None:
    """Other processes take most of one CPU; the consumers wait for the producer all the same."""
    waiting = worker(0.25, queue=0.3, switches=900, futex=0.44)
    first = worker(0.9, queue=0.09, switches=40)
    own = cell(2, [first, waiting, waiting, joining()], words=[(60, 2, 0)], foreign=0.3)
    base = cell(1, [producer(), consumer(0.5), joining()])
    assert cause_of(own, base).cause in ("stage", "contamination")


def test_a_stage_may_be_a_process_behind_a_pipe() -> None:
    def process(tid: int, cpu: float, switches: int) -> Thread:
        piped = {"pipe": 0.99 - cpu}
        return thread(cpu, name="program", tid=tid, pid=tid, switches=switches, **piped)

    parent = thread(0.001, child=0.99, name="program", tid=FIRST, switches=3)
    base = cell(1, [process(200, 0.98, 30), process(201, 0.5, 900), parent])
    copies = [process(tid, 0.25, 900) for tid in (201, 202)]
    own = cell(2, [process(200, 0.98, 30), *copies, parent])
    assert cause_of(own, base).cause == "stage"


def asking(pid: int, cpu: float = 0.3) -> Thread:
    """A process that asks another one again and again, and waits for the answers."""
    return worker(cpu, network=1 - cpu, switches=2000, tid=pid, pid=pid)


def answering(*cpu: float) -> list[Thread]:
    """A process with such threads beside its first one, which waits for their end."""
    first = thread(0.01, futex=0.99, name="server", tid=300, pid=300, switches=3)
    shares = enumerate(cpu, 1)
    return [
        first,
        *(
            thread(c, network=1 - c, name="server", tid=300 + n, pid=300, switches=2000)
            for n, c in shares
        ),
    ]


def test_a_process_whose_threads_take_turns_is_the_stage() -> None:
    """An interpreter's lock lets one of them run, and each serves one of those that ask."""
    base = cell(1, [asking(200, 0.4), *answering(0.6), joining()])
    own = cell(2, [asking(200), asking(201), *answering(0.5, 0.5), joining()], wall=0.65)
    said = cause_of(own, base)
    assert said.cause == "stage" and said.limit == "server"
    assert "2 threads of a process server, one at a time, ran" in said.words


def test_more_threads_than_cpus_that_work_behind_a_stage_wait_for_one_another() -> None:
    """What they wait for a CPU is none of the others' doing, and the stage waits for one, too."""
    base = cell(1, [asking(200, 0.4), *answering(0.6), joining()])
    first, *serving = answering(0.4, 0.4)
    serving = [{**one, "queue": 0.2, "network": 0.4} for one in serving]
    asked = [{**asking(pid), "queue": 0.1, "network": 0.6} for pid in (200, 201)]
    own = cell(2, [*asked, first, *serving, joining()], wall=0.75)
    assert cause_of(own, base).cause == "stage"
    assert lost(own, base).parts["queue"] == pytest.approx(0.0, abs=0.01)
    disturbed = cell(2, [*asked, first, *serving, joining()], wall=0.75, foreign=0.3)
    assert lost(disturbed, base).parts["queue"] > 0.2


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([asking(200)], id="fewer wait than were asked for"),
        pytest.param([asking(200, 0.001), asking(201, 0.001)], id="who wait do nothing"),
        pytest.param([asking(200, 0.5), asking(201, 0.5)], id="of each pair one is ready"),
        pytest.param([worker(0.3, sleep=0.7, tid=200, pid=200, switches=2000)] * 2, id="asleep"),
    ],
)
def test_a_process_for_which_nobody_waits_is_no_stage(others: list[Thread]) -> None:
    own = cell(2, [*others, *answering(0.5, 0.5), joining()])
    assert own.stage is None


def test_threads_of_a_process_that_run_together_are_no_stage() -> None:
    served = [asking(200, 0.1), asking(201, 0.1), joining()]
    assert cell(2, [*served, *answering(0.7, 0.7)], wall=0.9).stage is None
    assert cell(2, [*served, *answering(0.3, 0.3)], wall=0.9).stage is None


def test_short_threads_of_the_workers_kind_are_no_workers_that_have_ended() -> None:
    """As those of a server that answers once."""
    short = worker(0.9, lived=0.002)
    own = cell(2, [worker(0.8, network=0.2, switches=900)] * 2 + [short] * 6 + [joining()])
    assert own.of_capacity("imbalance") < 0.01 * own.per_trial("wall_ns")
    # One worker fewer than were asked for, which has hardly begun, is one.
    uneven = cell(
        3, [worker(lived=0.9), worker(lived=0.9), worker(lived=0.05), joining()], cpus=(0, 1, 2)
    )
    assert uneven.of_capacity("imbalance") > 0.2 * uneven.per_trial("wall_ns")
    # Tasks that have a thread each live no longer than they need.
    tasks = [worker(lived=0.2), worker(lived=0.2), *[worker(lived=0.01)] * 3]
    assert cell(2, [*tasks, joining()]).of_capacity("imbalance") > 0.3 * WALL


def test_threads_of_an_interpreter_take_turns_even_where_others_are_ready_meanwhile() -> None:
    """More of them wait for a CPU than pairs of who asks and who answers could."""
    first, *serving = answering(0.5, 0.5)
    serving = [{**one, "queue": 0.2, "network": 0.3} for one in serving]
    asked = [{**asking(pid), "queue": 0.3, "network": 0.4} for pid in (200, 201)]
    threads = [*asked, first, *serving, joining()]
    site = SiteRecord("condition", "futex", "python", "0x1", "cfi", readings=1, threads=1)
    python = msgspec.structs.replace(site, runtime="cpython")
    assert cell(2, threads).stage is None
    assert cell(2, threads, sites=SitesRecord(readings=1, listed=(site,))).stage is None
    assert cell(2, threads, sites=SitesRecord(readings=1, listed=(python,))).stage is not None


def parent(pid: int, lived: float, children: int) -> list[Thread]:
    """A process that works by children, one after the other, and they."""
    each = lived / children
    own = worker(0.02, lived=lived, child=0.98, switches=children + 2, tid=pid, pid=pid)
    made = [
        worker(0.99, lived=each, switches=0, tid=pid + n, pid=pid + n)
        for n in range(1, children + 1)
    ]
    return [own, *made]


def test_processes_that_work_by_children_are_as_even_as_they_live_long() -> None:
    base = cell(1, [*parent(200, 1.0, 20), joining()], peak=3)
    even = cell(2, [*parent(200, 1.0, 10), *parent(400, 1.0, 10), joining()], wall=0.5, peak=5)
    assert cause_of(even, base).cause == "none"
    assert lost(even, base).parts["imbalance"] == pytest.approx(0.0, abs=0.02)
    uneven = cell(2, [*parent(200, 1.0, 15), *parent(400, 0.33, 5), joining()], wall=0.75, peak=5)
    assert cause_of(uneven, base).cause == "imbalance"
    assert lost(uneven, base).parts["imbalance"] == pytest.approx(0.67, abs=0.03)


def test_a_few_short_commands_with_children_are_no_workers() -> None:
    """As many as were asked for, by chance, beside the threads that do the work."""
    shells = [*parent(200, 0.05, 2), *parent(400, 0.05, 2)]
    own = cell(2, [worker(), worker(lived=0.4), *shells, joining()])
    assert own.of_capacity("imbalance") > 0.3 * WALL
    long = cell(2, [worker(), worker(lived=0.4), *parent(200, 0.9, 2), *parent(400, 0.9, 2)])
    assert long.of_capacity("imbalance") < 0.1 * WALL


def test_what_the_thread_with_a_jvm_s_main_does_while_the_pool_waits_is_serial() -> None:
    """It is not the first thread of the process, which waits in a join."""

    def java(level: int, wall: float, alone: float, cpu: float) -> Breakdown:
        main = thread(alone, futex=1 - alone, name="java", tid=FIRST + 50, switches=90)
        main |= {"alone": round(100 * alone)}
        pool = [
            thread(cpu, futex=1 - cpu, name=f"pool-1-thread-{n}", switches=4) for n in range(level)
        ]
        machine = thread(0.001, futex=0.999, name="VM Thread", switches=5)
        launcher = {**joining(), "name": "java"}
        return cell(level, [*pool, main, machine, launcher], wall=wall)

    base, own = java(1, 1.0, 0.3, 0.7), java(2, 0.65, 0.46, 0.54)
    said = cause_of(own, base)
    assert said.cause == "serial" and "for 46 % of the time no worker worked" in said.words


def test_a_collector_that_stops_the_workers() -> None:
    """Two thirds work and a third collection, which one thread does alone."""

    def jvm(workers: int, busy: float, collecting: float, wall: float) -> Breakdown:
        threads = [worker(busy, switches=300, futex=0.99 - busy)] * workers
        service = [
            thread(collecting, futex=0.99 - collecting, name="VM Thread"),
            thread(0.0, futex=0.99, name="Signal Dispatch"),
        ]
        return cell(workers, [*threads, *service, joining()], wall=wall)

    base, own = jvm(1, 0.66, 0.33, 1.0), jvm(2, 0.5, 0.5, 0.67)
    said = cause_of(own, base)
    assert said.cause == "collector" and "ran 50 % of the time" in said.words
    assert lost(own, base).parts["collector"] == pytest.approx(0.5, abs=0.03)


def test_cpu_time_that_grows_in_the_kernel() -> None:
    base = cell(1, [worker(), joining()], system=0.1)
    own = cell(2, [worker(), worker(), joining()], system=0.9)
    said = cause_of(own, base)
    assert said.cause == "kernel" and "of the increase is spent in the kernel" in said.words
    user = cell(2, [worker(), worker(), joining()], system=0.1)
    assert cause_of(user, base).cause == "coherency"
    unknown = cell(1, [worker(), joining()])
    assert cause_of(own, unknown).cause == "coherency"


def pool(level: int, wall: float, alone: float, cpu: float) -> Breakdown:
    """Workers that stay, and a first thread that works while they wait for it at a barrier."""
    first = thread(
        alone, futex=0.99 - alone, name="program", tid=FIRST, switches=80, alone=round(100 * alone)
    )
    workers = [worker(cpu, futex=0.99 - cpu, switches=80)] * level
    return cell(level, [*workers, first], wall=wall, words=[(60, level + 1, 30)])


def test_work_of_the_first_thread_while_a_pool_waits_is_serial() -> None:
    """A quarter of the work, between the rounds of a pool."""
    base, own = pool(1, 1.0, 0.25, 0.75), pool(2, 0.625, 0.4, 0.59)
    said = cause_of(own, base)
    assert said.cause == "serial" and "for 40 % of the time no worker worked" in said.words
    assert lost(own, base).parts["serial"] == pytest.approx(0.4, abs=0.03)


def test_the_start_of_a_runtime_whose_own_threads_wait_is_counted_once() -> None:
    """The first thread runs alone for a fifth before there are workers, in which a thread of the
    runtime waits; then beside them, for as long."""
    first = thread(0.4, futex=0.59, name="program", tid=FIRST, switches=3, alone=20)
    early = thread(0.0, futex=1.0, name="runtime", switches=3)
    workers = [worker(1.0, lived=0.8), worker(0.75, lived=0.8)]
    for threads in ([first, early, *workers], [first, *workers]):
        own = cell(2, threads)
        is_early = early in threads
        assert own.of_capacity("alone") == pytest.approx(0.2 if is_early else 0.4, abs=0.02)


def test_who_polls_while_another_one_works_has_less_work() -> None:
    """It sleeps for moments until there is work, and what it computes meanwhile is no work."""
    busy = worker(0.99, switches=5)
    polls = worker(0.53, sleep=0.4, switches=1900)
    said = cause_of(cell(2, [busy, polls, joining()], wall=0.75), BASE)
    assert (said.cause, said.parts) == ("imbalance", ("sleep", "cpu"))
    assert "slept again and again" in said.words
    # Who sleeps where one works alone waits for something else.
    alone = cell(1, [worker(0.5, sleep=0.49, switches=900), joining()])
    own = cell(2, [busy, polls, joining()], wall=0.75)
    assert cause_of(own, alone).cause != "imbalance" or "slept" not in cause_of(own, alone).words


def test_a_first_thread_that_ran_before_is_left_out_however_long_it_ran() -> None:
    """It reads a file for half of a run, and then waits for its workers."""

    def after(lived: float, level: int) -> Breakdown:
        first = thread(1 - lived, futex=lived, name="program", tid=FIRST, switches=3)
        return cell(level, [*[worker(0.99, lived=lived)] * level, first])

    assert [after(0.7, 1).threads, after(0.4, 2).threads] == [1, 2]


def asleep_pool(level: int, tasks: int) -> Breakdown:
    """An interpreter that starts for 0.05 s, and workers that sleep for a second in all, while the
    first thread takes what each task brings."""
    wall = 0.05 + 1 / level
    share = (wall - 0.05) / wall
    first = thread(
        0.055 / wall, futex=0.9 - 0.055 / wall, name="python3", tid=FIRST, switches=tasks
    )
    one = thread(0.004, sleep=0.98, name="python3", lived=share, switches=tasks // level)
    return cell(level, [*[one] * level, first], wall=wall)


def test_workers_that_sleep_are_the_workers_beside_a_thread_that_only_started() -> None:
    """They hardly run, and still less than an interpreter does to start. No more is serial than
    that start."""
    base, own = asleep_pool(1, 90), asleep_pool(2, 90)
    assert (base.threads, own.threads) == (1, 2)
    assert "asleep" in cause_of(base, None).words
    said = cause_of(own, base)
    assert said.cause in ("none", "serial")
    assert lost(own, base).parts["serial"] == pytest.approx(0.05 / 0.55, abs=0.012)


def test_the_only_thread_that_works_is_serial_whichever_it_is() -> None:
    """A runtime may run it on any thread, beside others that have nothing to do."""
    idle = [worker(0.002, switches=n, futex=0.99) for n in (1, 3, 40)]
    own = cell(2, [worker(0.99, switches=20), *idle, joining()])
    base = cell(1, [worker(0.99, switches=20), *idle, joining()])
    assert cause_of(own, base).cause == "serial"


def test_a_first_thread_that_works_like_the_others_is_a_worker() -> None:
    """As in OpenMP, and in Go, which may run a goroutine on it."""
    first = thread(0.98, name="program", tid=FIRST, switches=3)
    base = cell(1, [first])
    light = worker(0.43, futex=0.56, switches=2)
    assert cause_of(cell(2, [first, light], wall=0.7), base).cause == "imbalance"
    assert cause_of(cell(2, [first, worker(0.98)], wall=0.5), base).cause == "none"


@pytest.mark.parametrize("level", [2, 4])
def test_uneven_rounds_with_a_barrier_are_an_imbalance(level: int) -> None:
    """Another thread is late in each round; the word has another value in each."""
    late = [worker(0.66, futex=0.33, switches=60)] * level
    cpus = tuple(range(level))
    own = cell(level, [*late, joining()], 1.5 / level, words=[(66, level, 31)], cpus=cpus)
    said = cause_of(own, BASE)
    assert said.cause == "imbalance" and "in each round some of them waited" in said.words


def waits_at(*readings: tuple[str, int]) -> SitesRecord:
    """The sampled waits, by what is waited at."""
    listed = tuple(
        SiteRecord(primitive=primitive, call="futex", module="/app", offset=f"0x{number}",
                   found="cfi", readings=count, threads=2)
        for number, (primitive, count) in enumerate(readings)
    )  # fmt: skip
    return SitesRecord(readings=sum(count for _, count in readings), listed=listed)


@pytest.mark.parametrize("level", [2, 4])
def test_uneven_rounds_with_a_barrier_of_a_condition_are_an_imbalance(level: int) -> None:
    """Its word tells nothing; the place of the wait does. The first thread waits for the end."""
    late = [worker(0.66, futex=0.33, switches=60)] * level
    cpus = tuple(range(level))
    found = waits_at(("join", 300), ("barrier", 19), ("mutex", 1))
    own = cell(level, [*late, joining()], 1.5 / level, cpus=cpus, sites=found)
    said = cause_of(own, BASE)
    assert said.cause == "imbalance" and "in each round some of them waited" in said.words


def in_rounds(barriers: int, locks: int, *, word: int = 61, cpu: float = 0.56) -> Breakdown:
    """Two workers that take a lock in rounds with a barrier behind it. They have as much work, and
    mostly one of them runs; of a hundred readings at futexes so many are at the barrier's word."""
    sites = waits_at(("join", 300), ("barrier", barriers), ("mutex", locks))
    taken = tuple(
        msgspec.structs.replace(site, operation="pthread_mutex_lock")
        if site.primitive == "mutex"
        else site
        for site in sites.listed
    )
    workers = [worker(cpu, futex=0.99 - cpu, switches=90, readings=114)] * 2
    words = [(word, 2, 31), (100 - word, 2, 0)]
    found = msgspec.structs.replace(sites, listed=taken)
    return cell(2, [*workers, joining()], wall=1.2, words=words, sites=found)


@pytest.mark.parametrize(
    ("barriers", "locks", "word"), [(45, 9, 61), (56, 1, 61), (49, 1, 78), (20, 31, 30)]
)
def test_who_waits_at_a_barrier_for_who_gets_a_lock_last_waits_for_the_lock(
    barriers: int, locks: int, word: int
) -> None:
    """One thread takes it again and again, and then waits at the barrier for the others, which
    could not take it before. A short wait is seldom sampled with its place."""
    own = in_rounds(barriers, locks, word=word)
    said = cause_of(own, BASE)
    assert said.cause == "lock" and "for who gets it last" in said.words
    assert said.either == ("imbalance" if word > 50 else None)
    parts = lost(own).parts
    assert parts["waiting"] > parts["imbalance"]


def test_words_of_threads_that_are_not_active_are_no_more_than_all_waits() -> None:
    """The first thread waits at the barrier, too, and does no part of the work."""
    sites = [in_rounds(45, 9).accounts[0].sites]
    found = waits_at_barriers(sites, readings=50, of_rounds=80)
    assert (found.at_barriers, found.at_locks) == (1.0, 0.0)


def test_even_rounds_whose_few_waits_are_for_a_lock_are_not_accused_of_it() -> None:
    even = [worker(0.97, futex=0.02, switches=90, readings=40)] * 2
    found = waits_at(("join", 300), ("barrier", 1), ("mutex", 1))
    taken = tuple(
        msgspec.structs.replace(site, operation="pthread_mutex_lock") for site in found.listed
    )
    found = msgspec.structs.replace(found, listed=taken)
    own = cell(2, [*even, joining()], wall=0.53, words=[(1, 2, 1), (1, 2, 0)], sites=found)
    assert not own.at_barriers.behind
    assert cause_of(own, BASE).cause == "none"


def test_a_lock_that_is_seldom_waited_for_leaves_uneven_rounds_uneven() -> None:
    for few in (in_rounds(56, 1, word=90), in_rounds(56, 4, word=95)):
        assert cause_of(few, BASE).cause == "imbalance"
    # Who has more work than the others is late for that reason.
    more = [worker(0.7, futex=0.29, switches=90), worker(0.4, futex=0.59, switches=90)]
    found = waits_at(("join", 300), ("barrier", 20), ("mutex", 31))
    own = cell(2, [*more, joining()], wall=1.2, words=[(40, 2, 31), (60, 2, 0)], sites=found)
    assert "for who gets it last" not in cause_of(own, BASE).words


def test_what_one_worker_does_once_for_all_is_serial() -> None:
    """A table that is made at its first use: one makes it, and works longer than the other, which
    waits a single time."""
    maker, other = worker(0.99, switches=3), worker(0.58, futex=0.41, switches=3)
    base = cell(1, [worker(0.99), joining()])
    found = waits_at(("join", 40), ("once", 12))
    own = cell(2, [maker, other, joining()], wall=0.7, sites=found)
    said = cause_of(own, base)
    assert said.cause == "serial" and "what is done once for all" in said.words
    elsewhere = waits_at(("join", 40), ("mutex", 12))
    own = cell(2, [maker, other, joining()], wall=0.7, sites=elsewhere)
    assert cause_of(own, base).cause == "imbalance"


def test_waits_for_what_is_done_once_are_not_for_a_lock() -> None:
    """However often there is something to be done once: those who wait hold nothing."""
    often = [worker(0.66, futex=0.33, switches=60)] * 2
    own = cell(2, [*often, joining()], wall=0.75, sites=waits_at(("once", 40)))
    assert cause_of(own, BASE).cause == "serial"


@pytest.mark.parametrize(
    "found",
    [
        waits_at(("join", 300), ("mutex", 40)),
        waits_at(("barrier", 4), ("condition", 36)),
        waits_at(("barrier", 1)),
        None,
    ],
)
def test_waits_elsewhere_than_at_barriers_are_those_for_a_lock(found: SitesRecord | None) -> None:
    held = [worker(0.66, futex=0.33, switches=60)] * 2
    own = cell(2, [*held, joining()], wall=0.75, sites=found)
    assert cause_of(own, BASE).cause == "lock"


def test_where_nothing_is_lost_no_part_is_a_cause() -> None:
    """As of `make -j2` with caches that are warm: uneven, and yet twice as fast."""
    uneven = [worker(1.0), worker(0.95, lived=0.6)]
    assert cause_of(cell(2, [*uneven, joining()], wall=0.49), BASE).cause == "none"
    assert cause_of(cell(2, [*uneven, joining()], wall=0.62), BASE).cause == "imbalance"


def test_a_part_beside_a_greater_one_without_a_reason_is_no_cause() -> None:
    """7 % more CPU time of a program with much memory may be anything; a short wait is not it."""
    waits = [worker(0.97, disk=0.03)] * 2
    large = cell(2, [*waits, joining()], wall=0.56, rss=100 << 20)
    said = cause_of(large, BASE)
    assert said.cause == "none" and "for a reason that is not known" in said.words


def test_a_few_waits_that_were_all_at_a_barrier_accuse_no_lock() -> None:
    """Even rounds: hardly anybody waits, so few places are sampled."""
    even = [worker(0.97, futex=0.03, switches=60, readings=40)] * 2
    few = waits_at(("join", 40), ("barrier", 3))
    own = cell(2, [*even, joining()], wall=0.52, sites=few)
    assert cause_of(own, BASE).cause == "none"
    even = [worker(0.93, futex=0.07, switches=60, readings=40)] * 2
    mutex = waits_at(("join", 40), ("mutex", 3))
    assert cause_of(cell(2, [*even, joining()], wall=0.54, sites=mutex), BASE).cause == "lock"


@pytest.mark.parametrize("level", [2, 4])
def test_threads_that_take_turns_are_no_imbalance(level: int) -> None:
    """They wait at a condition, whose word changes as that of a barrier does; but none of them
    works while another one does."""
    turn = [worker(1 / level, futex=0.99 - 1 / level, switches=90)] * level
    cpus = tuple(range(level))
    own = cell(level, [*turn, joining()], 1.0, words=[(60, level, 31)], cpus=cpus)
    assert cause_of(own, BASE).cause == "lock"


def test_a_first_thread_that_prepares_and_waits_in_a_join_is_no_worker() -> None:
    """Eight threads that sleep, and one that has loaded the program and used more CPU time."""
    asleep = [worker(0.005, sleep=0.99, switches=25)] * 8
    first = thread(0.03, futex=0.96, name="program", tid=FIRST, switches=3)
    base = cell(1, [worker(0.01, sleep=0.98, switches=200), joining()], wall=8.0)
    assert cause_of(cell(8, [*asleep, first], wall=1.0), base).cause == "none"
    # Stacks in joins say it of one that did as much as a worker, too.
    reading = [worker(0.2, disk=0.79, switches=900)] * 2
    busy = thread(0.2, futex=0.79, name="program", tid=FIRST, switches=50)
    own = cell(2, [*reading, busy], sites=waits_at(("join", 12)))
    assert cause_of(own, None).cause == "io"


def test_the_word_of_a_mutex_has_one_value() -> None:
    held = [worker(0.66, futex=0.33, switches=60)] * 2
    own = cell(2, [*held, joining()], wall=0.75, words=[(66, 2, 0)])
    assert cause_of(own, BASE).cause == "lock"


def test_one_worker_for_whom_the_others_wait_in_each_round_is_an_imbalance() -> None:
    """As many threads work as were asked for, so it is no stage."""
    own = cell(2, [worker(0.98, switches=3), worker(0.33, futex=0.66, switches=99), joining()],
               wall=0.75)  # fmt: skip
    assert cause_of(own, BASE).cause == "imbalance"


def test_more_workers_that_change_nothing_have_a_stage_elsewhere() -> None:
    """Goroutines of two stages run on any thread: none of them is busy throughout."""
    base = cell(1, [worker(0.8, switches=900, futex=0.19)] * 2)
    own = cell(2, [worker(0.8, switches=900, futex=0.19)] * 2)
    said = cause_of(own, base)
    assert (said.cause, said.limit) == ("stage", "")
    assert "another part of the program" in said.words
    assert lost(own, base).parts["stage"] == pytest.approx(1, abs=0.05)


QUOTA = CpuQuota(cpus=1.0, periods=10, throttled=9, throttled_ns=round(0.9 * WALL))


def test_a_quota_of_a_control_group() -> None:
    """Two workers that may use one CPU's time: half of the time they are held back."""
    held = [worker(0.5, queue=0.49)] * 2
    own = cell(2, [*held, joining()], quota=QUOTA)
    said = cause_of(own, BASE)
    assert said.cause == "quota"
    assert "1 CPU seconds a second, and it was held back in 90 % of the periods" in said.words
    assert lost(own).parts["quota"] == pytest.approx(0.9, abs=0.03)
    assert lost(own).parts["queue"] < 0.1


def test_a_quota_that_is_not_used_up_is_none() -> None:
    unused = CpuQuota(cpus=4.0, periods=10, throttled=0, throttled_ns=0)
    own = cell(2, [worker(), worker(), joining()], wall=0.5, quota=unused)
    assert cause_of(own, BASE).cause == "none"


def test_more_threads_than_a_quota_allows_wait_for_the_quota() -> None:
    held = [worker(0.125, queue=0.87)] * 8
    assert cause_of(cell(8, [*held, joining()], quota=QUOTA), BASE).cause == "quota"
    own = cell(8, [*[worker(0.25, queue=0.74)] * 8, joining()], wall=0.5)
    assert cause_of(own, BASE).cause == "cpu"


def test_a_quota_holds_two_threads_back_however_many_cpus_there_are() -> None:
    """In a phase that the program marks: of the time of 64 CPUs it is 1.4 %."""
    many = tuple(range(64))
    base = cell(1, [worker(), joining()], phase=True, cpus=many)
    held = [worker(0.5, queue=0.49)] * 2
    said = cause_of(cell(2, [*held, joining()], phase=True, cpus=many, quota=QUOTA), base)
    assert said.cause == "quota" and "held back in 90 % of the periods" in said.words


def test_locks_of_files_between_processes() -> None:
    def process(tid: int, cpu: float, **more: Any) -> Thread:
        return thread(cpu, name="program", tid=tid, pid=tid, switches=900, **more)

    parent = thread(0.001, child=0.99, name="program", tid=FIRST, switches=30)
    base = cell(1, [process(200, 0.99), parent])
    turns = [process(tid, 0.55, file_lock=0.44) for tid in (200, 201)]
    said = cause_of(cell(2, [*turns, parent], wall=0.9), base)
    assert said.cause == "lock" and "locks of files" in said.words
    alone = cell(1, [process(200, 0.4, file_lock=0.59), parent])
    assert cause_of(alone, base).cause == "none"


def test_changes_of_the_address_space_are_the_kernel() -> None:
    changing = worker(0.4, memory=0.59, switches=900)
    said = cause_of(cell(2, [changing, changing, joining()], wall=1.2), BASE)
    assert said.cause == "kernel" and "address space" in said.words


def test_waits_for_the_address_space_are_a_part_of_what_the_kernel_costs() -> None:
    """Threads that map and unmap memory compute in the kernel, and wait there for one another."""
    changing = worker(0.74, memory=0.25, switches=900)
    base = cell(1, [worker(), joining()], system=0.7)
    own = cell(2, [changing, changing, joining()], wall=2.5, system=1.4)
    said = cause_of(own, base)
    assert (said.cause, said.parts) == ("kernel", ("cpu", "memory"))
    assert "of the time for the address space" in said.words
    held = worker(0.74, memory=0.05, network=0.2, switches=900)
    own = cell(2, [held, held, joining()], wall=2.5, system=1.4)
    assert cause_of(own, base).parts == ("cpu",)


def hardware(level: int, ratio: float, **more: Any) -> Breakdown:
    """Workers that take so many times the CPU time for the same work."""
    return cell(level, [*[worker()] * level, joining()], wall=ratio / min(level, 2), **more)


def test_the_bandwidth_of_memory_needs_much_of_it_and_does_less_by_no_more_than_its_share() -> None:
    small, large = 3 << 20, 200 << 20
    said = cause_of(hardware(2, 1.4, rss=large), hardware(1, 1.0, rss=large))
    assert (said.cause, said.either) == ("memory", "coherency") and "200 MiB" in said.words
    fits = cause_of(hardware(2, 1.4, rss=small), hardware(1, 1.0, rss=small))
    assert fits.cause == "coherency" and "fits into caches" in fits.words
    worse = cause_of(hardware(2, 4.0, rss=large), hardware(1, 1.0, rss=large))
    assert worse.cause == "coherency" and "more workers get less done per second" in worse.words


def test_cpus_that_share_a_core() -> None:
    """Two CPUs of one core. A run with as many as there are cores would tell the two apart."""
    said = cause_of(hardware(2, 1.5, cores=1), hardware(1, 1.0, cores=1))
    assert (said.cause, said.either) == ("smt", "coherency")
    assert "2 threads at once on 1 cores, perhaps as their CPUs share them, or" in said.words
    assert cause_of(hardware(2, 1.5, cores=2), hardware(1, 1.0, cores=2)).cause == "coherency"


def test_a_clock_that_falls_when_more_cpus_are_busy() -> None:
    base = hardware(1, 1.0, khz=4_000_000)
    said = cause_of(hardware(2, 1.3, khz=3_200_000), base)
    assert said.cause == "clock" and "1.25 × as fast in the base" in said.words
    assert cause_of(hardware(2, 1.3, khz=3_990_000), base).cause == "coherency"


def test_a_thread_for_each_task() -> None:
    """Most of them are not listed; the first one starts them."""
    first = thread(0.6, futex=0.39, name="program", tid=FIRST, switches=9000)
    tasks = [thread(0.5, name="program", lived=0.001, switches=2)] * 20
    for level in (1, 2):
        said = cause_of(cell(level, [first, *tasks], wall=0.4, total=20_001, system=0.5), None)
        assert said.cause == "kernel" and "20,001 threads were started" in said.words


# -- who is not accused -----------------------------------------------------------------------


NAMED = ("serial", "imbalance", "stage", "collector")


def test_work_that_is_divided_evenly_accuses_nobody() -> None:
    own = cell(2, [worker(), worker(), joining()], wall=0.5)
    assert cause_of(own, BASE).cause == "none"
    assert all(abs(part) < 0.02 for part in lost(own).parts.values())


def test_a_short_start_and_a_little_unevenness_accuse_nobody() -> None:
    started = cell(2, [worker(lived=0.96), worker(lived=0.96), joining(0.04)], wall=0.52)
    uneven = cell(2, [worker(), worker(lived=0.95), joining()], wall=0.515)
    for own in (started, uneven):
        assert cause_of(own, BASE).cause not in NAMED


def test_threads_of_a_runtime_that_only_wait_are_not_accused() -> None:
    """As in Go: one thread watches, others wait for goroutines that never come."""
    watching = worker(0.01, switches=3000, sleep=0.98)
    idle = [worker(0.002, switches=n, futex=0.99) for n in (1, 3, 40)]
    first = thread(0.99, name="program", tid=FIRST, switches=20)
    base = cell(1, [first, watching, *idle])
    own = cell(2, [first, worker(0.99, switches=20), watching, *idle], wall=0.51)
    assert cause_of(own, base).cause == "none"


@pytest.mark.parametrize("level", [2, 16])
def test_idle_threads_of_a_pool_are_no_imbalance(level: int) -> None:
    idle = [worker(0.0, futex=0.99, switches=1)] * (level - 2)
    own = cell(level, [worker(), worker(), *idle, joining()], wall=0.5)
    assert cause_of(own, BASE).cause == "none"


def test_sleepers_that_scale_are_not_accused() -> None:
    sleeper = worker(0.01, sleep=0.98, switches=200)
    base = cell(1, [sleeper, joining()])
    for level in (2, 8):
        own = cell(level, [*[sleeper] * level, joining()], wall=1 / level)
        assert cause_of(own, base).cause == "none"


def test_a_lock_is_a_lock() -> None:
    held = worker(0.6, futex=0.39, switches=2000)
    own = cell(2, [held, held, joining()], wall=0.85, words=[(78, 2)])
    assert cause_of(own, BASE).cause == "lock"


def test_a_lock_that_prefers_one_thread_is_no_imbalance() -> None:
    """Both have the same work; one got the lock all the time and ended early."""
    starved = worker(0.52, futex=0.47, switches=800)
    first = worker(0.98, lived=0.53, futex=0.02, switches=300)
    own = cell(2, [first, starved, joining()], wall=0.97, words=[(47, 2)])
    assert cause_of(own, BASE).cause == "lock"


def test_threads_that_sleep_beside_a_busy_one_do_not_wait_for_it() -> None:
    """They work as much as consumers would, but by timers."""
    ticking = worker(0.25, sleep=0.74, switches=900)
    own = cell(2, [producer(), ticking, ticking, joining()])
    assert cause_of(own, cell(1, [producer(), ticking, joining()])).cause != "stage"


def test_a_collector_that_is_not_one_of_a_jvm_is_a_thread_like_others() -> None:
    """Whatever a program calls its threads."""
    threads = [thread(0.99, name="GC Thread#0", switches=2), thread(0.99, name="GC Thread#1")]
    own = cell(2, [*threads, joining()], wall=0.51)
    assert lost(own).parts["collector"] == 0


def test_a_worker_that_others_keep_from_its_cpu_has_no_more_work() -> None:
    """It ends later; the other one did as much and had ended."""
    own = cell(2, [worker(1.0, lived=0.5), worker(0.5, queue=0.5), joining()], foreign=0.25)
    assert lost(own).parts["imbalance"] < 0.05
    assert cause_of(own, BASE).cause == "contamination"


def test_processes_outside_the_trial_are_none_of_these() -> None:
    waiting = worker(0.5, queue=0.5)
    own = cell(2, [waiting, waiting, joining()], foreign=0.5)
    assert lost(own).parts["queue"] == pytest.approx(1, abs=0.05)
    assert cause_of(own, BASE).cause == "contamination"


# -- what is not known ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "more"),
    [
        (None, {}),  # no factor counts the workers
        (2, {"total": 900}),  # most threads are not listed
        (2, {"phase": True}),  # the program says itself what is to be measured
        (2, {"asked": Asked(Purposes("target", "target", ("load",), True))}),
    ],
)
def test_where_the_division_is_not_known_there_is_none(
    level: float | None, more: dict[str, Any]
) -> None:
    found = cell(level, [worker(), worker(lived=0.4), joining()], **more)
    assert found.capacity == {} and loss_of(found, BASE) is None
    assert cause_of(found, BASE).cause not in ("imbalance", "serial")


def test_a_life_that_is_not_known_leaves_the_division_out() -> None:
    made = program([worker(), worker(lived=0.4), joining()])
    listed = made.threads.listed
    unknown = (msgspec.structs.replace(listed[0], lived_ns=None), *listed[1:])
    threads = msgspec.structs.replace(made.threads, listed=unknown)
    assert capacity_of(made, 2, 2, 0.0) is not None
    assert capacity_of(msgspec.structs.replace(made, threads=threads), 2, 2, 0.0) is None


@pytest.mark.parametrize(
    ("level", "taken", "is_known"), [(2, 0.0, True), (2, WALL / 10, False), (4, 0.0, False)]
)
def test_a_wait_for_a_cpu_that_is_not_known_is_not_taken_as_none(
    level: int, taken: float, is_known: bool
) -> None:
    """It could only be none where each worker had a CPU, and no other process took one."""
    made = program([worker(), worker(), joining()], queue_absent="not permitted")
    assert (capacity_of(made, level, 2, taken) is not None) == is_known


def test_a_single_trial_names_no_loss() -> None:
    own = cell(2, [worker(), worker(lived=0.43), joining()], wall=0.7)
    one = breakdown(own.accounts[:1])
    assert one is not None and cause_of(one, BASE).cause != "imbalance"


def test_the_parts_add_up_whatever_the_threads_did() -> None:
    rng = random.Random(7)
    for _ in range(200):
        threads = [joining(rng.uniform(0, 0.9))]
        for _ in range(rng.randint(0, 9)):
            cpu = rng.random()
            queue = rng.uniform(0, 1 - cpu)
            name = rng.choice(["program", "VM Thread", "GC Thread#1", "writer"])
            switches = rng.choice([1, 20, 2000])
            lived = rng.uniform(0.01, 1)
            threads.append(thread(cpu, queue, name=name, switches=switches, lived=lived))
        made = program(threads, wall=rng.uniform(0.1, 3))
        found = capacity_of(made, rng.choice([1, 2, 3, 64]), rng.choice([1, 2, 4]), WALL / 10)
        assert found is not None
        parts = {name: getattr(found, name) for name in PARTS}
        assert sum(parts.values()) == pytest.approx(found.workers * made.wall_ns)
        assert parts.pop("helping") <= 0 and min(parts.values()) >= 0


def test_one_worker_has_nobody_to_share_a_lock_with() -> None:
    """A thread for each task: the first thread waits for one after the other."""
    first = thread(0.5, futex=0.49, name="program", tid=FIRST, switches=9000)
    task = worker(0.45, futex=0.54, switches=9000)
    assert cause_of(cell(1, [first, task]), None).cause == "none"
    assert cause_of(cell(2, [first, task]), None).cause == "lock"


def test_a_worker_that_is_kept_from_a_cpu_is_no_stage() -> None:
    """Four workers of a pool share a lock, on a busy machine: one of them waits for a CPU for most
    of its life, and so does a thread that hardly does anything."""
    kept = worker(0.1, queue=0.85, futex=0.05, switches=50)
    beside = thread(0.02, 0.5, "handler", tid=FIRST, poll=0.48, switches=180)
    own = cell(4, [kept, *[worker(0.1, queue=0.5, futex=0.4, switches=50)] * 3, beside])
    assert own.stage is None
    busy = worker(0.6, queue=0.35, futex=0.05, switches=50)
    assert cell(2, [busy, *[worker(0.2, futex=0.8, switches=50)] * 2, joining()]).stage is not None


# -- threads that are woken in vain ------------------------------------------------------------


def herd(
    level: int, cpu: float, wall: float, switches: int, system: float, futex: float = 0.3
) -> Breakdown:
    """Threads that share two CPUs, and wait at futexes again and again. ``cpu`` is the CPU time of
    all, of which ``system`` is the kernel's, both as CPUs' worth of the wall time."""
    each = cpu / level
    one = worker(each, futex=futex, queue=1.0 - each - futex, switches=switches)
    return cell(level, [one] * level, wall=wall, system=system, peak=level)


HERD_BASE = herd(1, 0.7, 1.0, switches=2000, system=0.1)


def test_threads_that_are_woken_in_vain_are_a_lock() -> None:
    """The same work takes 2.9 times the CPU time, nearly all of that in the kernel."""
    own = herd(16, 2.0, 1.02, switches=2000, system=1.4)
    said = cause_of(own, HERD_BASE)
    assert said.cause == "lock"
    assert "sleep and are woken 16.0 × as often, at 2.9 × the CPU time" in said.words


@pytest.mark.parametrize(
    "own",
    [
        herd(16, 2.0, 0.36, switches=2000, system=0.3),  # each finds work: no more CPU time
        herd(16, 2.0, 1.02, switches=2000, system=0.4),  # more CPU time, but in the program
        herd(16, 2.0, 1.02, switches=150, system=1.4),  # hardly more sleeps for the same work
        herd(16, 1.375, 0.56, switches=2000, system=0.29),  # hardly more CPU time
    ],
)
def test_threads_that_find_work_are_no_herd(own: Breakdown) -> None:
    assert "are woken" not in cause_of(own, HERD_BASE).words


def short_rounds(operation: str | None, readings: int = 40) -> Breakdown:
    """Eight threads on two CPUs that meet thousands of times, each with as much to do."""
    found = waits_at(("join", 300), ("barrier", readings))
    listed = tuple(msgspec.structs.replace(it, operation=operation) for it in found.listed)
    sites = msgspec.structs.replace(found, listed=listed)
    one = worker(0.25, futex=0.5, queue=0.25, switches=20_000)
    return cell(8, [*[one] * 8, joining()], wall=0.9, system=0.7, peak=9, sites=sites)


def test_even_rounds_at_a_barrier_cost_the_kernel_time_and_wait_for_no_lock() -> None:
    """Each thread sleeps in each round, and finds its part of the next one when it is woken."""
    base = cell(1, [worker(1.0, switches=2), joining()], system=0.01)
    said = cause_of(short_rounds("pthread_barrier_wait"), base)
    assert said.cause == "cpu", said.words
    # The same at a condition that its own function signals to all: they may be woken in vain.
    made = cause_of(short_rounds("pthread_cond_wait"), base)
    assert (made.cause, made.either) == ("lock", "cpu")


def test_uneven_rounds_at_a_named_barrier_are_no_herd() -> None:
    """One of eight has more work in each round, and sleeping and waking costs the kernel time."""
    base = cell(1, [worker(1.0, switches=2), joining()], system=0.01)
    heavy = worker(0.53, futex=0.02, queue=0.45, switches=9000)
    light = worker(0.14, futex=0.66, queue=0.2, switches=20_000)

    def rounds(operation: str) -> Breakdown:
        found = waits_at(("join", 300), ("barrier", 40))
        listed = tuple(msgspec.structs.replace(it, operation=operation) for it in found.listed)
        sites = msgspec.structs.replace(found, listed=listed)
        threads = [heavy, *[light] * 7, joining()]
        return cell(8, threads, wall=0.85, system=0.3, peak=9, sites=sites)

    assert "are woken" not in cause_of(rounds("pthread_barrier_wait"), base).words
    assert "are woken" in cause_of(rounds("pthread_cond_wait"), base).words


def test_even_rounds_without_a_known_place_are_known_by_their_words() -> None:
    base = cell(1, [worker(1.0, switches=2), joining()], system=0.01)
    one = worker(0.25, futex=0.5, queue=0.25, switches=20_000)
    for values, cause in ((32, "cpu"), (0, "lock")):
        own = cell(
            8, [*[one] * 8, joining()], wall=0.9, system=0.7, peak=9, words=[(400, 8, values)]
        )
        assert cause_of(own, base).cause == cause


# -- small losses --------------------------------------------------------------------------------


def test_a_lock_that_costs_hardly_any_speed_up_is_not_accused() -> None:
    """Threads wait for one another for 3 % of the time, or for 12 %."""
    for waiting, cause in ((0.03, "none"), (0.12, "lock")):
        held = worker(1 - waiting, futex=waiting, switches=100)
        own = cell(2, [held, held], wall=0.5 / (1 - waiting), words=[(3, 2)])
        said = cause_of(own, BASE)
        assert said.cause == cause, waiting


def test_more_threads_than_cpus_that_wait_for_one_another_cost_nothing() -> None:
    """Sixteen threads wait at the end of each round, as often as not, while two run."""
    waiting = worker(0.125, futex=0.6, queue=0.275, switches=600)
    own = cell(16, [waiting] * 16, wall=0.5, words=[(500, 16)])
    assert cause_of(own, BASE).cause != "lock"
    costly = cell(16, [waiting] * 16, wall=0.7, words=[(500, 16)])
    assert cause_of(costly, BASE).cause == "lock"


def jvm(level: int, wall: float, switches: int, stops: int = 3, queue: float = 0.0) -> Breakdown:
    """Workers of a JVM that wait for a tenth of the time, in so many sleeps. It stops all of them
    ``stops`` times, and its compiler waits for a CPU for this part of the time."""
    one = thread(0.9, futex=0.1, name="Thread-1", switches=switches)
    own = [
        thread(0.02, name="VM Thread", futex=0.98, switches=stops),
        thread(0.01, queue, name="C2 CompilerThre", futex=0.99 - queue, switches=20),
        thread(0.02, name="java", tid=FIRST, futex=0.98, switches=20),
    ]
    return cell(level, [*[one] * level, *own], wall=wall, words=[(3, 2)])


def test_threads_that_a_jvm_stops_wait_for_no_lock() -> None:
    """It stops them all to collect garbage, and each sleeps once for each time."""
    base = jvm(1, 1.0, switches=0)
    assert cause_of(jvm(2, 0.7, switches=150), base).cause == "lock"
    stopped = cause_of(jvm(2, 0.7, switches=150, stops=140), base)
    assert stopped.cause != "lock"
    assert cause_of(jvm(2, 0.7, switches=150, stops=100), base).cause == "lock"


def test_slow_code_while_the_compiler_waits_for_a_cpu_is_no_shared_data() -> None:
    base = jvm(1, 1.0, switches=0)
    plain = cause_of(jvm(2, 0.9, switches=3), base)
    assert plain.cause == "coherency"
    assert ": perhaps data that the threads share" in plain.words
    assert plain.words.endswith("or the compilers or the collector of the JVM")
    assert ": perhaps data that the threads share" in reason("threads=2", plain)
    said = cause_of(jvm(2, 0.9, switches=3, queue=0.5), base)
    assert said.cause == "none" and "the compiler of the JVM waited 450 ms for a CPU" in said.words
    assert cause_of(jvm(2, 0.9, switches=3, queue=0.1), base).cause == "coherency"


# -- a pool of one ------------------------------------------------------------------------------


def pooled(level: int, wall: float = 1.0, futex: float = 0.0, cpu: float = 0.02) -> Breakdown:
    """Workers that ask a process which sleeps for each answer; it is switched as often as they."""
    network = (1 - cpu - futex) * 0.95
    asks = worker(cpu, futex=futex, network=network, switches=1000)
    answers = thread(0.01, sleep=0.98, name="database", tid=900, pid=900, switches=1000)
    return cell(level, [*[asks] * level, answers], wall=wall)


def test_who_waits_for_the_connection_of_one_that_waits_for_an_answer_is_at_a_lock() -> None:
    said = cause_of(pooled(2, futex=0.5), pooled(1))
    assert (said.cause, said.either) == ("lock", "stage")
    assert "whose holder waits for an answer" in said.words


@pytest.mark.parametrize(
    ("own", "base"),
    [
        (pooled(2, wall=0.7, futex=0.3), pooled(1)),
        (pooled(2, futex=0.5), pooled(1, futex=0.5)),
        (pooled(2, futex=0.5, cpu=0.3), pooled(1, cpu=0.3)),
        (pooled(2), pooled(1)),
    ],
    ids=["two get more done", "the lone one lacks work", "threads run", "nobody is at a futex"],
)
def test_who_asks_is_at_no_lock_where(own: Breakdown, base: Breakdown) -> None:
    assert "whose holder waits for an answer" not in cause_of(own, base).words


# -- a lock that is hardly ever free ------------------------------------------------------------


def unfair(operation: str, cpu: float = 0.01, primitive: str = "mutex") -> Breakdown:
    """One worker takes a lock back before the other, which it has woken, runs."""
    outrun = worker(cpu, futex=0.99 - cpu, switches=4000, tid=202)
    waiter = ThreadReadings(202, 12)
    site = SiteRecord(primitive, "futex", "/app", "0x1", "cfi", 12, 1, operation=operation,
                      waiters=(waiter,))  # fmt: skip
    sites = SitesRecord(readings=12, listed=(site,))
    holder = worker(0.98, switches=20, tid=201)
    return cell(2, [holder, outrun, joining()], sites=sites, words=[(95, 1)])


@pytest.mark.parametrize("cpu", [0.01, 0.15])
def test_who_hardly_ever_gets_a_lock_waits_for_it_and_is_no_serial_or_uneven_work(
    cpu: float,
) -> None:
    own = unfair("pthread_mutex_lock", cpu)
    said = cause_of(own, BASE)
    assert said.cause == "lock" and own.threads == 2
    loss = lost(own)
    assert loss.parts["waiting"] > 0.8
    assert max(loss.parts["serial"], loss.parts["imbalance"]) < 0.02


@pytest.mark.parametrize(
    ("cpu", "primitive", "operation", "cause"),
    [
        (0.01, "condition", "pthread_cond_wait", "serial"),
        (0.01, "mutex", "BaseContext.Pool", "serial"),
        (0.15, "condition", "pthread_cond_wait", "imbalance"),
    ],
)
def test_who_waits_elsewhere_for_the_busiest_thread_has_less_work(
    cpu: float, primitive: str, operation: str, cause: str
) -> None:
    own = unfair(operation, cpu, primitive)
    assert cause_of(own, BASE).cause == cause
    assert own.threads == (2 if cpu > 0.1 else 1)


# -- work that each worker does anew --------------------------------------------------------------


def processes(level: int, ratio: float, rss: int = 3 << 20, virtual: bool = False) -> Breakdown:
    """Processes of one thread each, whose CPU time for the same work is so many times as much."""
    own = [worker(tid=200 + n, pid=200 + n) for n in range(level)]
    parent = thread(0.001, child=0.99, name="program", tid=FIRST, switches=3)
    return cell(level, [*own, parent], wall=ratio / level, rss=rss, virtual=virtual)


def test_work_that_each_process_does_anew_is_not_called_shared_data() -> None:
    """Each reads the same input before it begins."""
    said = cause_of(processes(2, 1.5), processes(1, 1.0))
    assert said.cause == "none" and "or work that each worker does anew" in said.words
    large = 200 << 20
    said = cause_of(processes(2, 1.5, large), processes(1, 1.0, large))
    assert (said.cause, said.either) == ("memory", "coherency")
    assert "or work that each worker does anew" in said.words
    # In a virtual machine nothing else is certain, either.
    said = cause_of(processes(2, 1.5, virtual=True), processes(1, 1.0, virtual=True))
    assert (said.cause, said.either) == ("none", None)
    assert "share a core of its host" in said.words
    # So much cannot be done anew by two.
    assert cause_of(processes(2, 3.0), processes(1, 1.0)).cause == "coherency"
    assert cause_of(hardware(2, 1.5, rss=3 << 20), hardware(1, 1.0)).cause == "coherency"


def test_waits_of_the_first_thread_for_a_cpu_are_no_loss_of_the_workers() -> None:
    """It waits while they run, and starts nothing late: they are what the capacity is of."""
    base = cell(1, [worker(), joining()])
    busy = worker(0.6, queue=0.1, futex=0.3, switches=60)
    first = thread(0.1, queue=0.4, futex=0.5, name="program", tid=FIRST, switches=40)
    own = cell(2, [busy, busy, first], wall=0.7)
    assert own.capacity["queue"][0] / (0.7 * WALL) == pytest.approx(0.2, abs=0.02)
    assert lost(own, base).possible == 2


def test_cpus_of_a_virtual_machine_may_share_a_core_of_its_host() -> None:
    """It does not tell, and two threads of one core cost no more than twice as much."""
    slow = [worker(), worker(), joining()]
    said = cause_of(cell(2, slow, wall=0.7, virtual=True, rss=8 << 20), BASE)
    assert (said.cause, said.either) == ("coherency", "smt")
    assert "share a core of its host" in said.words
    assert cause_of(cell(2, slow, wall=0.7, rss=8 << 20), BASE).either is None
    assert cause_of(cell(2, slow, wall=1.5, virtual=True, rss=8 << 20), BASE).either is None
    assert (
        cause_of(cell(2, slow, wall=0.7, virtual=True, rss=8 << 20, cores=1), BASE).cause == "smt"
    )
    large = cause_of(cell(2, slow, wall=0.7, virtual=True, rss=200 << 20), BASE)
    assert (large.cause, large.either) == ("memory", "coherency")
    assert "share a core of its host" in large.words


def test_uneven_work_by_turns_is_no_chance() -> None:
    """Its interval has 0, but each trial lost more than any of the base."""
    sides = []
    for lives in (0.9, 0.85, 0.25, 0.2):
        made = cell(2, [worker(), worker(lived=lives), joining()], wall=1 / (1 + lives))
        sides.append(made.accounts[0])
    own = breakdown(sides)
    assert own is not None
    base = breakdown(list(BASE.accounts[:4]))
    assert base is not None
    assert cause_of(own, base).cause == "imbalance"


def test_a_container_of_a_virtual_machine_is_on_a_virtual_machine() -> None:
    for facts, is_known in (
        ({"virtualisation": "docker", "hypervisor": True}, True),
        ({"virtualisation": "docker", "hypervisor": False}, False),
        ({"virtualisation": "docker"}, False),  # an older run
        ({"virtualisation": "kvm"}, True),
        ({"virtualisation": "virtual machine QEMU"}, True),
        ({"virtualisation": "none seen"}, False),
        ({}, False),
    ):
        assert is_virtual(facts) is is_known


def test_a_loss_is_told_at_the_speedup_of_the_figures() -> None:
    """Each part keeps its share; another quantity, or a loss of another size, changes nothing."""
    found = Loss(1.6, 2.0, {"serial": 0.1, "cpu": 0.3})

    def figure(value: float, low: float, high: float) -> Estimate:
        return Estimate(value=value, low=low, high=high, n=5)

    told = found.at(figure(1.7, 1.5, 1.8))
    assert (told.speedup, told.possible) == (1.7, 2.0)
    assert told.parts == pytest.approx({"serial": 0.075, "cpu": 0.225})
    for other in (
        Estimate(value=1.7, n=1),
        figure(1.8, 1.7, 1.9),  # the speed-up of the mean times is outside
        figure(1.95, 1.5, 2.4),  # an eighth of the loss
        figure(2.1, 1.5, 2.4),  # no loss
    ):
        assert found.at(other) == found._replace(by_means=True), "that it is another one is told"
    whole = Loss(2.0, 2.0, {"serial": 0.1, "cpu": -0.1})
    assert whole.at(figure(1.9, 1.8, 2.1)) == whole._replace(by_means=True)
    assert found.at(None) == found and found.at(Estimate(value=1.604, n=1)) == found
    assert Loss(1.6, 2.0, {}).at(figure(1.95, 1.9, 2.4)) == Loss(1.95, 2.0, {}), "it has no parts"
