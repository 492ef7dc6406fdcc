"""What the kernel gave each thread, from records of known threads."""

from __future__ import annotations

import msgspec
import pytest

from concurve.definition.measured import THREAD_INDICATORS
from concurve.definition.purposes import alone
from concurve.readings.measures import cpu_figures, cpu_info, measure
from concurve.readings.operations import Asked
from concurve.readings.thread_measures import kernel_priority, thread_figures
from concurve.wire.record import (
    GrantedControls,
    PhaseRecord,
    RoleRecord,
    ThreadRecord,
    ThreadsRecord,
    Usage,
)
from concurve.wire.spec import Controls, Policy, PolicyClass
from tests.helpers.fakes import record_of
from tests.readings.test_contamination import SPEC

OTHER = Policy("other")


def thread(
    name: str,
    nice: int | None = 0,
    policy: Policy | None = OTHER,
    cpus: tuple[int, ...] | None = (0, 1),
) -> ThreadRecord:
    return ThreadRecord(tid=1, pid=1, name=name, source="exit", nice=nice, policy=policy, cpus=cpus)


def role(*threads: ThreadRecord, total: int | None = None) -> RoleRecord:
    return RoleRecord(
        name="target",
        controls=GrantedControls(cpus=(0, 1)),
        threads=ThreadsRecord(
            total=len(threads) if total is None else total, peak=1, listed=threads
        ),
    )


def test_workers_are_known_by_their_names_and_the_rest_are_service_threads() -> None:
    names = ("java", "GC Thread#0", "C2 CompilerThre", "Thread-1", "Thread-12", "worker-0")
    values, absent = thread_figures(role(*map(thread, names)))
    assert (values["worker_threads_total"], values["service_threads_total"]) == (3, 3)
    assert values["carrier_threads_total"] == 0
    assert not absent


def test_carriers_of_virtual_threads_are_told_apart_and_have_the_settings() -> None:
    found = role(thread("java", nice=7), *[thread("ForkJoinPool-1-", nice=2)] * 2)
    values, _ = thread_figures(found)
    assert (values["worker_threads_total"], values["carrier_threads_total"]) == (0, 2)
    assert (values["worker_nice_min"], values["worker_nice_max"]) == (2, 2)


def test_a_program_without_workers_has_none_of_the_figures() -> None:
    assert thread_figures(role(thread("sleep"))) == ({}, {})


def test_settings_are_least_and_greatest_over_the_workers() -> None:
    found = role(
        thread("Thread-1", nice=4, cpus=(1,)),
        thread("Thread-2", policy=Policy("rr", 3)),
        thread("Thread-3", nice=-5),
    )
    values, _ = thread_figures(found)
    assert (values["worker_nice_min"], values["worker_nice_max"]) == (-5, 4)
    assert (values["worker_priority_min"], values["worker_priority_max"]) == (15, 43)
    assert (values["worker_policy_min"], values["worker_policy_max"]) == (0, 2)
    assert (values["worker_cpus_min"], values["worker_cpus_max"]) == (1, 2)
    assert values["threads_off_affinity"] == 1
    assert set(values) == set(THREAD_INDICATORS)


def test_what_was_not_read_is_absent_with_a_reason() -> None:
    found = role(thread("Thread-1", cpus=None, policy=None), thread("Thread-2"), total=5)
    values, absent = thread_figures(found)
    assert absent["worker_cpus_min"] == "1 of 2 workers were not sampled"
    assert absent["worker_priority_max"] == "1 of 2 workers were not sampled"
    assert absent["service_threads_total"] == "2 of 5 threads are listed"
    assert values["worker_nice_max"] == 0
    assert set(values) | set(absent) == set(THREAD_INDICATORS)
    assert not set(values) & set(absent)


@pytest.mark.parametrize(
    ("class_", "priority", "nice", "pri"),
    [
        ("other", 0, 0, 19),
        ("other", 0, -20, 39),
        ("batch", 0, 19, 0),
        ("rr", 1, 0, 41),
        ("fifo", 99, 0, 139),
        ("rr", 0, 0, None),
        ("idle", 0, 0, -1),
        ("deadline", 0, 0, None),
    ],
)
def test_the_priority_is_that_of_ps(
    class_: PolicyClass, priority: int, nice: int, pri: float | None
) -> None:
    assert kernel_priority(nice, Policy(class_, priority)) == pri


def test_the_cpus_are_told_apart_where_a_role_is_bound_to_some() -> None:
    record = record_of(SPEC, 2.0)
    busy = {"0": 500_000_000, "1": 2_100_000_000}
    machine = msgspec.structs.replace(record.machine, busy_ns_by_cpu=busy)
    free = msgspec.structs.replace(record, machine=machine)
    assert cpu_figures(free) == {}
    bound = msgspec.structs.replace(
        record.roles[0], controls=GrantedControls(requested=Controls(cpus=(1,)))
    )
    record = msgspec.structs.replace(free, roles=(bound,))
    assert cpu_figures(record) == {"cpu0_busy": 0.25, "cpu1_busy": 1.0}
    assert measure(record, Asked(alone("target"))).values["cpu1_busy"] == 1.0
    info = cpu_info("cpu12_busy")
    assert info is not None and info.label == "CPU 12 busy"
    assert cpu_info("cpus_used") is None
    many = msgspec.structs.replace(machine, busy_ns_by_cpu={str(cpu): 1 for cpu in range(9)})
    assert cpu_figures(msgspec.structs.replace(record, machine=many)) == {}


def test_switches_and_cpus_used_are_made_of_their_parts() -> None:
    usage = Usage(cpu_ns=3_000_000_000, voluntary_switches=5, involuntary_switches=7)
    phase = PhaseRecord(name="measure", begin_ns=0, wall_ns=2_000_000_000, usage=usage)
    record = record_of(SPEC, 20.0)
    phased = msgspec.structs.replace(record.roles[0], phases=(phase,))
    figures = measure(msgspec.structs.replace(record, roles=(phased,)), Asked(alone("target")))
    assert figures.values["context_switches"] == 12
    assert figures.values["cpus_used"] == 1.5
    assert figures.values["run_cpu_seconds"] == 20.0
    none = msgspec.structs.replace(phase, usage=Usage(absent={"voluntary_switches": "not read"}))
    bare = msgspec.structs.replace(record.roles[0], phases=(none,))
    absent = measure(msgspec.structs.replace(record, roles=(bare,)), Asked(alone("target"))).absent
    assert absent["context_switches"] == "not read"
    assert absent["cpus_used"] == "the runner gave no reason"
