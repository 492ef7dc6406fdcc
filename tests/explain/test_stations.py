"""What is used up where a server was loaded: from made up accounts, and from a record."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from concurve.definition.purposes import Purposes
from concurve.explain.accounts import account
from concurve.explain.breakdown import Breakdown, breakdown
from concurve.explain.causes import cause_of
from concurve.explain.stations import (
    Limit,
    Serving,
    Station,
    limit_of,
    most_gain,
    serving_of,
    used_words,
)
from concurve.explain.verdict import Case, Verdict
from concurve.explain.weights import Weight, outweighed, weigh
from concurve.readings.measures import measure
from concurve.readings.operations import Asked
from concurve.readings.under_load import under_load_ns
from concurve.wire.record import (
    CpuQuota,
    GrantedControls,
    MachineRecord,
    Outcome,
    PhaseRecord,
    RoleRecord,
    Runtime,
    ThreadRecord,
    ThreadsRecord,
    TrialRecord,
    Usage,
)
from concurve.wire.report import IndicatorLine
from concurve.wire.spec import Controls
from tests.helpers.explaining import Thread, record
from tests.helpers.explaining import role as made_role
from tests.helpers.explaining import thread as made_thread

SECOND = 1_000_000_000


def serving(
    worker: float, io: float, client: float, granted: int = 2, client_granted: int = 2,
    together: int = 2, io_threads: int = 2,
) -> Serving:  # fmt: skip
    stations = (
        Station("worker", 1, worker, worker),
        Station("io", io_threads, io, io / io_threads),
    )
    return Serving(stations, worker + io, client, granted, client_granted, together)


@pytest.mark.parametrize(
    ("trial", "cause", "name", "said"),
    [
        (
            serving(0.4, 0.55, 0.9, granted=1),
            "cpu",
            "CPUs",
            "server's CPU is used up (io 0.55 in 2 threads",
        ),
        (serving(0.9, 0.3, 0.7), "cpu", "worker", "the thread worker runs 90 % of the time"),
        (serving(0.9, 1.2, 2.0, 4, 4, 8), "cpu", "worker", "the thread worker runs 90 %"),
        (serving(0.3, 1.8, 2.0, 4, 4, 8), "cpu", "io", "each of the 2 threads io runs 90 %"),
        (
            serving(0.4, 0.5, 1.05),
            "cpu",
            "CPUs",
            "server and load together use all 2 CPUs (io 0.50 in 2 threads, worker 0.40",
        ),
        (serving(0.3, 0.4, 1.9, 2, 2, 4), "client", "load", "the load's 2 CPUs are used up, while"),
    ],
)
def test_what_is_used_up_is_named(trial: Serving, cause: str, name: str, said: str) -> None:
    limit = limit_of([trial, trial])
    assert limit is not None
    assert (limit.cause, limit.name) == (cause, name)
    assert said in limit.words


def test_others_with_a_small_part_of_the_cpus_do_not_limit_who_uses_up_the_rest() -> None:
    few, many = (
        limit_of([serving(0.4, 0.9, load)._replace(others=others)])
        for load, others in ((0.42, 0.2), (0.2, 0.5))
    )
    assert few is not None and (few.cause, few.name) == ("cpu", "CPUs")
    assert few.words == (
        "the 2 CPUs are used up: 1.30 by the server (io 0.90 in 2 threads, worker 0.40), 0.42 by "
        "its load and 0.20 by others"
    )
    assert many is not None and many.cause == "contamination"
    assert many.words == (
        "the 2 CPUs are used up: 0.50 by others, 1.30 by the server (io 0.90 in 2 threads, worker "
        "0.40) and 0.20 by its load"
    ), "who is the cause goes first"


def test_others_have_no_more_than_server_and_load_leave() -> None:
    """What they used is counted over the whole trial, of which the measured phase is a part."""
    limit = limit_of([serving(0.2, 0.1, 0.4)._replace(others=2.25)])
    assert limit is not None and limit.cause == "contamination"
    assert "1.30 by others, 0.30 by the server" in limit.words
    by_themselves = limit_of([serving(0.4, 0.5, 1.05)._replace(others=2.25)])
    assert by_themselves is not None and by_themselves.cause == "cpu"


@pytest.mark.parametrize(
    ("server", "client", "cpus", "gain"),
    [(0.98, 0.79, 2, 1.13), (0.5, 0.5, 4, 4.0), (1.5, 0.6, 2, 1.0), (0.0, 0.0, 2, float("inf"))],
)
def test_a_rate_grows_until_server_and_load_use_up_the_cpus(
    server: float, client: float, cpus: int, gain: float
) -> None:
    assert most_gain(server, client, cpus) == pytest.approx(gain, abs=0.005)


def test_what_more_threads_can_gain_at_most_is_told_where_the_load_shares_the_cpus() -> None:
    def remedy(load: float, **changed: float | None) -> str:
        busy = Serving((Station("nginx", 1, 0.98, 0.98),), 0.98, load, 2, 2, 2)
        limit = limit_of([busy._replace(**changed)])  # type: ignore[arg-type]
        assert limit is not None and (limit.cause, limit.name) == ("cpu", "nginx")
        return limit.remedy

    assert remedy(0.79) == (
        "at this CPU time per request more of them can gain 1.13× at most: the load takes 45 % of "
        "it"
    )
    assert remedy(0.0) == "", "its load is not known"
    assert remedy(0.79, together=4) == "", "the load has CPUs of its own"
    assert remedy(0.79, granted=4, client_granted=4, together=4) == "", "2.3×: no bound to speak of"
    assert remedy(0.79, client_quota=1.0) == "", "a quota is a bound, too"


def test_nothing_is_named_where_nothing_is_used_up() -> None:
    assert limit_of([serving(0.3, 0.3, 0.6)]) is None
    assert limit_of([serving(0.3, 0.3, 0.6, 2, 2, 4)]) is None


def test_where_nothing_is_used_up_it_is_said_who_used_how_much() -> None:
    assert used_words([serving(0.06, 0.46, 0.76), serving(0.06, 0.46, 0.76)]) == (
        "no resource is used up: the server used 0.52 CPUs (io 0.46 in 2 threads, worker 0.06) and "
        "its load 0.76, of 2"
    )


def test_a_cell_that_is_served_names_its_limit_or_who_used_how_much() -> None:
    def cell(cpu: float, load: float) -> Breakdown:
        server = role("target", cpu, {"worker": cpu}, (0, 1))
        done = IndicatorLine(indicator="operations", value=1000.0)
        client = msgspec.structs.replace(role("load", load, {}, (0, 1)), indicators=(done,))
        asked = Asked(Purposes("target", "target", ("load",), True))
        found = account(trial(server, client), asked)
        assert found is not None
        made = breakdown([found, found])
        assert made is not None
        return made

    busy = cause_of(cell(0.9, 0.5), None, True)
    assert (busy.cause, busy.limit) == ("cpu", "worker")
    idle = cause_of(cell(0.2, 0.5), None, True)
    assert (idle.cause, idle.limit) == ("none", "")
    assert idle.words.endswith("the server used 0.20 CPUs (worker 0.20) and its load 0.50, of 2")


def test_a_thread_that_runs_or_waits_for_a_cpu_all_the_time_has_no_time_left() -> None:
    """It is not used up by its own CPU time, and no CPU is."""
    busy = Serving((Station("nginx", 1, 0.81, 0.81, 0.96),), 0.81, 0.6, 2, 2, 2)
    limit = limit_of([busy])
    assert limit is not None and (limit.cause, limit.name) == ("cpu", "nginx")
    assert "runs 81 % of the time and waits for a CPU 15 % of it" in limit.words
    idle = Serving((Station("nginx", 1, 0.3, 0.3, 0.96),), 0.3, 0.6, 2, 2, 2)
    assert limit_of([idle]) is None, "others keep it from the CPU"


def test_threads_that_wait_for_more_of_the_cpus_than_is_idle_lack_cpus() -> None:
    """Two sessions of a database and their load, on two CPUs: a third CPU helps, and no session."""

    def limit(cpus: int, queued: float = 0.32, threads: int = 2) -> Limit | None:
        ran = 0.95 - queued
        sessions = Station("postgres", threads, threads * ran, ran, 0.95)
        return limit_of([Serving((sessions,), threads * ran, 0.5, cpus, cpus, cpus)])

    full = limit(2)
    assert full is not None and (full.cause, full.name, full.is_thread) == ("cpu", "CPUs", False)
    assert "runs 63 % of the time and waits for a CPU 32 % of it" in full.words
    assert full.waits == pytest.approx(0.32) and full.remedy == "more clients only queue"
    idle = limit(4)
    assert idle is not None and idle.name == "postgres", "CPUs are idle"
    short = limit(4, queued=0.3, threads=5)
    assert short is not None and short.name == "CPUs"
    apart = Serving((Station("io", 2, 1.26, 0.63, 0.95),), 1.26, 0.5, 2, 2, 4)
    own = limit_of([apart])
    assert own is not None and own.name == "io", "0.74 of the server's own CPUs were idle"


def test_a_thread_that_waits_for_cpus_that_others_have_is_disturbed() -> None:
    """A server and its load, beside others on the machine: not the CPUs are too few."""

    def cell(foreign: float) -> Breakdown:
        server = role("target", 0.55, {"worker": 0.55}, (0, 1))
        usage = Usage(cpu_ns=int(0.55 * SECOND), run_queue_ns=int(0.4 * SECOND))
        phase = msgspec.structs.replace(server.phases[0], usage=usage)
        waiting = msgspec.structs.replace(server.threads.listed[0], usage=usage)
        threads = msgspec.structs.replace(server.threads, listed=(waiting,))
        server = msgspec.structs.replace(server, phases=(phase,), threads=threads, usage=usage)
        done = IndicatorLine(indicator="operations", value=1000.0)
        client = msgspec.structs.replace(role("load", 0.4, {}, (0, 1)), indicators=(done,))
        record = msgspec.structs.replace(
            trial(server, client),
            wall_ns=SECOND,
            machine=MachineRecord(
                cpus=2, busy_ns=SECOND, steal_ns=0, foreign_cpu_ns=int(foreign * SECOND),
                foreign_low_priority_ns=0, tick_ns=10_000_000,
            ),
        )  # fmt: skip
        asked = Asked(Purposes("target", "target", ("load",), True))
        found = account(record, asked)
        assert found is not None
        made = breakdown([found, found])
        assert made is not None
        return made

    alone = cause_of(cell(0.0), None, True)
    assert (alone.cause, alone.limit) == ("cpu", "worker")
    beside = cause_of(cell(0.9), None, True)
    assert (beside.cause, beside.limit) == ("contamination", "")
    assert "processes outside the trial used 45 %" in beside.words


def test_waits_for_cpus_are_divided_as_those_of_the_threads_lives() -> None:
    server = role("target", 0.8, {"worker": 0.8}, (0, 1))
    usage = Usage(cpu_ns=int(0.8 * SECOND), run_queue_ns=int(0.15 * SECOND))
    phase = msgspec.structs.replace(server.phases[0], usage=usage)
    waiting = msgspec.structs.replace(server.threads.listed[0], usage=usage)
    threads = msgspec.structs.replace(server.threads, listed=(waiting,))
    server = msgspec.structs.replace(server, phases=(phase,), threads=threads)
    found = serving_of(trial(server, role("load", 0.5, {}, (0, 1))), "target", ["load"])
    assert found is not None and found.stations[0].ready == pytest.approx(0.95)


def test_a_single_thread_of_its_kind_is_the_least_and_the_most() -> None:
    one_busy = Serving((Station("io", 4, 1.1, 0.05),), 1.1, 1.0, 4, 4, 8)
    assert limit_of([one_busy]) is None, "the others could take more"


def role(name: str, cpu: float, threads: dict[str, float], cpus: tuple[int, ...]) -> RoleRecord:
    """A role that used ``cpu`` seconds in a measured phase of one second."""
    phase = PhaseRecord(
        name="measure", begin_ns=0, wall_ns=SECOND, usage=Usage(cpu_ns=int(cpu * SECOND))
    )
    listed = tuple(
        ThreadRecord(tid=n, pid=1, name=kind, source="exit", usage=Usage(cpu_ns=int(own * SECOND)))
        for n, (kind, own) in enumerate(threads.items())
    )
    return RoleRecord(
        name=name,
        wall_ns=2 * SECOND,
        phases=(phase,),
        threads=ThreadsRecord(total=len(listed), listed=listed),
        controls=GrantedControls(requested=Controls(cpus=cpus), cpus=cpus),
    )


def trial(*roles: RoleRecord, cpus: int = 2) -> TrialRecord:
    return TrialRecord(
        format=1, trial="t", outcome=Outcome(kind="ok"), roles=roles,
        machine=MachineRecord(cpus=cpus),
    )  # fmt: skip


def test_the_phases_time_is_divided_as_that_of_the_threads_lives() -> None:
    lives = {"worker": 1.0, "io-1": 0.5, "io-2": 0.5, "attendant": 9.0}
    server = role("target", 1.0, lives, (0, 1))
    found = serving_of(trial(server, role("load", 0.9, {}, (0, 1))), "target", ["load"])
    assert found is not None
    assert [(s.name, s.threads) for s in found.stations] == [("worker", 1), ("io", 2)]
    assert [s.cpus for s in found.stations] == pytest.approx([0.5, 0.5])
    assert (found.server, found.client, found.together) == pytest.approx((1.0, 0.9, 2))
    limit = limit_of([found])
    assert limit is not None and limit.name == "CPUs"


def test_cpus_of_their_own_are_no_shared_ones() -> None:
    server = role("target", 0.3, {"worker": 0.3}, (0, 1))
    loads = [role(f"load-{n}", 0.95, {}, (2, 3)) for n in (1, 2)]
    found = serving_of(trial(server, *loads, cpus=4), "target", ["load-1", "load-2"])
    assert found is not None
    assert (found.granted, found.client_granted, found.together) == (2, 2, 4)
    assert limit_of([found]) == Limit(
        "client",
        "load",
        "the load's 2 CPUs are used up, while the server used 0.30 CPUs (worker 0.30)",
        remedy="the load cannot ask for more: give it more CPUs, or a machine of its own",
    )


def test_a_server_that_bound_itself_to_some_cpus_may_use_only_these() -> None:
    """``taskset`` in its command: the kernel granted all to the role."""
    every, one = (0, 1), (0,)
    server = role("target", 0.87, {"nginx": 0.435, "nginx-2": 0.435}, every)
    load = role("load", 0.11, {"wrk": 0.11}, every)
    ends = {}
    for cpus in (one, every, None):
        bound = [
            msgspec.structs.replace(
                side,
                threads=ThreadsRecord(
                    total=2,
                    listed=tuple(
                        msgspec.structs.replace(it, cpus=cpus, pid=it.tid + 1)
                        for it in side.threads.listed
                    ),
                ),
            )
            for side in (server, load)
        ]
        found = serving_of(trial(*bound), "target", ["load"])
        assert found is not None
        ends[cpus] = (found.granted, found.together, limit_of([found]))
    assert ends[one] == (1, 1, Limit(
        "cpu", "CPUs",
        "server and wrk together use the only CPU (nginx 0.87 in 2 processes, wrk 0.11)",
        remedy="more clients only queue",
    ))  # fmt: skip
    assert ends[every] == ends[None] == (2, 2, None), "as far as is known"


def test_a_server_whose_thread_has_that_name_is_named_once() -> None:
    sides = role("target", 0.75, {"server": 0.75}, (0,)), role("load", 0.2, {"wrk": 0.2}, (0,))
    found = serving_of(trial(*sides), "target", ["load"])
    assert found is not None
    limit = limit_of([found._replace(together=1)])
    assert limit is not None
    assert limit.words == "server and wrk together use the only CPU (0.75, wrk 0.20)"


def test_without_a_phase_or_its_cpu_time_nothing_is_said() -> None:
    server, load = role("target", 1.0, {"worker": 1.0}, (0,)), role("load", 1.0, {}, (0,))
    bare = msgspec.structs.replace(server, phases=())
    assert serving_of(trial(bare, load), "target", ["load"]) is None
    unread = msgspec.structs.replace(server.phases[0], usage=Usage())
    unread_role = msgspec.structs.replace(server, phases=(unread,))
    assert serving_of(trial(unread_role, load), "target", ["load"]) is None
    assert serving_of(trial(server), "target", []) is None


# -- a quota ------------------------------------------------------------------------------------

ASKED = Asked(Purposes("target", "target", ("load",), True))
#: As ``cpu.stat`` of each version says it of a server that was held back for 0.8 s of its two: in
#: nanoseconds, and in microseconds.
HELD_BACK = {
    "v1": CpuQuota(cpus=0.6, periods=20, throttled=19, throttled_ns=800_123_457),
    "v2": CpuQuota(cpus=0.6, periods=20, throttled=19, throttled_ns=800_123_000),
}


def ready(
    made: RoleRecord, queue: float, quota: CpuQuota | None = None, switches: int = 1000
) -> RoleRecord:
    """The role, whose threads waited for a CPU whenever they did not run: for ``queue`` seconds of
    the measured phase in all."""
    phase = made.phases[0]
    usage = Usage(cpu_ns=phase.usage.cpu_ns, run_queue_ns=int(queue * SECOND))
    each = int(queue * SECOND / len(made.threads.listed))
    listed = tuple(
        msgspec.structs.replace(
            it,
            usage=Usage(cpu_ns=it.usage.cpu_ns, run_queue_ns=each, voluntary_switches=switches),
            lived_ns=2 * SECOND,
        )
        for it in made.threads.listed
    )
    return msgspec.structs.replace(
        made,
        phases=(msgspec.structs.replace(phase, usage=usage),),
        usage=usage,
        threads=msgspec.structs.replace(made.threads, listed=listed),
        quota=quota,
    )


def measured(server: RoleRecord, load: float = 0.3, cpus: int = 2) -> Breakdown:
    """A cell of two trials of a server and its load, which has all CPUs, too."""
    done = IndicatorLine(indicator="operations", value=1000.0)
    client = role("load", load, {"load": load}, tuple(range(cpus)))
    client = msgspec.structs.replace(client, indicators=(done,))
    found = account(trial(server, client, cpus=cpus), ASKED)
    assert found is not None
    made = breakdown([found, found])
    assert made is not None
    return made


@pytest.mark.parametrize("version", HELD_BACK)
def test_a_server_with_one_thread_that_a_quota_holds_back_is_no_thread_that_is_used_up(
    version: str,
) -> None:
    """It runs for 60 % of the time and is ready for the rest, which its quota takes."""
    redis = role("target", 0.6, {"redis-server": 0.6}, (0, 1))
    said = cause_of(measured(ready(redis, 0.4, HELD_BACK[version])), None, True)
    assert (said.cause, said.limit) == ("quota", "")
    assert "is 0.6 CPU seconds a second, and it was held back in 95 % of the periods" in said.words
    free = cause_of(measured(ready(redis, 0.4)), None, True)
    assert (free.cause, free.limit) == ("cpu", "redis-server"), "others, or its load, took the CPUs"


@pytest.mark.parametrize("version", HELD_BACK)
def test_time_for_which_a_quota_held_a_thread_back_is_no_wait_for_a_cpu(version: str) -> None:
    server = ready(role("target", 0.6, {"redis": 0.6}, (0, 1)), 0.4, HELD_BACK[version])
    found = serving_of(trial(server, role("load", 0.3, {}, (0, 1))), "target", ["load"])
    assert found is not None and found.stations[0].ready == pytest.approx(0.6, abs=0.001)
    assert limit_of([found]) is not None  # what it used is all that the quota allows


def wide(cpu: float, quota: CpuQuota, threads: int = 8, queue: float = 0.1) -> RoleRecord:
    """A server in a container on a machine of 64 CPUs."""
    names = {f"worker-{n}": cpu / threads for n in range(threads)}
    return ready(role("target", cpu, names, tuple(range(64))), queue, quota)


def test_a_quota_of_two_cpus_is_used_up_by_two_of_sixty_four() -> None:
    two = CpuQuota(cpus=2.0, periods=20, throttled=3, throttled_ns=SECOND // 10)
    found = measured(wide(1.9, two), cpus=64)
    said = cause_of(found, None, True)
    assert (said.cause, said.limit) == ("quota", "")
    assert "2 CPU seconds a second, is used up (worker 1.90 in 8 threads, load 0.30)" in said.words
    assert cause_of(measured(wide(1.0, two), cpus=64), None, True).cause != "quota"
    wider = CpuQuota(cpus=100.0)
    assert cause_of(measured(wide(1.9, wider), cpus=64), None, True).cause != "quota"


def test_a_thread_that_is_used_up_needs_no_more_of_a_quota() -> None:
    """One thread cannot use more than a CPU, so a quota of one is used up, and holds nothing
    back."""
    one = CpuQuota(cpus=1.0, periods=20)
    said = cause_of(measured(wide(0.96, one, threads=1, queue=0.01), cpus=64), None, True)
    assert (said.cause, said.limit) == ("cpu", "worker")


def test_a_server_of_two_threads_is_held_back_whatever_the_machine_has() -> None:
    """Two threads that have the time of one CPU wait for half of theirs: of the time of 64 CPUs
    that is 1.6 %."""
    one = CpuQuota(cpus=1.0, periods=20, throttled=18, throttled_ns=2 * SECOND)
    said = cause_of(measured(wide(0.8, one, threads=2, queue=1.0), cpus=64), None, True)
    assert said.cause == "quota" and "in 90 % of the periods" in said.words


def test_a_load_that_a_quota_holds_back_is_the_limit() -> None:
    server = role("target", 0.3, {"worker": 0.3}, tuple(range(64)))
    quota = CpuQuota(cpus=1.5, periods=20, throttled=9, throttled_ns=SECOND)
    load = msgspec.structs.replace(role("load", 1.45, {}, tuple(range(64))), quota=quota)
    found = serving_of(trial(server, load, cpus=64), "target", ["load"])
    assert found is not None
    limit = limit_of([found])
    assert limit is not None and (limit.cause, limit.name) == ("client", "load")
    assert limit.words.startswith("the 1.5 CPU seconds a second that a quota allows the load are")


# -- how much of the loss -----------------------------------------------------------------------


def under_load(
    threads: Sequence[Thread],
    operations: float,
    load: float = 0.3,
    cpus: tuple[int, ...] = (0, 1),
    quota: CpuQuota | None = None,
) -> Breakdown:
    """A cell of trials that differ a little."""
    accounts = []
    for noise in (1.0, 1.002, 0.998, 1.001):
        server = made_role(threads, None, phase=True, noise=noise, cpus=cpus, quota=quota)
        client = made_role(
            [made_thread(load, poll=1 - load, name="load")],
            operations, "load", phase=True, noise=noise, cpus=(1,) if cpus == (0,) else (0, 1),
        )  # fmt: skip
        accounts.append(account(record(server, client), ASKED))
    found = breakdown([it for it in accounts if it is not None])
    assert found is not None
    return found


def test_a_trial_of_which_only_the_whole_life_is_known_is_no_part_of_the_cpus_used() -> None:
    made = under_load([made_thread(0.4, poll=0.6)], 1000)
    first, *others = made.accounts
    assert first.serving is not None
    halved = first.serving._replace(
        server=0.1, stations=(first.serving.stations[0]._replace(cpus=0.1),)
    )
    late = first._replace(serving=halved, is_lifetime=True)
    found, alone = breakdown([late, *others]), breakdown([late, late])
    assert found is not None and "the server used 0.40 CPUs" in found.used
    assert alone is not None and "the server used 0.10 CPUs" in alone.used


def weighed(own: Breakdown, base: Breakdown) -> tuple[Verdict, Weight]:
    said = cause_of(own, base, True)
    return said, weigh(Case(own, base, True), said)


def test_cpus_that_are_used_up_have_the_share_of_the_waits_for_them() -> None:
    """Of an operation's 1.5 ms more, 1.225 are waits for a CPU, and 0.45 are CPU time."""
    base = under_load([made_thread(0.8, poll=0.2)], 1000)
    own = under_load([made_thread(0.5, 0.49, poll=0.01)] * 4, 1600)
    said, weight = weighed(own, base)
    assert (said.cause, said.limit) == ("cpu", "CPUs")
    share, second = weight.share, weight.runner_up
    assert share is not None and share.value == pytest.approx(1.225 / 1.5, abs=0.02)
    assert share.low is not None and share.high is not None
    assert share.low < share.value < share.high
    assert second is not None and second.cause == "coherency"
    assert second.share is not None and second.share.value == pytest.approx(0.3, abs=0.02)


