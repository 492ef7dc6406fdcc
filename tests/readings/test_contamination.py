"""Was the machine ours? Each sign, its limit, and what must not count as a sign."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from concurve.definition.study import Indicator
from concurve.measuring.judgement import Judge
from concurve.planning.plan import make_plan
from concurve.readings.contamination import judge, programs_named, took_most
from concurve.wire.record import (
    ForeignProcess,
    GrantedControls,
    HostRecord,
    PhaseRecord,
    TrialRecord,
)
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers.fakes import record_of, small_study

SPEC = TrialSpec(trial="t", roles=(RoleSpec(name="target", argv=("x",)),))
SECOND = 1_000_000_000


def record(
    machine: dict[str, Any] | None = None,
    usage: dict[str, Any] | None = None,
    granted: tuple[int, ...] | None = None,
    peak: int | None = 1,
    roles: int = 1,
) -> TrialRecord:
    """A quiet trial of one second on two CPUs, with the given changes."""
    quiet = record_of(SPEC, 1.0)
    role = quiet.roles[0]
    role = msgspec.structs.replace(
        role,
        usage=msgspec.structs.replace(role.usage, **(usage or {})),
        controls=GrantedControls(cpus=granted),
        threads=msgspec.structs.replace(role.threads, peak=peak),
    )
    return msgspec.structs.replace(
        quiet,
        machine=msgspec.structs.replace(quiet.machine, **(machine or {})),
        roles=(role,) * roles,
    )


def causes(trial: TrialRecord, workers: int | None = None) -> list[str]:
    return [sign.cause for sign in judge(trial, workers)]


def test_a_quiet_trial_has_no_sign() -> None:
    assert causes(record()) == []


@pytest.mark.parametrize(
    ("field", "share", "cause"),
    [("steal_ns", 0.019, None), ("steal_ns", 0.021, "steal"),
     ("foreign_cpu_ns", 0.049, None), ("foreign_cpu_ns", 0.051, "foreign_cpu")],
)  # fmt: skip
def test_a_share_of_the_machines_cpu_time_counts_above_its_limit(
    field: str, share: float, cause: str | None
) -> None:
    trial = record(machine={field: round(share * 2 * SECOND)})
    assert causes(trial) == ([cause] if cause else [])


def test_a_coarse_counter_must_move_by_several_ticks() -> None:
    short = msgspec.structs.replace(record(machine={"steal_ns": 20_000_000}), wall_ns=10_000_000)
    assert causes(short) == [], "two ticks of 10 ms are too few"
    three = msgspec.structs.replace(record(machine={"steal_ns": 30_000_000}), wall_ns=10_000_000)
    assert causes(three) == ["steal"]


def test_absent_readings_are_no_sign() -> None:
    trial = record(
        machine={"steal_ns": None, "foreign_cpu_ns": None, "cpus": None, "tick_ns": None},
        usage={"run_queue_ns": None, "cpu_ns": None},
        peak=None,
    )
    assert causes(trial) == []
    assert causes(msgspec.structs.replace(trial, wall_ns=0)) == []


#: As much as others may use without a sign of its own: 8 % of the machine's CPU time at nice 19.
BESIDE = {"foreign_cpu_ns": 160_000_000, "foreign_low_priority_ns": 160_000_000}


def waiting(ms: int, machine: dict[str, Any] = BESIDE, **more: Any) -> TrialRecord:
    return record(machine=machine, usage={"run_queue_ns": ms * 1_000_000}, **more)


def test_waiting_counts_only_while_there_is_a_cpu_for_every_worker() -> None:
    assert causes(waiting(60)) == ["run_queue"]
    assert causes(waiting(60), workers=2) == ["run_queue"]
    assert causes(waiting(60), workers=3) == ["low_priority"]
    on_one = waiting(60, granted=(0,))
    assert causes(on_one, workers=2) == ["low_priority"], "two workers on one CPU"
    assert causes(waiting(49)) == [], "below the limit"
    short = {"run_queue_ns": 9_000_000, "cpu_ns": SECOND // 100}
    assert causes(msgspec.structs.replace(record(BESIDE, short), wall_ns=SECOND // 20)) == [], (
        "a slice or two"
    )
    assert causes(waiting(60, roles=2)) == ["low_priority"], "a background role makes others wait"


def test_others_cause_no_more_waiting_than_they_ran() -> None:
    """Threads on one CPU wait for each other, and for the kernel at each wake-up."""
    assert causes(waiting(300, {"foreign_cpu_ns": 0})) == []
    assert causes(waiting(300, {"foreign_cpu_ns": 40_000_000})) == []
    assert causes(waiting(300, {"foreign_cpu_ns": 80_000_000})) == ["run_queue"]
    assert causes(waiting(300, {"foreign_cpu_ns": 0, "steal_ns": 39_000_000})) == []
    both = {"foreign_cpu_ns": 40_000_000, "steal_ns": 39_000_000}
    assert causes(waiting(300, both)) == ["run_queue"]
    assert causes(waiting(300, {"foreign_cpu_ns": None})) == ["run_queue"], "nobody knows who"
    ticks = msgspec.structs.replace(
        waiting(300, {"foreign_cpu_ns": 29_000_000}), wall_ns=SECOND // 5
    )
    assert causes(ticks) == [], "two ticks and a part are the error of the count"


def test_short_trials_wait_for_others_as_far_as_the_machine_was_busy() -> None:
    """Below five ticks the record does not say what others took. Threads that sleep and wake are
    put on one CPU; then the other CPU idles, and nobody else was there."""

    def short(busy_ms: int | None, workers: int = 2) -> list[str]:
        machine = {"foreign_cpu_ns": None, "busy_ns": busy_ms and busy_ms * 1_000_000}
        usage = {"run_queue_ns": 13_000_000, "cpu_ns": 14_000_000}
        trial = record(machine=machine, usage=usage, peak=2)
        return causes(msgspec.structs.replace(trial, wall_ns=30_000_000), workers)

    assert short(20) == short(40) == [], "14 ms of them were the trial's own"
    assert short(50) == ["run_queue"]
    assert short(None) == ["run_queue"], "nobody knows who"
    assert short(20, workers=1) == ["run_queue"], "a lone worker waits for no other of its own"


def test_waiting_of_threads_that_mostly_block_is_a_share_of_the_wall_time() -> None:
    """It delays the program by no more than that."""
    for cpu_ms in (10, 200):
        usage = {"cpu_ns": cpu_ms * 1_000_000, "run_queue_ns": 30_000_000}
        assert causes(record(machine=BESIDE, usage=usage)) == []
        usage["run_queue_ns"] = 60_000_000
        assert causes(record(machine=BESIDE, usage=usage)) == ["run_queue"]


LOW = {"foreign_cpu_ns": SECOND, "foreign_low_priority_ns": SECOND}
HOGS = (
    ForeignProcess(pid=4711, name="yes", nice=19, cpu_ns=940_000_000),
    ForeignProcess(pid=7, name="md5sum", nice=0, cpu_ns=60_000_000),
)


def test_work_of_low_priority_on_a_cpu_that_the_trial_leaves_idle_does_no_harm() -> None:
    """One worker on two CPUs, and hogs at nice 19 on the other one."""
    assert causes(record(machine=LOW)) == []
    harmed = record(machine=LOW, usage={"run_queue_ns": 60_000_000})
    assert causes(harmed) == ["run_queue"], "it is judged by what it did to the trial"


def test_work_of_low_priority_is_judged_by_its_share_where_waiting_cannot_be() -> None:
    assert causes(waiting(60, LOW), workers=3) == ["low_priority"], "each took it from a worker"
    assert causes(waiting(60, LOW, roles=2)) == ["low_priority"]
    assert causes(record(machine=LOW, usage={"run_queue_ns": None})) == ["low_priority"]
    little = LOW | {"foreign_low_priority_ns": SECOND // 11}
    assert causes(record(machine=little), workers=3) == ["foreign_cpu"], "the rest is usual work"


def test_work_of_low_priority_does_no_harm_where_all_roles_waited_too_little_for_it() -> None:
    """Whoever waited at a lock for a thread that waited for a CPU: all were delayed by no more than
    the sum of these waits."""
    assert causes(waiting(49, LOW), workers=3) == []
    assert causes(waiting(51, LOW), workers=3) == ["low_priority"]
    assert causes(waiting(24, LOW, roles=2)) == []
    assert causes(waiting(26, LOW, roles=2)) == ["low_priority"], "of both roles together"
    # Of a measured phase: what its own role waited elsewhere is not in it.
    for ms, found in ((9, []), (11, ["low_priority"])):
        trial = waiting(300, LOW)
        (role,) = trial.roles
        usage = msgspec.structs.replace(role.usage, run_queue_ns=ms * 1_000_000)
        phase = PhaseRecord(name="measure", begin_ns=0, wall_ns=SECOND // 5, usage=usage)
        measured = msgspec.structs.replace(role, phases=(phase,))
        assert causes(msgspec.structs.replace(trial, roles=(measured,)), workers=3) == found
        idle = msgspec.structs.replace(role, usage=usage)
        both = msgspec.structs.replace(trial, roles=(measured, idle))
        assert causes(both) == ["low_priority"], "18 ms and more of 200"
    usual = LOW | {"foreign_low_priority_ns": SECOND // 2}
    assert causes(waiting(0, usual), workers=3) == ["foreign_cpu"], "only low priority gives way"


def test_usual_work_on_a_cpu_that_the_trial_leaves_idle_counts_though_nobody_waits() -> None:
    """It shares caches and the path to memory (decision 109)."""
    beside = {"foreign_cpu_ns": SECOND * 9 // 10, "foreign_low_priority_ns": 0}
    for waited in (0, 10_000_000):
        assert causes(record(machine=beside, usage={"run_queue_ns": waited}), 1) == ["foreign_cpu"]


def test_usual_work_is_judged_beside_that_of_low_priority() -> None:
    both = {"foreign_cpu_ns": SECOND, "foreign_low_priority_ns": SECOND * 8 // 10}
    (sign,) = judge(record(machine=both))
    assert sign.cause == "foreign_cpu"
    assert sign.share == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("machine", "usage", "workers"),
    [
        ({"foreign_cpu_ns": SECOND}, {}, 1),
        (LOW, {"run_queue_ns": 60_000_000}, 3),
        (LOW, {"run_queue_ns": 60_000_000}, 1),
    ],
)
def test_a_sign_names_the_processes_that_used_most(
    machine: dict[str, Any], usage: dict[str, Any], workers: int
) -> None:
    (sign,) = judge(record(machine={**machine, "foreign_processes": HOGS}, usage=usage), workers)
    of = "of the machine's CPU time " if sign.cause == "run_queue" else ""
    assert f"): {of}yes (pid 4711, nice 19) 47 %, " in sign.detail
    is_low = sign.cause == "low_priority"
    rest = "others or short-lived ones 3 %" if is_low else "md5sum (pid 7, nice 0) 3 %"
    assert sign.detail.endswith(rest), "a sign of low priority names none of usual priority"


def test_a_process_is_named_on_one_line_without_control_characters() -> None:
    named = (msgspec.structs.replace(HOGS[1], name="md\n5\x1bsum"),)
    machine = {"foreign_cpu_ns": SECOND, "foreign_processes": named}
    (sign,) = judge(record(machine=machine), 1)
    assert ": md 5�sum (pid 7, nice 0) 3 %" in sign.detail
    assert programs_named(sign.detail) == [("md 5�sum", 3)]


def test_no_process_is_said_to_have_taken_more_than_all_took() -> None:
    """It is read at other moments than the counters of the machine."""
    one = ForeignProcess(pid=7, name="md5sum", nice=0, cpu_ns=340_000_000)
    machine = {"foreign_cpu_ns": 300_000_000, "foreign_processes": (one,)}
    (sign,) = judge(record(machine=machine))
    assert "used 15.0 % of" in sign.detail and "md5sum (pid 7, nice 0) 15 %" in sign.detail


def test_a_sign_of_usual_priority_names_none_of_low_priority() -> None:
    both = {"foreign_cpu_ns": SECOND, "foreign_low_priority_ns": SECOND * 8 // 10}
    (sign,) = judge(record(machine={**both, "foreign_processes": HOGS}))
    assert sign.detail.endswith("): md5sum (pid 7, nice 0) 3 %, others or short-lived ones 7 %")


def test_what_the_processes_that_are_named_leave_is_told() -> None:
    machine = {"foreign_cpu_ns": SECOND, "foreign_processes": HOGS[1:]}
    (sign,) = judge(record(machine=machine), 1)
    assert sign.detail.endswith("md5sum (pid 7, nice 0) 3 %, others or short-lived ones 47 %")


@pytest.mark.parametrize(("waited", "said"), [(60, "6 %"), (1_250, "56 %"), (19_012, "95 %")])
def test_a_wait_is_told_as_a_share_of_the_time(waited: int, said: str) -> None:
    hogs = {"foreign_cpu_ns": 20 * SECOND, "foreign_low_priority_ns": 20 * SECOND}
    (sign,) = judge(waiting(waited, hogs), 1)
    of = "the time for which its threads ran or were ready"
    assert (
        f"was ready to run while others had the CPU, for {said} of {of} (limit 5 %)" in sign.detail
    )


def test_another_run_of_the_laboratory_is_told_as_one() -> None:
    ours = (msgspec.structs.replace(HOGS[1], name="concurve"),)
    machine = {"foreign_cpu_ns": SECOND, "foreign_processes": ours}
    (sign,) = judge(record(machine=machine), 1)
    assert ": another concurve run (pid 7, nice 0) 3 %" in sign.detail
    # Runs that are stored have the name of the process.
    stored = sign.detail.replace("another concurve run", "concurve")
    assert programs_named(sign.detail) == programs_named(stored) == [("concurve", 3)]


WAITED = (
    "2 workers on 2 CPUs were ready to run while others had the CPU, for 17 % of the time for "
    "which its threads ran or were ready (limit 5 %): of the machine's CPU time python3 "
    "(pid 25483, nice 19) 13 %, others or short-lived ones 1 %"
)
STOLEN = "the hypervisor took {} % of the machine's CPU time (limit 2 %)"
USED = "processes of {} outside the trial used {} % of the machine's CPU time (limit 5 %)"


@pytest.mark.parametrize(
    ("stored", "detail", "cause", "percent"),
    [
        ("steal", f"{WAITED}; {STOLEN.format(3.6)}", "run_queue", 14),
        ("steal", f"{STOLEN.format(31.1)}; {WAITED}", "steal", 31.1),
        ("steal", f"{STOLEN.format(5)}; {USED.format('usual priority', 7.7)}", "foreign_cpu", 7.7),
        ("steal", f"{STOLEN.format(5)}; {USED.format('low priority', 7)}", "low_priority", 7),
        ("foreign_cpu", f"{USED.format('usual priority', 6)}; {STOLEN.format(9)}", "steal", 9),
        ("run_queue", WAITED, "run_queue", 14),
        ("steal", STOLEN.format(4), "steal", 4),
        ("late_reading", f"late; {STOLEN.format(4)}", "late_reading", 0),
        ("steal", "", "steal", 0),
    ],
)
def test_a_trial_counts_for_what_took_most_of_it(
    stored: str, detail: str, cause: str, percent: float
) -> None:
    assert took_most(stored, detail) == (cause, percent)


def test_the_processes_are_named_once() -> None:
    trial = record(
        machine={"foreign_cpu_ns": SECOND, "steal_ns": SECOND, "foreign_processes": HOGS},
        usage={"run_queue_ns": SECOND},
    )
    details = [sign.detail for sign in judge(trial)]
    assert len(details) == 3
    assert sum("yes (pid 4711" in detail for detail in details) == 1


def test_a_sign_that_each_cell_shows_alike_is_the_cause_of_a_trial() -> None:
    """Waiting is the worse sign here, but is no cause of a redo."""
    plan = make_plan(small_study(threads=(1,)), "quick", 1)
    judge_ = Judge(plan)
    waits = {"run_queue_ns": SECOND}
    low = {"foreign_low_priority_ns": SECOND * 8 // 10}
    both = record(machine={"foreign_cpu_ns": SECOND, **low}, usage=waits)
    assert causes(both)[0] == "run_queue"
    assert judge_.judge(plan.cells[0], both).cause == "foreign_cpu"
    assert judge_.judge(plan.cells[0], waiting(500)).cause == "run_queue"


def test_the_worst_sign_comes_first_and_says_how_much() -> None:
    trial = record(machine={"steal_ns": SECOND, "foreign_cpu_ns": SECOND // 5})
    first, second = judge(trial)
    assert (first.cause, second.cause) == ("steal", "foreign_cpu")
    assert first.share == pytest.approx(0.5)
    assert "50.0 %" in first.detail and "limit 2 %" in first.detail


@pytest.mark.parametrize(
    ("name", "wall_ns", "late_ns", "cause"),
    [
        ("measure", SECOND, 19_000_000, None),
        ("measure", SECOND, 21_000_000, "late_reading"),
        ("measure", 10_000_000, 900_000, None),
        ("measure", SECOND, None, None),
        ("measure", 0, 21_000_000, None),
        ("warm-up", SECOND, 21_000_000, None),
    ],
)
def test_probes_that_were_read_late(
    name: str, wall_ns: int, late_ns: int | None, cause: str | None
) -> None:
    """The CPU time of a phase is that between the readings, not between its edges."""
    quiet = record()
    phase = PhaseRecord(name=name, begin_ns=0, wall_ns=wall_ns, late_ns=late_ns)
    role = msgspec.structs.replace(quiet.roles[0], phases=(phase,))
    assert causes(msgspec.structs.replace(quiet, roles=(role,))) == ([cause] if cause else [])


def test_lateness_beside_the_measured_role_is_no_matter() -> None:
    quiet = record()
    phase = PhaseRecord(name="measure", begin_ns=0, wall_ns=SECOND, late_ns=21_000_000)
    load = msgspec.structs.replace(quiet.roles[0], name="load", phases=(phase,))
    assert causes(msgspec.structs.replace(quiet, roles=(*quiet.roles, load))) == []


@pytest.mark.parametrize(("waited", "cause"), [(49_000_000, None), (60_000_000, "run_queue")])
def test_a_measured_phase_is_judged_and_not_the_start_before_it(
    waited: int, cause: str | None
) -> None:
    trial = waiting(500)
    usage = msgspec.structs.replace(trial.roles[0].usage, run_queue_ns=waited, cpu_ns=SECOND)
    phase = PhaseRecord(name="measure", begin_ns=0, wall_ns=SECOND, usage=usage)
    role = msgspec.structs.replace(trial.roles[0], phases=(phase,))
    assert causes(msgspec.structs.replace(trial, roles=(role,))) == ([cause] if cause else [])


def test_waiting_that_was_not_read_in_a_measured_phase_is_no_sign() -> None:
    trial = record(usage={"run_queue_ns": SECOND // 2})
    read = msgspec.structs.replace(trial.roles[0].usage, run_queue_ns=SECOND // 2, cpu_ns=SECOND)
    unread = msgspec.structs.replace(read, run_queue_ns=None)
    phases = tuple(
        PhaseRecord(name="measure", begin_ns=0, wall_ns=SECOND, usage=usage)
        for usage in (read, unread)
    )
    role = msgspec.structs.replace(trial.roles[0], phases=phases)
    assert causes(msgspec.structs.replace(trial, roles=(role,))) == []


@pytest.mark.parametrize(
    ("asked", "verdict"), [("wall_seconds", "ok"), ("cpu_seconds", "contaminated")]
)
def test_late_probes_are_a_sign_where_what_they_read_is_asked_for(asked: str, verdict: str) -> None:
    study = msgspec.structs.replace(
        small_study(threads=(1,)),
        indicators=(Indicator(name="wall_seconds"), Indicator(name=asked)),
    )
    plan = make_plan(study, "quick", 1)
    quiet = record()
    phase = PhaseRecord(name="measure", begin_ns=0, wall_ns=SECOND, late_ns=21_000_000)
    role = msgspec.structs.replace(quiet.roles[0], phases=(phase,))
    late = msgspec.structs.replace(quiet, roles=(role,))
    assert Judge(plan).judge(plan.cells[0], late).verdict == verdict


def test_others_never_used_more_than_the_machine_could_give() -> None:
    """On a loaded machine the readings before and after a short trial lie far apart."""
    busy = 5 * SECOND
    trial = record(machine={"busy_ns": busy, "foreign_cpu_ns": busy - SECOND})
    (sign,) = judge(trial)
    assert sign.share == pytest.approx(0.8)
    assert sign.detail.startswith("processes outside the trial used 80.0 % of the machine's CPU")


def on_hosts(**machines: dict[str, Any]) -> TrialRecord:
    """A trial whose measured role was alone on the first host, and another role on the second."""
    first, second = machines
    quiet = record()
    roles = tuple(
        msgspec.structs.replace(quiet.roles[0], name=name, host=host)
        for name, host in (("target", first), ("load", second))
    )
    hosts = tuple(
        HostRecord(
            name=name,
            machine=msgspec.structs.replace(quiet.machine, **changes),
            wall_ns=quiet.wall_ns,
        )
        for name, changes in machines.items()
    )
    return msgspec.structs.replace(quiet, roles=roles, hosts=hosts)


def test_each_host_is_judged_as_a_machine_alone() -> None:
    assert judge(on_hosts(a={}, b={})) == []
    stolen = {"steal_ns": round(0.1 * 2 * SECOND)}
    (sign,) = judge(on_hosts(a={}, b=stolen))
    assert sign.cause == "steal" and sign.share == pytest.approx(0.1)
    assert sign.detail.startswith("host b: the hypervisor took 10.0 %")


def test_the_worst_host_comes_first() -> None:
    signs = judge(
        on_hosts(a={"steal_ns": round(0.06 * SECOND)}, b={"steal_ns": round(0.6 * SECOND)})
    )
    assert [sign.detail.split(":")[0] for sign in signs] == ["host b", "host a"]


@pytest.mark.parametrize(
    ("late_ns", "load_ns", "is_told"),
    [
        (30_000_000, SECOND, True),
        (30_000_000, 10 * SECOND, False),  # the time of the load counts, not that of its host
        (20_000_000, SECOND, False),  # the limit itself
        (900_000, SECOND // 100, False),  # no more than a start at an agreed time may be off
        (None, SECOND, False),
    ],
)
def test_a_host_that_started_late_puts_the_trial_in_doubt(
    late_ns: int | None, load_ns: int, is_told: bool
) -> None:
    trial = on_hosts(a={}, b={})
    first, second = trial.hosts
    target, load = trial.roles
    late = msgspec.structs.replace(
        trial,
        hosts=(first, msgspec.structs.replace(second, start_late_ns=late_ns, wall_ns=5 * SECOND)),
        roles=(target, msgspec.structs.replace(load, wall_ns=load_ns)),
    )
    says = (
        "host b: its roles started 30.0 ms after the agreed time, 3.0 % of the time that they took"
    )
    signs = judge(late)
    assert [(sign.cause, sign.detail[: len(says)]) for sign in signs] == (
        [("late_start", says)] if is_told else []
    )


# -- machines of many CPUs ----------------------------------------------------------------------


def on_many(
    busy: dict[int, float],
    steal: float = 0.0,
    foreign: float = 0.0,
    bound: tuple[int, ...] | None = None,
    cpus: int = 64,
    low: float | None = 0.0,
) -> TrialRecord:
    """A trial of one second; times are in seconds, ``busy`` those of each CPU that was not idle."""
    each = {str(cpu): round(busy.get(cpu, 0.0) * SECOND) for cpu in range(cpus)}
    machine = {
        "cpus": cpus,
        "busy_ns": sum(each.values()),
        "busy_ns_by_cpu": each,
        "steal_ns": round(steal * SECOND),
        "foreign_cpu_ns": round(foreign * SECOND),
        "foreign_low_priority_ns": None if low is None else round(low * SECOND),
        "tick_ns": 1_000_000,
    }
    return record(machine=machine, granted=bound)


def test_steal_is_judged_against_the_cpus_in_use() -> None:
    """Half of the CPU of the one worker is 0.8 % of 64 CPUs, of which 63 idle."""
    (sign,) = judge(on_many({0: 0.5}, steal=0.5))
    assert (sign.cause, sign.share) == ("steal", 0.25)
    assert sign.detail == (
        "the hypervisor took 25.0 % of the CPU time of the CPUs in use (limit 2 %)"
    )
    assert causes(on_many({0: 0.965}, steal=0.035)) == [], "of two CPUs at least"
    everywhere = dict.fromkeys(range(64), 0.98)
    assert causes(on_many(everywhere, steal=64 * 0.019)) == []
    assert causes(on_many(everywhere, steal=64 * 0.02)) == []
    (sign,) = judge(on_many(dict.fromkeys(range(64), 0.97), steal=64 * 0.03))
    assert "3.0 % of the machine's CPU time" in sign.detail


def test_strangers_are_judged_on_the_cpus_that_the_roles_are_bound_to() -> None:
    disturbed = {0: 1.0, 1: 1.0, 7: 0.1}
    (sign,) = judge(on_many(disturbed, foreign=1.0, bound=(0, 1)))
    assert sign.cause == "foreign_cpu" and sign.share == pytest.approx(0.45)
    assert "45.0 % of the CPU time of the 2 CPUs that the roles are bound to" in sign.detail
    assert causes(on_many(disturbed, foreign=1.0)) == [], "not bound: there are CPUs for all"
    assert causes(on_many({0: 1.0, 5: 1.0}, foreign=1.0, bound=(0, 1))) == [], "elsewhere"
    assert causes(on_many(disturbed, foreign=1.0, bound=(0, 1), low=1.0)) == [], "low priority"
    assert causes(on_many(disturbed, foreign=1.0, bound=(0, 1), low=None)) == [], (
        "perhaps threads of the kernel"
    )


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("bound", [None, (0,), (0, 1)])
def test_on_few_cpus_every_sign_is_of_the_machine(cpus: int, bound: tuple[int, ...] | None) -> None:
    for taken in (0.018, 0.022, 0.048, 0.052, 0.5):
        for busy in ({0: 1.0}, {0: 0.2 + taken}, dict.fromkeys(range(cpus), 1.0), {0: 2.5}):
            steal = causes(on_many(busy, steal=taken * cpus, bound=bound, cpus=cpus))
            assert steal == ["steal"] * (taken > 0.02 * max(1, sum(busy.values()) / cpus))
            foreign = causes(on_many(busy, foreign=taken * cpus, bound=bound, cpus=cpus))
            assert foreign == ["foreign_cpu"] * (taken > 0.05 * max(1, sum(busy.values()) / cpus))


def test_what_strangers_on_bound_cpus_used_is_named_by_the_machine() -> None:
    trial = on_many({0: 1.0, 1: 1.0}, foreign=1.0, bound=(0, 1))
    named = msgspec.structs.replace(
        trial, machine=msgspec.structs.replace(trial.machine, foreign_processes=HOGS)
    )
    (sign,) = judge(named)
    assert "): of the machine's CPU time yes (pid 4711, nice 19) 1 %" in sign.detail
