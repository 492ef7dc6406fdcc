"""The records of hosts as one: the times of one clock, every role as its own runner saw it."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from concurve.hosts.clocks import Offset
from concurve.hosts.merging import Measured, merge
from concurve.hosts.stand_in import CLOCK
from concurve.wire.record import (
    MachineRecord,
    Outcome,
    PhaseRecord,
    RoleRecord,
    TrialRecord,
)
from concurve.wire.spec import RoleSpec, TrialSpec

SPEC = TrialSpec(
    trial="t",
    roles=(
        RoleSpec(name="target", argv=("serve",), end="serve", ready="report", host="a"),
        RoleSpec(name="load", argv=("load",), host="b"),
    ),
)
MS = 1_000_000


def phase(name: str, begin_ns: int, **more: Any) -> PhaseRecord:
    return PhaseRecord(name=name, begin_ns=begin_ns, wall_ns=10, **more)


def gate(begin_local_ns: int, at_ns: int) -> RoleRecord:
    """A stand-in that said at ``at_ns`` of its host what the clock showed."""
    return RoleRecord(
        name="@gate-1", pid=9, facts={CLOCK: at_ns}, phases=(phase(CLOCK, at_ns - begin_local_ns),)
    )


def record(*roles: RoleRecord, busy_ns: int = 0, **more: Any) -> TrialRecord:
    return TrialRecord(
        format=1,
        trial="t",
        outcome=more.pop("outcome", Outcome(kind="ok")),
        roles=roles,
        wall_ns=900,
        machine=MachineRecord(cpus=2, busy_ns=busy_ns),
        **more,
    )


def measured(offset_b: int = 0) -> list[Measured]:
    """A server on ``a`` whose runner began at 1000, and a load on ``b`` that began at 3000 ms by
    the clock of ``a``, which is ours; that of ``b`` shows ``offset_b`` more."""
    target = RoleRecord(
        name="target",
        pid=1,
        released_ns=0,
        wall_ns=5000 * MS,
        phases=(phase("measure", 2600 * MS, marked_by="@gate-1"), phase(CLOCK, 1, marked_by="@x")),
    )
    load = RoleRecord(
        name="load", pid=2, released_ns=500 * MS, wall_ns=2000 * MS,
        phases=(phase("measure", 600 * MS),),
    )  # fmt: skip
    a = record(target, gate(1000 * MS, 3400 * MS), busy_ns=7, started_unix_ns=50_000 * MS)
    begin_b = 3000 * MS + offset_b
    b = record(gate(begin_b, begin_b + 400 * MS), load, busy_ns=8, started_unix_ns=52_000 * MS)
    return [
        Measured("a", a, Offset(0, 5, 0), {"@gate-1": (3390 * MS, ())}, engine_cpu_ns=3),
        Measured("b", b, Offset(offset_b, 6, 0), {"@gate-1": (begin_b + 499 * MS, ("load",))}),
    ]


@given(st.integers(-(10**15), 10**15))
def test_times_are_those_of_one_clock_whatever_the_hosts_show(offset: int) -> None:
    merged = merge(SPEC, measured(offset), frozenset())
    target, load = merged.roles
    assert [role.name for role in merged.roles] == ["target", "load"]
    assert (target.host, target.released_ns) == ("a", 0)
    assert (load.host, load.released_ns) == ("b", 2500 * MS)
    assert load.phases[0].begin_ns == 2600 * MS
    assert merged.wall_ns == 4500 * MS, "to the end of the load"
    assert merged.started_unix_ns == 50_000 * MS


def test_phases_elsewhere_are_those_of_the_role_that_marked_them() -> None:
    target = merge(SPEC, measured(), frozenset()).roles[0]
    assert [(it.name, it.marked_by, it.begin_ns) for it in target.phases] == [
        ("measure", "load", 2600 * MS)
    ]


def test_each_host_keeps_its_own_account() -> None:
    merged = merge(SPEC, measured(77), frozenset())
    a, b = merged.hosts
    assert (a.name, a.machine.busy_ns, a.clock_offset_ns, a.clock_error_ns) == ("a", 7, 0, 5)
    assert (b.name, b.machine.busy_ns, b.clock_offset_ns, b.clock_error_ns) == ("b", 8, 77, 6)
    assert (a.begin_ns, b.begin_ns) == (0, 2000 * MS)
    assert (a.start_late_ns, b.start_late_ns) == (None, MS)
    assert (a.engine_cpu_ns, b.engine_cpu_ns) == (3, None)
    assert merged.machine.busy_ns == 7, "that of the host of the first role"


def test_a_trial_on_one_host_needs_no_clock() -> None:
    alone = TrialSpec(trial="t", roles=(SPEC.roles[0],))
    role = RoleRecord(name="target", pid=1, wall_ns=30)
    merged = merge(alone, [Measured("a", record(role))], frozenset())
    assert merged.roles[0].released_ns == 0 and "begin_ns" not in merged.hosts[0].absent


def failed(index: int, outcome: Outcome, stopped: str) -> TrialRecord:
    """The merged record where one part ended by itself and another was stopped for it."""
    found = measured()
    kinds = [Outcome(kind="interrupted"), Outcome(kind="interrupted")]
    kinds[index] = outcome
    parts = [
        one._replace(record=msgspec.structs.replace(one.record, outcome=kind))
        for one, kind in zip(found, kinds, strict=True)
    ]
    return merge(SPEC, parts, frozenset([stopped]))


def test_the_outcome_is_that_of_the_host_where_it_went_wrong() -> None:
    outcome = Outcome(kind="program_failed", role="load", message="load exited with 3")
    assert failed(1, outcome, "a").outcome == Outcome(
        kind="program_failed", role="load", message="host b: load exited with 3"
    )


def test_a_stand_in_is_never_blamed_by_its_name() -> None:
    outcome = Outcome(kind="not_ready", role="@gate-1", message="late")
    assert failed(0, outcome, "b").outcome.role is None


def test_a_part_that_ended_before_its_time_is_no_smaller_trial() -> None:
    outcome = failed(1, Outcome(kind="ok"), "a").outcome
    assert outcome.kind == "program_failed"
    assert "host b: its part ended before" in str(outcome.message)


def test_a_role_that_never_began_has_no_times() -> None:
    found = measured()
    roles = tuple(
        msgspec.structs.replace(role, pid=None, released_ns=0, wall_ns=0)
        if role.name == "load"
        else role
        for role in found[1].record.roles
    )
    found[1] = found[1]._replace(record=msgspec.structs.replace(found[1].record, roles=roles))
    merged = merge(SPEC, found, frozenset())
    assert merged.roles[1].released_ns == 0
    assert merged.wall_ns == 5000 * MS, "no role that ends by itself was started"