def test_a_thread_that_is_used_up_has_the_share_of_its_own_time_and_of_who_waits_for_it() -> None:
    """Of the 1 ms more, 0.725 are CPU time of the first thread, 0.05 are waits of the other one,
    and the rest is that one's own work."""
    base = under_load([made_thread(0.45, poll=0.55, name="main"),
                       made_thread(0.15, poll=0.85, name="io-1")], 2000)  # fmt: skip
    own = under_load([made_thread(0.95, poll=0.05, name="main"),
                      made_thread(0.3, poll=0.7, name="io-1")], 1000)  # fmt: skip
    said, weight = weighed(own, base)
    assert (said.cause, said.limit, said.station) == ("cpu", "main", "main")
    assert weight.share is not None
    assert weight.share.value == pytest.approx(0.775, abs=0.02)
    assert weight.runner_up is None, "its CPU time is counted already"


def test_a_load_that_is_used_up_has_the_share_of_the_waits_for_it() -> None:
    base = under_load([made_thread(0.3, poll=0.7)], 2000, cpus=(0,))
    own = under_load([made_thread(0.3, poll=0.7)], 1000, load=0.96, cpus=(0,))
    said, weight = weighed(own, base)
    assert (said.cause, said.limit) == ("client", "load")
    assert weight.share is not None and weight.share.value == pytest.approx(0.7, abs=0.02)


