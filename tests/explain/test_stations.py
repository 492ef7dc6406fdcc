"""What is used up where a server was loaded: from made up accounts, and from a record."""

from __future__ import annotations

import msgspec
import pytest

from concurve.definition.purposes import Purposes
from concurve.explain.accounts import account
from concurve.explain.breakdown import Breakdown, breakdown
from concurve.explain.causes import cause_of
from concurve.explain.stations import Limit, Serving, Station, limit_of, serving_of, used_words
from concurve.readings.operations import Asked
from concurve.wire.record import (
    GrantedControls,
    MachineRecord,
    Outcome,
    PhaseRecord,
    RoleRecord,
    ThreadRecord,
    ThreadsRecord,
    TrialRecord,
    Usage,
)
from concurve.wire.report import IndicatorLine
from concurve.wire.spec import Controls

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
    ("trial", "is_client", "name", "said"),
    [
        (serving(0.4, 0.55, 0.9, granted=1), False, "CPUs", "server's CPU is used up (2 × io 0.55"),
        (serving(0.9, 0.3, 0.7), False, "worker", "the thread worker runs 90 % of the time"),
        (serving(0.9, 1.2, 2.0, 4, 4, 8), False, "worker", "the thread worker runs 90 %"),
        (serving(0.3, 1.8, 2.0, 4, 4, 8), False, "io", "each of the 2 threads io runs 90 %"),
        (serving(0.4, 0.5, 1.05), False, "CPUs", "2 CPUs are used up, by the server (2 × io 0.50"),
        (serving(0.3, 0.4, 1.9, 2, 2, 4), True, "load", "the load's 2 CPUs are used up, while"),
    ],
)
def test_what_is_used_up_is_named(trial: Serving, is_client: bool, name: str, said: str) -> None:
    limit = limit_of([trial, trial])
    assert limit is not None
    assert (limit.is_client, limit.name) == (is_client, name)
    assert said in limit.words


def test_nothing_is_named_where_nothing_is_used_up() -> None:
    assert limit_of([serving(0.3, 0.3, 0.6)]) is None
    assert limit_of([serving(0.3, 0.3, 0.6, 2, 2, 4)]) is None


def test_where_nothing_is_used_up_it_is_said_who_used_how_much() -> None:
    assert used_words([serving(0.06, 0.46, 0.76), serving(0.06, 0.46, 0.76)]) == (
        "no resource is used up: the server used 0.52 CPUs (2 × io 0.46, worker 0.06) and its load "
        "0.76, of 2"
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
    assert limit is not None and (limit.is_client, limit.name) == (False, "nginx")
    assert "runs 81 % of the time and waits for a CPU 15 % of it" in limit.words
    idle = Serving((Station("nginx", 1, 0.3, 0.3, 0.96),), 0.3, 0.6, 2, 2, 2)
    assert limit_of([idle]) is None, "others keep it from the CPU"


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
        True, "load", "the load's 2 CPUs are used up, while the server used 0.30 (worker 0.30)"
    )


def test_without_a_phase_or_its_cpu_time_nothing_is_said() -> None:
    server, load = role("target", 1.0, {"worker": 1.0}, (0,)), role("load", 1.0, {}, (0,))
    bare = msgspec.structs.replace(server, phases=())
    assert serving_of(trial(bare, load), "target", ["load"]) is None
    unread = msgspec.structs.replace(server.phases[0], usage=Usage())
    unread_role = msgspec.structs.replace(server, phases=(unread,))
    assert serving_of(trial(unread_role, load), "target", ["load"]) is None
    assert serving_of(trial(server), "target", []) is None


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
    assert limit is not None and (limit.is_client, limit.name) == (False, "redis-server")
    assert "the thread redis-server runs 95 % of the time" in limit.words


def test_the_only_thread_of_a_load_may_be_used_up() -> None:
    """Of wrk's threads the first one only waits."""
    server = whole("server", {"redis-server": 0.6})
    client = whole("client", {"wrk": 0.001, "wrk-1": 0.92})
    found = serving_of(trial(server, client, cpus=4), "server", ["client"])
    assert found is not None
    limit = limit_of([found])
    assert limit is not None and (limit.is_client, limit.name) == (True, "load")
    assert limit.words == (
        "the load's thread wrk runs 92 % of the time, while the server used 0.60 "
        "(redis-server 0.60)"
    )
    idle = serving_of(trial(server, whole("client", {"wrk": 0.6}), cpus=4), "server", ["client"])
    assert idle is not None and limit_of([idle]) is None


def test_who_marks_no_phase_beside_others_that_do_is_not_known() -> None:
    server = whole("server", {"worker": 0.9})
    marks = role("client", 0.5, {"load": 0.5}, (0, 1))
    assert serving_of(trial(server, marks), "server", ["client"]) is None
    assert serving_of(trial(server, whole("a", {"x": 0.5})), "server", ["a", "gone"]) is None
