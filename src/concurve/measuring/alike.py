"""Are the hosts alike over which the blocks of a run are dealt out, by what they say of themselves?

Hosts that differ are refused before the first trial. Whether they are alike in what they do, the
trials say (:mod:`concurve.analysis.run.hosts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from concurve.errors import HostError
from concurve.measuring.heads import programs_of
from concurve.measuring.site import Site
from concurve.planning.plan import Plan

#: Facts of a machine that must be the same, with what a reader calls them.
_SAME = {
    "cpu_model": "CPU",
    "topology": "CPUs and caches",
    "smt": "SMT",
    "governor": "governor of the CPU clock",
    "boost": "boost of the CPU clock",
    "kernel": "kernel",
    "virtualisation": "virtualisation",
    "cgroup": "limits of the control group",
    "clocksource": "clock source",
    "transparent_hugepages": "huge pages",
    "mitigations": "mitigations",
}

#: Firmware and crash kernels take a little of it, on each host another share.
MEMORY_SHARE = 0.05

_REMEDY = 'a label for hosts that are alike, and host = "any:LABEL"; or host = NAME for one of them'


def check_alike(plan: Plan, site: Site) -> None:
    """Refuse hosts that are to be interchangeable and are not.

    Raises:
        HostError: names two hosts and what differs, with both values.
    """
    if not plan.alike:
        return
    blocks = {plan.host_of(block): block for block in range(len(plan.alike))}
    first, *others = ((host, _facts(plan, site, host, blocks[host])) for host in plan.alike)
    for host, facts in others:
        for says in _differences(first[0], first[1], host, facts):
            raise HostError(f"hosts {first[0]} and {host} are not alike: {says}", _REMEDY)


def _facts(plan: Plan, site: Site, host: str, block: int) -> dict[str, Any]:
    """What a host says of itself, of the CPUs that trials may use there and of the programs of a
    block."""
    machine = site.machine(host)
    found = {label: machine.get(name) for name, label in _SAME.items()}
    found["memory"] = machine.get("memory_bytes")
    if host in site.machines:
        found["number of CPUs that may be measured"] = len(site.machines[host].cpus)
    for role, facts in programs_of(plan, site, block).items():
        if "sha256" in facts:
            found[f"program of {role} (SHA-256)"] = facts["sha256"]
    return found


def _differences(
    one: str, ones: Mapping[str, Any], other: str, others: Mapping[str, Any]
) -> Iterator[str]:
    for label in dict.fromkeys((*ones, *others)):
        here, there = ones.get(label), others.get(label)
        is_same: Callable[[Any, Any], bool] = _near if label == "memory" else _equal
        if not is_same(here, there):
            yield f"{label} is {_said(here)} on {one}, {_said(there)} on {other}"


def _equal(here: Any, there: Any) -> bool:
    return bool(here == there)


def _near(here: Any, there: Any) -> bool:
    if not isinstance(here, int) or not isinstance(there, int):
        return bool(here == there)
    return abs(here - there) <= MEMORY_SHARE * max(here, there)


def _said(value: Any) -> str:
    return "not known" if value is None else str(value)