def test_a_server_that_a_quota_holds_back_has_the_share_of_that_time() -> None:
    """Of the 1 ms more, 0.8 are waits for the quota."""
    quota = CpuQuota(cpus=0.6, periods=10, throttled=9, throttled_ns=round(0.4 * SECOND))
    base = under_load([made_thread(0.95, poll=0.05)], 1000)
    own = under_load([made_thread(0.6, 0.4)], 500, quota=quota)
    said, weight = weighed(own, base)
    assert said.cause == "quota"
    assert weight.share is not None and weight.share.value == pytest.approx(0.8, abs=0.02)


def whole(name: str, threads: dict[str, float], wall: float = 1.0) -> RoleRecord:
    """A role without a phase, whose threads used so much CPU time in its whole life."""
    marked = role(name, 0.0, threads, (0, 1))
    used = Usage(cpu_ns=round(sum(threads.values()) * SECOND), run_queue_ns=0)
    return msgspec.structs.replace(marked, phases=(), usage=used, wall_ns=round(wall * SECOND))


def test_where_nobody_marks_a_phase_the_whole_run_counts() -> None:
    """A server that runs already, and a tool that knows nothing of phases."""
    server = whole("server", {"redis-server": 0.95, "bio_aof": 0.0})
    found = serving_of(trial(server, whole("client", {"bench": 0.7})), "server", ["client"])
    assert found is not None
    assert (found.server, found.client) == pytest.approx((0.95, 0.7))
    limit = limit_of([found])
    assert limit is not None and (limit.cause, limit.name) == ("cpu", "redis-server")
    assert "the thread redis-server runs 95 % of the time" in limit.words


