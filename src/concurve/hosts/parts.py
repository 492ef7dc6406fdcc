"""The spec of a trial over hosts → a spec for the runner of each host. Pure.

A runner knows its own roles alone. Roles on other hosts are seen by it as stand-ins, small roles of
ours in the place of those: a *gate* is started when every role before it is ready, says so, and is
ready itself when the laboratory opens it. So the order of a trial is that of its spec, on whichever
hosts its roles are: each runner starts roles in order, and the gates hold what must wait for
others. Roles that may start at once, one after the other, form a *wave*; the gates of a wave open
at one agreed time on all hosts. The last gate of a host that serves others stays until their roles
have ended, and marks the phases of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from concurve.wire.spec import Controls, RoleSpec, TrialSpec

#: How the names of stand-ins begin; no role of a study has such a name.
STAND_IN = "@"

#: The command of a stand-in in a spec; the agent puts that of its host there.
COMMAND = "concurve-stand-in"

#: The stand-in that is started when the roles of a host that end by themselves have ended.
ENDED = f"{STAND_IN}ended"

#: What a stand-in does after its gate is open: exit, or stay until it is told to.
PASS, HOLD = "pass", "hold"


class Part(NamedTuple):
    """The part of a trial that runs on a host: its spec, its roles behind each gate in the order of
    the gates, and whether a stand-in ``holds`` it until the roles of other hosts have ended.
    ``tells_end``: the end of its own roles is told by :data:`ENDED`, since its runner goes on."""

    host: str
    spec: TrialSpec
    gates: dict[str, tuple[str, ...]]
    holds: bool
    tells_end: bool


def gate_name(wave: int) -> str:
    """The name of the gates of a wave."""
    return f"{STAND_IN}gate-{wave}"


def hosts_of(spec: TrialSpec) -> list[str]:
    """The hosts of a trial in the order of its roles."""
    return list(dict.fromkeys(role.host or "" for role in spec.roles))


def waves(roles: Sequence[RoleSpec]) -> list[list[RoleSpec]]:
    """The roles in groups that may start at once: each ends with one whose readiness is awaited,
    or before one that waits for the end of another."""
    found: list[list[RoleSpec]] = []
    for role in roles:
        if not found or role.after or _is_awaited(found[-1][-1]):
            found.append([])
        found[-1].append(role)
    return found


def split(spec: TrialSpec, housekeeping: dict[str, tuple[int, ...]]) -> list[Part]:
    """The parts of a trial by host; ``housekeeping`` has the CPUs of stand-ins on each host, none
    for any. A trial on one host is one part, without stand-ins."""
    hosts = hosts_of(spec)
    if len(hosts) == 1:
        roles = tuple(msgspec.structs.replace(role, host=None) for role in spec.roles)
        return [Part(hosts[0], msgspec.structs.replace(spec, roles=roles), {}, False, False)]
    grouped = waves(spec.roles)
    return [_part(spec, grouped, host, housekeeping.get(host, ())) for host in hosts]


def _part(spec: TrialSpec, grouped: list[list[RoleSpec]], host: str, cpus: tuple[int, ...]) -> Part:
    own_names = {role.name for role in spec.roles if role.host == host}
    roles: list[RoleSpec] = []
    gates: dict[str, tuple[str, ...]] = {}
    since = 0
    for number, wave in enumerate(grouped):
        own = [role for role in wave if role.host == host]
        awaited = {name for role in wave for name in role.after} & own_names
        if _has_gate(grouped, number, since, host, awaited):
            since = number
            roles.append(_stand_in(gate_name(number), PASS, cpus, tuple(sorted(awaited))))
            gates[gate_name(number)] = tuple(role.name for role in own)
        roles += [_alone(role, own_names) for role in own]
    own_roles = [role for role in spec.roles if role.host == host]
    serves = any(role.end == "serve" for role in own_roles)
    elsewhere = any(role.end == "exit" for role in spec.roles if role.host != host)
    own_exits = tuple(role.name for role in own_roles if role.end == "exit")
    holds = serves and elsewhere
    if holds:
        roles = _held(roles, gates, len(grouped), cpus)
        if own_exits:
            roles.append(_stand_in(ENDED, HOLD, cpus, own_exits, ready="launch"))
    whole = msgspec.structs.replace(spec, roles=tuple(roles))
    return Part(host, whole, gates, holds, holds and bool(own_exits))


def _has_gate(
    grouped: list[list[RoleSpec]], number: int, since: int, host: str, awaited: set[str]
) -> bool:
    """Does a host have a gate in a wave? If its roles there wait for other hosts, or start together
    with theirs, or if roles elsewhere wait for what it has started before. ``since`` is the wave of
    its last gate: what was before that is ready on all hosts."""
    own = any(role.host == host for role in grouped[number])
    others_since = any(role.host != host for wave in grouped[since : number + 1] for role in wave)
    others_now = any(role.host != host for role in grouped[number])
    started_before = number > 0 and any(role.host == host for role in grouped[number - 1])
    return (own and others_since) or (others_now and (started_before or bool(awaited)))


def _held(
    roles: list[RoleSpec], gates: dict[str, tuple[str, ...]], waves_all: int, cpus: tuple[int, ...]
) -> list[RoleSpec]:
    """The roles of a host that serves others, the last of them one that stays: its last gate, if no
    role stands behind that, else a further one."""
    last = roles[-1]
    if last.name in gates:
        return [*roles[:-1], msgspec.structs.replace(last, argv=(COMMAND, last.name, HOLD))]
    name = gate_name(waves_all)
    return [*roles, _stand_in(name, HOLD, cpus, (), ready="launch")]


def _stand_in(
    name: str, kind: str, cpus: tuple[int, ...], after: tuple[str, ...], ready: str = "report"
) -> RoleSpec:
    return RoleSpec(
        name=name,
        argv=(COMMAND, name, kind),
        controls=Controls(cpus=cpus or None),
        ready="report" if ready == "report" else "launch",
        after=after,
    )


def _alone(role: RoleSpec, own_names: set[str]) -> RoleSpec:
    """A role as its own runner gets it: the gate waits for the roles of other hosts."""
    after = tuple(name for name in role.after if name in own_names)
    return msgspec.structs.replace(role, after=after, host=None)


def _is_awaited(role: RoleSpec) -> bool:
    return role.ready == "report" or role.ready_probe is not None
