"""Checks what makes figures of this machine doubtful. Pure: facts in, items out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class Item(NamedTuple):
    """One checked item: ``ok``, ``!!`` (figures may suffer) or ``--`` (not granted)."""

    mark: Literal["ok", "!!", "--"]
    name: str
    says: str
    remedy: str = ""


#: The purpose of each source of measurement, by its name in ``concurve-trial probes``.
_GIVES = {
    "cache_misses": "misses of the CPU's caches, for studies that ask for them",
    "children": "the tree of processes",
    "perf": "CPU time and migrations of the whole tree",
    "perf_lives": "births and deaths of threads, exact",
    "perf_samples": "the functions in which threads run",
    "psi_cpu": "how long some task waited for a CPU",
    "psi_io": "how long some task waited for a device",
    "psi_memory": "how long some task waited for memory",
    "sched": "migrations of living threads",
    "schedstat": "run-queue wait of living threads",
    "stat": "CPU time of processes outside the trial",
    "steal": "CPU time that the hypervisor took",
    "syscall": "what threads wait for",
    "taskstats": "run-queue wait and switches of ended threads",
}


#: What systemd-detect-virt(1) and the laboratory call a machine that is no virtual one, or a
#: container, whose machine may be either; older runs say no more.
_CONTAINERS = (
    "systemd-nspawn", "lxc-libvirt", "lxc", "openvz", "docker", "podman", "rkt", "wsl", "proot",
    "pouch",
)  # fmt: skip
_NOT_VIRTUAL = ("", "none", "none seen", "unknown", *_CONTAINERS)


def is_virtual(machine: Mapping[str, object]) -> bool:
    """Is it known that a hypervisor has the CPUs of the machine?"""
    return (
        machine.get("hypervisor") is True
        or str(machine.get("virtualisation", "")) not in _NOT_VIRTUAL
    )


def inspect(facts: dict[str, Any], probes: dict[str, Any]) -> list[Item]:
    """Judge a machine's description and the sources that the runner found."""
    return [*doubts(facts), *sources(probes)]


def doubts(facts: dict[str, Any]) -> list[Item]:
    """Judge a machine's description: what makes its figures doubtful."""
    absent = facts.get("absent", {})
    return [
        _processor(facts),
        _governor(facts, absent),
        _setting(facts, absent, "boost", "off",
                 "frequency varies with load and temperature: concurve doctor has the command"),
        _smt(facts, absent),
        _virtualisation(facts, absent),
        _quota(facts),
        _autogroup(facts, absent),
    ]  # fmt: skip


def sources(probes: dict[str, Any]) -> list[Item]:
    """The sources of measurement that the kernel grants."""
    return [
        Item("ok", name, f"granted: {_GIVES[name]}" if name in _GIVES else "granted")
        if probe.get("granted")
        else Item("--", name, str(probe.get("reason", "not granted")))
        for name, probe in probes.items()
        if isinstance(probe, dict)
    ]


def _processor(facts: dict[str, Any]) -> Item:
    topology, allowed = facts.get("topology", {}), facts.get("cpus_allowed", [])
    online = topology.get("cpus", len(allowed))
    says = f"{facts.get('cpu_model', 'unknown')}, {online} CPUs online, {len(allowed)} allowed"
    if len(allowed) < online:
        return Item("!!", "CPUs", says, "this process may not use all CPUs: taskset, cpuset")
    return Item("ok", "CPUs", says)


def _governor(facts: dict[str, Any], absent: dict[str, str]) -> Item:
    if "governor" not in facts:
        return Item("--", "frequency governor", absent.get("governor", "not read"))
    if facts["governor"] == "performance":
        return Item("ok", "frequency governor", "performance")
    return Item("!!", "frequency governor", facts["governor"],
                "`cpupower frequency-set -g performance`")  # fmt: skip


def _setting(
    facts: dict[str, Any], absent: dict[str, str], name: str, good: str, remedy: str
) -> Item:
    if name not in facts:
        return Item("--", name, absent.get(name, "not read"))
    return Item("ok" if facts[name] == good else "!!", name, facts[name],
                "" if facts[name] == good else remedy)  # fmt: skip


def _smt(facts: dict[str, Any], absent: dict[str, str]) -> Item:
    if "smt" not in facts:
        return Item("--", "SMT", absent.get("smt", "not read"))
    if facts["smt"] == "on":
        return Item("!!", "SMT", "on: two CPUs may share a core",
                    "--cpus with one CPU a core, or `echo off > "
                    "/sys/devices/system/cpu/smt/control`")  # fmt: skip
    return Item("ok", "SMT", facts["smt"])


def _virtualisation(facts: dict[str, Any], absent: dict[str, str]) -> Item:
    """A virtual machine has the same name here and in ``concurve doctor``. A container alone has no
    hypervisor that gives the CPUs to others."""
    kind = facts.get("virtualisation")
    if is_virtual(facts):
        says = "seen" if kind in (None, *_NOT_VIRTUAL) else kind.removeprefix("virtual machine ")
        says = f"seen, with {kind} in it" if kind in _CONTAINERS else says
        remedy = "the hypervisor may take CPU time: trials with steal are redone and named"
        return Item("!!", "virtual machine", says, remedy)
    if kind is None:
        return Item("--", "virtualisation", absent.get("virtualisation", "not read"))
    return Item("ok", "virtualisation", f"container {kind}" if kind in _CONTAINERS else kind)


def _quota(facts: dict[str, Any]) -> Item:
    cgroup = facts.get("cgroup", {})
    quota = cgroup.get("cpu_quota_us", cgroup.get("cpu_max", "none"))
    if cgroup.get("cpus", "none") != "none":
        quota = f"{cgroup['cpus']:g} CPUs"
    if quota == "none":
        return Item("ok", "CPU quota", f"none (cgroup v{cgroup.get('version', '?')})")
    return Item("!!", "CPU quota", str(quota),
                "the cgroup throttles: figures stop at its quota")  # fmt: skip


def _autogroup(facts: dict[str, Any], absent: dict[str, str]) -> Item:
    if "autogroup" not in facts:
        return Item("--", "autogroup", absent.get("autogroup", "not read"))
    if facts["autogroup"] == "1":
        return Item("ok", "autogroup", "on: nice acts inside a session only; roles share one")
    return Item("ok", "autogroup", "off")