@pytest.mark.parametrize(
    ("before", "ended_by", "loaded"),
    [
        (0.06, "itself", 0.92),
        # It may have worked in so much time, or its load had none itself for long.
        (0.3, "itself", 1.0),
        (0.06, "killed", 1.0),
    ],
)
def test_the_time_of_a_server_before_and_after_its_load_is_none_of_an_operations(
    before: float, ended_by: str, loaded: float
) -> None:
    """It serves for a second, and its load begins later and ends 20 ms earlier."""
    server = made_role([made_thread(0.6, poll=0.4)], None, "server", wall=SECOND)
    client = msgspec.structs.replace(
        made_role([made_thread(0.1, poll=0.9)], 1000.0, "client", wall=SECOND),
        released_ns=round(before * SECOND),
        wall_ns=round((0.98 - before) * SECOND),
        ended_by=ended_by,
    )
    whole_run = record(server, client)
    found = account(whole_run, Asked(Purposes("server", "server", ("client",), True)))
    assert found is not None and found.serving is not None
    assert found.wall_ns == found.thread_ns == pytest.approx(loaded * SECOND)
    assert found.blocked_ns == pytest.approx((loaded - 0.6) * SECOND)
    assert found.is_lifetime is (loaded == 1.0)
    assert found.serving.server == pytest.approx(0.6 / loaded)


