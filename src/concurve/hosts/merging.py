"""The records of the hosts of a trial → one record. Pure.

Each runner counts time from its own first release. The stand-ins of a host say where that lies on
its monotonic clock, and the offset of that clock says where on ours; the merged record begins with
the first release of a role of the study on any host. Nothing is averaged: every role is as its own
runner saw it, and each host keeps its own account of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve.hosts.clocks import Offset
from concurve.hosts.parts import STAND_IN
from concurve.hosts.stand_in import CLOCK
from concurve.wire.record import (
    HostRecord,
    Outcome,
    PhaseRecord,
    RoleRecord,
    TrialRecord,
)
from concurve.wire.spec import FORMAT, TrialSpec

_NO_CLOCK = "no stand-in of this host said where its trial lies on its clock"
_ONE_HOST = "the trial ran on one host: no other clock matters"
_NO_START = "no role of this host waited for an agreed start"
_NO_MARK = "the daemons of this host are not marked as those that concurve hosts up starts"


class Measured(NamedTuple):
    """What a host has measured: its record, the offset of its clock from ours, when its gates were
    to open by its own clock, with the roles behind each, and the CPU time that the daemons of the
    engine used there meanwhile, if it is known."""

    host: str
    record: TrialRecord
    offset: Offset | None = None
    opened: Mapping[str, tuple[int, tuple[str, ...]]] = {}
    engine_cpu_ns: int | None = None


def merge(spec: TrialSpec, measured: Sequence[Measured], stopped: frozenset[str]) -> TrialRecord:
    """The record of the whole trial; ``stopped`` names the hosts whose trial was ended because that
    of another one had."""
    begins = {one.host: _begin_ns(one) for one in measured}
    zero = min(
        (begin + role.released_ns for one in measured if (begin := begins[one.host]) is not None
         for role in _own(one.record) if role.pid is not None),
        default=min((begin for begin in begins.values() if begin is not None), default=0),
    )  # fmt: skip
    shifts = {host: 0 if begin is None else begin - zero for host, begin in begins.items()}
    roles = {
        role.name: _shifted(role, one.host, shifts[one.host], measured)
        for one in measured
        for role in _own(one.record)
    }
    first = next(one for one in measured if one.host == (spec.roles[0].host or ""))
    return TrialRecord(
        format=FORMAT,
        trial=spec.trial,
        outcome=_outcome(measured, stopped),
        roles=tuple(roles[role.name] for role in spec.roles if role.name in roles),
        runner=first.record.runner,
        started_unix_ns=_started(measured, shifts),
        wall_ns=_wall_ns(spec, roles),
        machine=first.record.machine,
        instrument=first.record.instrument,
        hosts=tuple(_host(one, begins[one.host], shifts[one.host]) for one in measured),
    )


def _own(record: TrialRecord) -> list[RoleRecord]:
    """The roles of the study."""
    return [role for role in record.roles if not role.name.startswith(STAND_IN)]


def _begin_ns(one: Measured) -> int | None:
    """When the runner of a host released its first role, by our clock; ``None`` if no stand-in
    said."""
    local = _begin_local_ns(one.record)
    return None if local is None or one.offset is None else one.offset.ours(local)


def _begin_local_ns(record: TrialRecord) -> int | None:
    for role in record.roles:
        said = role.facts.get(CLOCK)
        phase = next((phase for phase in role.phases if phase.name == CLOCK), None)
        if role.name.startswith(STAND_IN) and isinstance(said, int) and phase is not None:
            return said - phase.begin_ns
    return None


def _shifted(
    role: RoleRecord, host: str, shift_ns: int, measured: Sequence[Measured]
) -> RoleRecord:
    """A role with the times of the whole trial. Phases that stand-ins marked are those of the roles
    for which they stand."""
    phases = []
    for phase in role.phases:
        if phase.name == CLOCK:
            continue
        marked_by = phase.marked_by
        if marked_by is not None and marked_by.startswith(STAND_IN):
            marked_by = _marker(phase, host, measured)
        begin_ns = max(0, phase.begin_ns + shift_ns)
        phases.append(msgspec.structs.replace(phase, begin_ns=begin_ns, marked_by=marked_by))
    released = 0 if role.pid is None else max(0, role.released_ns + shift_ns)
    return msgspec.structs.replace(
        role, host=host or None, released_ns=released, phases=tuple(phases)
    )


def _marker(phase: PhaseRecord, host: str, measured: Sequence[Measured]) -> str | None:
    """The role on another host that marked a phase of this name first, in the order of hosts."""
    return next(
        (
            role.name
            for one in measured
            if one.host != host
            for role in _own(one.record)
            if any(other.name == phase.name for other in role.phases)
        ),
        None,
    )


def _outcome(measured: Sequence[Measured], stopped: frozenset[str]) -> Outcome:
    """How the trial ended: as on the first host, in the order of the roles, where it went wrong by
    itself."""
    wrong = [one for one in measured if one.record.outcome.kind != "ok"]
    own = [one for one in wrong if one.host not in stopped]
    if not wrong:
        return measured[0].record.outcome
    if not own:
        early = next(one.host for one in measured if one.host not in stopped)
        says = f"host {early}: its part ended before those of the other hosts"
        return Outcome(kind="program_failed", message=says)
    one = own[0]
    outcome = one.record.outcome
    role = outcome.role
    is_ours = role is not None and role.startswith(STAND_IN)
    return Outcome(
        kind=outcome.kind,
        role=None if is_ours else role,
        message=f"host {one.host}: {outcome.message}" if one.host else outcome.message,
    )


def _started(measured: Sequence[Measured], shifts: Mapping[str, int]) -> int:
    """The wall-clock time at which the merged record begins, by the clock of the host whose role
    was released first."""
    found = [
        (shifts[one.host] + role.released_ns, one.record.started_unix_ns - shifts[one.host])
        for one in measured
        for role in _own(one.record)
        if role.pid is not None
    ]
    return min(found)[1] if found else measured[0].record.started_unix_ns


def _wall_ns(spec: TrialSpec, roles: Mapping[str, RoleRecord]) -> int:
    """To the last exit of a role that ends by itself; of any role if none of those was started."""
    exits = [role.name for role in spec.roles if role.end == "exit"]
    started = [roles[name] for name in exits if name in roles and roles[name].pid is not None]
    ends = (role.released_ns + role.wall_ns for role in started or roles.values())
    return max(ends, default=0)


def _host(one: Measured, begin_ns: int | None, shift_ns: int) -> HostRecord:
    record = one.record
    late_ns = _late_ns(one)
    absent = {
        "begin_ns": _NO_CLOCK if begin_ns is None and one.offset is not None else "",
        "clock_offset_ns": _ONE_HOST if one.offset is None else "",
        "clock_error_ns": _ONE_HOST if one.offset is None else "",
        "start_late_ns": _NO_START if late_ns is None else "",
        "engine_cpu_ns": _NO_MARK if one.engine_cpu_ns is None else "",
    }
    return HostRecord(
        name=one.host,
        machine=record.machine,
        instrument=record.instrument,
        begin_ns=max(0, shift_ns),
        wall_ns=record.wall_ns,
        clock_offset_ns=None if one.offset is None else one.offset.ns,
        clock_error_ns=None if one.offset is None else one.offset.error_ns,
        start_late_ns=late_ns,
        engine_cpu_ns=one.engine_cpu_ns,
        absent={name: why for name, why in absent.items() if why},
    )


def _late_ns(one: Measured) -> int | None:
    """How long after the agreed time the first role behind each gate was released, at worst. By
    the clock of the host alone, so no offset matters."""
    begin = _begin_local_ns(one.record)
    if begin is None:
        return None
    released = {role.name: role.released_ns for role in one.record.roles if role.pid is not None}
    found = [
        max(0, begin + released[names[0]] - at_ns)
        for at_ns, names in one.opened.values()
        if names and names[0] in released
    ]
    return max(found, default=None)
