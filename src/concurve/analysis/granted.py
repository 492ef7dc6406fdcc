"""How many CPUs the roles may use in each cell of a stored run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from concurve.definition.controls import SPARE
from concurve.definition.indicator_names import split_name
from concurve.definition.study import Role
from concurve.definition.templates import Value, expand, render
from concurve.errors import ConcurveError
from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan
from concurve.store.run_head import RunHead

#: What the runtime of Go is told in its environment, of a role or through ``env``.
_GO = re.compile(r"GOMAXPROCS=([1-9]\d*)")


class Pool(NamedTuple):
    """CPUs that some roles of a cell share, and no other one: at most ``cpus`` of them at once, by
    affinity, quota, or what the runtime of the only role was told. ``roles`` are their names as
    figures begin with them: that of the measured role is empty."""

    roles: tuple[str, ...]
    cpus: float

    @property
    def is_own(self) -> bool:
        """Has the measured role them for itself?"""
        return self.roles == ("",)


def granted_cpus(head: RunHead, plan: Plan) -> dict[int, tuple[Pool, ...]]:
    """The pools of CPUs by index of the cell: of each role that has some alone, and those that
    all roles use together.

    A cell is missing where they are not known: the run has no description of its machine, or runs
    on several ones, or a role is elsewhere or was started outside of what the laboratory may use.
    """
    machine, roles = head.machine, head.study.roles
    allowed = machine.get("cpus_allowed")
    if not isinstance(allowed, list) or not allowed or not _is_here(head, len(allowed)):
        return {}
    cgroup = machine.get("cgroup")
    quota = cgroup.get("cpus") if isinstance(cgroup, dict) else None
    most = quota if isinstance(quota, int | float) else float(len(allowed))
    found = {}
    for index, cell in enumerate(plan.cells):
        values = plan.values(cell)
        try:
            bound = _bound(roles, values, allowed)
            told = {role.name: _told(role, values) for role in roles}
        except ConcurveError:
            continue
        own = {"" if role.name == head.study.target else role.name: role.name for role in roles}
        pools = [
            Pool((name,), min(float(len(bound[role])), most, told[role] or most))
            for name, role in own.items()
            if all(not bound[role] & bound[other] for other in bound if other != role) or told[role]
        ]
        if len(roles) > 1:
            together = frozenset[int]().union(*bound.values())
            pools.append(Pool(tuple(own), min(float(len(together)), most)))
        found[index] = tuple(pools)
    return found


def cpus_used(cell: CellFindings) -> float:
    """The CPUs that all roles of a cell use together; of a role without accounts, none."""
    return sum(
        figure.value
        for name, figure in cell.indicators.items()
        if split_name(name).own == "cpus_used"
    )


def _is_here(head: RunHead, allowed: int) -> bool:
    """Do all roles run on this machine, on CPUs that the laboratory may use? What is attached may
    have others, unless there are no others; that of a single role has no account of its own."""
    roles = head.study.roles
    if len(roles) == 1:
        return True
    if head.hosts is not None:
        return False
    topology = head.machine.get("topology")
    cpus = topology.get("cpus") if isinstance(topology, dict) else None
    return cpus == allowed or all(role.attach is None for role in roles)


def _bound(
    roles: tuple[Role, ...], values: Mapping[str, Value], allowed: list[int]
) -> dict[str, frozenset[int]]:
    """The CPUs of each role; ``spare`` are those that no other one is bound to."""
    named = {
        role.name: frozenset(role.controls.resolve(values, allowed, role.name).cpus or ())
        for role in roles
    }
    spare = frozenset(allowed).difference(*named.values())
    wants = {role.name: render(role.controls.cpus or "", values) for role in roles}
    return {
        name: cpus or (spare if wants[name] == SPARE and spare else frozenset(allowed))
        for name, cpus in named.items()
    }


def _told(role: Role, values: Mapping[str, Value]) -> float | None:
    """The CPUs that the runtime of a role was told to use; ``None`` where it was not."""
    of_role = [f"{name}={render(text, values)}" for name, text in role.env.items()]
    texts = (*of_role, *expand(role.command, values))
    return next((float(found[1]) for text in texts if (found := _GO.fullmatch(text))), None)