@pytest.mark.parametrize("subject", ["server", "client"])
@pytest.mark.parametrize(("ended_by", "loaded"), [("itself", 0.92), ("killed", 1.0)])
def test_the_cpus_that_a_server_used_are_of_the_time_of_its_load(
    subject: str, ended_by: str, loaded: float
) -> None:
    """Whichever role is measured; a phase that is marked has its own time."""
    server = made_role([made_thread(0.6, poll=0.4)], None, "server", wall=SECOND)
    client = msgspec.structs.replace(
        made_role([made_thread(0.1, poll=0.9)], 1000.0, "client", wall=SECOND),
        released_ns=round(0.06 * SECOND),
        wall_ns=round(0.92 * SECOND),
        ended_by=ended_by,
    )
    asked = Asked(Purposes(subject, "server", ("client",), True))
    prefix = "" if subject == "server" else "server."
    found = measure(record(server, client), asked).values
    assert found[f"{prefix}cpus_used"] == pytest.approx(0.6 / loaded)
    assert found[f"{prefix}wall_seconds"] == pytest.approx(1.0), "as it was measured"
    phase = PhaseRecord(name="measure", begin_ns=0, wall_ns=SECOND // 2, usage=server.usage)
    marked = msgspec.structs.replace(server, phases=(phase,))
    used = measure(record(marked, client), asked).values[f"{prefix}cpus_used"]
    assert used == pytest.approx(1.2)


def test_a_server_that_worked_for_longer_than_its_load_ran_did_so_outside_of_it() -> None:
    server = made_role([made_thread(0.97, poll=0.03)], None, "server", wall=SECOND)
    client = msgspec.structs.replace(
        made_role([made_thread(0.1, poll=0.9)], 1000.0, "client", wall=SECOND),
        released_ns=SECOND // 20,
        wall_ns=9 * SECOND // 10,
        ended_by="itself",
    )
    assert under_load_ns(record(server, client), server, ["client"]) is None


def test_the_only_thread_of_a_load_may_be_used_up() -> None:
    """Of wrk's threads the first one only waits."""
    server = whole("server", {"redis-server": 0.6})
    client = whole("client", {"wrk": 0.001, "wrk-1": 0.92})
    found = serving_of(trial(server, client, cpus=4), "server", ["client"])
    assert found is not None
    limit = limit_of([found])
    assert limit is not None and (limit.cause, limit.name) == ("client", "load")
    assert limit.words == (
        "the load's thread wrk runs 92 % of the time, while the server used 0.60 CPUs "
        "(redis-server 0.60)"
    )
    idle = serving_of(trial(server, whole("client", {"wrk": 0.6}), cpus=4), "server", ["client"])
    assert idle is not None and limit_of([idle]) is None


def test_who_marks_no_phase_beside_others_that_do_is_not_known() -> None:
    server = whole("server", {"worker": 0.9})
    marks = role("client", 0.5, {"load": 0.5}, (0, 1))
    assert serving_of(trial(server, marks), "server", ["client"]) is None
    assert serving_of(trial(server, whole("a", {"x": 0.5})), "server", ["a", "gone"]) is None


def test_equal_quotas_of_several_loads_are_one_that_they_share() -> None:
    server = role("target", 0.3, {"worker": 0.3}, tuple(range(64)))
    quota = CpuQuota(cpus=2.0, periods=20, throttled=9, throttled_ns=SECOND)
    loads = [
        msgspec.structs.replace(role(name, 0.95, {}, tuple(range(64))), quota=quota)
        for name in ("one", "two")
    ]
    found = serving_of(trial(server, *loads, cpus=64), "target", ["one", "two"])
    assert found is not None and found.client_quota == 2.0
    limit = limit_of([found])
    assert limit is not None and (limit.cause, limit.name) == ("client", "load")


# -- servers of one thread beside strangers, and of Go ------------------------------------------


def one_worker(cpu: float, queue: float, woken: int = 9000) -> RoleRecord:
    """nginx with one worker: the process that started it only waits, and has the same name."""
    made = ready(role("target", cpu, {"nginx": 0.001, "nginx-": cpu}, (0, 1)), queue)
    listed = tuple(
        msgspec.structs.replace(
            it,
            name="nginx",
            tid=pid,
            pid=pid,
            usage=Usage(
                cpu_ns=it.usage.cpu_ns,
                run_queue_ns=waited,
                voluntary_switches=switches,
            ),
        )
        for it, pid, waited, switches in zip(
            made.threads.listed, (1, 2), (0, int(queue * SECOND)), (3, woken), strict=True
        )
    )
    return msgspec.structs.replace(
        made, threads=msgspec.structs.replace(made.threads, listed=listed)
    )


def beside(
    server: RoleRecord, load: float, foreign: float, low: float = 0.0, cpus: int = 2
) -> Breakdown:
    """A cell of such a server and its load on two CPUs of the machine, beside others that use so
    many of them."""
    done = IndicatorLine(indicator="operations", value=1000.0)
    client = msgspec.structs.replace(role("load", load, {"load": load}, (0, 1)), indicators=(done,))
    taken = int(foreign * SECOND)
    busy = int((0.69 + load) * SECOND) + taken
    server, client = (msgspec.structs.replace(side, pid=9) for side in (server, client))
    made = msgspec.structs.replace(
        trial(server, client),
        wall_ns=SECOND,
        machine=MachineRecord(
            cpus=cpus,
            busy_ns=busy,
            busy_ns_by_cpu={"0": busy // 2, "1": busy - busy // 2},
            steal_ns=0,
            foreign_cpu_ns=taken,
            foreign_low_priority_ns=int(low * SECOND),
            tick_ns=10_000_000,
        ),
    )
    found = account(made, ASKED)
    assert found is not None
    whole = breakdown([found, found])
    assert whole is not None
    return whole


def test_the_only_thread_of_a_server_that_works_is_used_up() -> None:
    """It runs 60 % of the time and waits for a CPU 36 %, which strangers have."""
    disturbed = beside(one_worker(0.6, 0.36), 0.59, 0.58)
    said = cause_of(disturbed, None, True)
    assert said.cause == "contamination"
    assert "the thread nginx runs 60 % of the time and waits for a CPU 36 % of it" in said.words
    assert "processes outside the trial used 29 %" in said.words
    quiet = cause_of(beside(one_worker(0.6, 0.36), 0.59, 0.0), None, True)
    assert (quiet.cause, quiet.limit) == ("cpu", "nginx")


@pytest.mark.parametrize(("workers", "said"), [(2, "in 2 processes"), (4, "in 4 processes")])
@pytest.mark.parametrize("starting", [0.0005, 0.008])
def test_the_process_that_started_the_workers_is_none_of_them(
    workers: int, said: str, starting: float
) -> None:
    """It read the files, and is woken as often as anybody."""
    made = role("target", 1.0, {"nginx": starting} | {f"nginx-{n}": 1.0 / workers
                for n in range(workers)}, (0, 1))  # fmt: skip
    usages = [
        msgspec.structs.replace(it.usage, voluntary_switches=900) for it in made.threads.listed
    ]
    listed = tuple(
        msgspec.structs.replace(it, pid=it.tid + 1, usage=usage)
        for it, usage in zip(made.threads.listed, usages, strict=True)
    )
    threads = msgspec.structs.replace(made.threads, listed=listed)
    server = msgspec.structs.replace(made, threads=threads)
    found = serving_of(trial(server, role("load", 0.3, {}, (0, 1))), "target", ["load"])
    assert found is not None and said in used_words([found])


def test_the_number_of_threads_is_that_of_most_trials() -> None:
    one, two = (
        Serving((Station("nginx", n, 0.9, 0.1, are_processes=n > 1),), 0.9, 0.3, 2, 2, 2)
        for n in (1, 2)
    )
    assert "nginx 0.90 in 2 processes" in used_words([one, two, two])
    assert "nginx 0.90)" in used_words([two, one, one])


def test_a_worker_that_never_waits_is_used_up_beside_the_process_that_started_it() -> None:
    """Who is busy throughout is hardly ever woken, so the other was woken as often as a share of
    it that is no longer small."""
    said = cause_of(beside(one_worker(0.97, 0.01, woken=20), 0.22, 0.0), None, True)
    assert (said.cause, said.limit) == ("cpu", "nginx")
    assert "the thread nginx runs 97 % of the time (CPUs used: nginx 0.97, load 0.22)" in said.words


def test_strangers_on_two_bound_cpus_of_many_are_seen_there() -> None:
    """They have 29 % of the two, and 0.9 % of the machine."""
    said = cause_of(beside(one_worker(0.6, 0.36), 0.59, 0.58, cpus=64), None, True)
    assert said.cause == "contamination"
    assert "used 29 % of the CPU time of the 2 CPUs that the roles are bound to" in said.words
    full = cause_of(beside(one_worker(0.6, 0.1), 0.7, 0.55, cpus=64), None, True)
    assert full.cause == "contamination"
    assert "the 2 CPUs are used up" in full.words and "0.55 by others" in full.words
    quiet = cause_of(beside(one_worker(0.6, 0.36), 0.59, 0.0, cpus=64), None, True)
    assert (quiet.cause, quiet.limit) == ("cpu", "nginx")


def test_a_second_thread_that_works_could_take_more() -> None:
    two = role("target", 1.0, {"io-1": 0.95, "io-2": 0.05}, (0, 1))
    found = serving_of(trial(ready(two, 0.0), role("load", 0.3, {}, (0, 1))), "target", ["load"])
    assert found is not None and limit_of([found]) is None


def test_cpus_that_strangers_fill_beside_server_and_load_are_used_up() -> None:
    """Each of two threads has time left, and no CPU has."""
    server = ready(role("target", 0.69, {"io-1": 0.35, "io-2": 0.34}, (0, 1)), 0.4)
    said = cause_of(beside(server, 0.59, 0.58), None, True)
    assert (said.cause, said.limit) == ("contamination", "")
    assert (
        "the 2 CPUs are used up: 0.58 by others, 0.69 by the server (io 0.69 in 2 threads) and 0.59"
        in said.words
    )
    assert "0.58" in said.words and "no resource is used up" not in said.words
    assert cause_of(beside(server, 0.59, 0.1), None, True).cause != "contamination"
    # Work of low priority gives way to them.
    polite = beside(server, 0.59, 0.58, low=0.58)
    assert "CPUs are used up" not in cause_of(polite, None, True).words


def test_cpus_that_are_full_as_each_request_costs_twice_as_much_are_not_the_doing_of_others() -> (
    None
):
    """Others keep threads from the CPUs, but make no request cost more."""

    def cell(cpu: float, operations: float, foreign: float) -> Breakdown:
        made = beside(ready(role("target", cpu, {"io-1": cpu / 2, "io-2": cpu / 2}, (0, 1)), 0.4),
                      0.3, foreign)  # fmt: skip
        noisy = [
            it._replace(operations=operations * noise)
            for it, noise in zip(made.accounts * 2, (1.0, 1.01, 0.99, 1.005), strict=True)
        ]
        found = breakdown(noisy)
        assert found is not None
        return found

    base = cell(0.9, 1000, 0.5)
    spinning = cell(1.2, 300, 0.5)
    said = cause_of(spinning, base, True)
    assert (said.cause, said.limit) == ("cpu", "CPUs")
    assert "0.50 by others, at 4.4 × the CPU time" in said.words
    same = cause_of(cell(1.2, 900, 0.5), base, True)
    assert same.cause == "contamination"


def go_server(cpu: float, at_once: int | None, pids: Sequence[int] = (1, 1, 1)) -> RoleRecord:
    """Goroutines that run on any of three threads."""
    shares = {f"server-{n}": cpu * part for n, part in enumerate((0.5, 0.3, 0.2))}
    made = ready(role("target", cpu, shares, (0, 1)), 0.02)
    listed = tuple(
        msgspec.structs.replace(it, pid=pid)
        for it, pid in zip(made.threads.listed, pids, strict=True)
    )
    threads = msgspec.structs.replace(made.threads, listed=listed)
    return msgspec.structs.replace(
        made, threads=threads, runtime=Runtime(readings=50, running=60, at_once=at_once)
    )


def test_the_only_processor_of_a_go_server_is_used_up() -> None:
    said = cause_of(measured(go_server(0.98, 1)), None, True)
    assert (said.cause, said.limit) == ("cpu", "GOMAXPROCS")
    assert said.words.startswith("GOMAXPROCS lets 1 goroutine run at a time, and 0.98 CPUs of that")
    for at_once in (2, None):
        assert cause_of(measured(go_server(0.98, at_once)), None, True).limit == ""
    assert cause_of(measured(go_server(0.6, 1)), None, True).limit == ""
    # Each of several processes has processors of its own.
    assert cause_of(measured(go_server(0.98, 1, (1, 2, 2))), None, True).limit == ""


# -- a headline of which the text says the contrary -----------------------------------------------


def compared(
    own: Sequence[Thread], base: Sequence[Thread], operations: tuple[float, float], load: float
) -> tuple[Verdict, Weight]:
    sides = [
        under_load(threads, done, load)
        for threads, done in zip((own, base), operations, strict=True)
    ]
    case = Case(sides[0], sides[1], True)
    said = outweighed(case, cause_of(sides[0], sides[1], True))
    return said, weigh(case, said)


def test_a_small_wait_for_the_client_is_no_cause_of_a_great_loss() -> None:
    """The thread time of an operation is 2.5 times as long, mostly for no work of a thread; what is
    waited for the client is 4 % of it."""
    base = [made_thread(0.1, poll=0.02, futex=0.88)]
    own = [made_thread(0.05, poll=0.04, futex=0.91)] * 5
    said, _ = compared(own, base, (2000, 1000), 0.3)
    assert said.cause != "client", said.words


def test_of_two_causes_of_a_server_the_greater_share_is_named() -> None:
    """More threads than CPUs wait a little for one, and much for the client; no CPU is used up."""
    base = [made_thread(0.8, 0.0, poll=0.2)]
    own = [made_thread(0.3, 0.2, poll=0.5)] * 5
    said, weight = compared(own, base, (1900, 1000), 0.1)
    assert (said.cause, said.either_way) == ("none", "waiting for the client or for locks")
    assert weight.share is None and weight.runner_up is None, "the CPUs are the smaller part"
    fewer = [made_thread(0.2, 0.2, poll=0.6)] * 5
    said, weight = compared(fewer, base, (1250, 1000), 0.6)
    assert (said.cause, said.either) == ("client", "lock"), said.words
    assert weight.share is not None and weight.share.value > 0.5


def test_who_waits_for_a_load_does_so_as_something_else_is_used_up() -> None:
    """The CPUs are, by both: no more is lost to the client."""
    base = [made_thread(0.8, poll=0.2)]
    own = [made_thread(0.2, 0.05, poll=0.75)] * 8
    said, weight = compared(own, base, (1600, 1000), 0.4)
    assert (said.cause, said.limit) == ("cpu", "CPUs")
    assert weight.runner_up is None or weight.runner_up.cause != "client"
