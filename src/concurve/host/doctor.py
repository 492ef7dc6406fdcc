"""What this machine grants to measurements, and how to quieten it: an item each, with the command.

Pure, but for the readers of ``/sys`` under a root that tests replace.
"""

from __future__ import annotations

import os
import re
import resource
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concurve.host.machine_check import Item, is_virtual
from concurve.host.quotas import cpu_quota

_CPU = "sys/devices/system/cpu"

#: What a virtual machine cannot change.
_GUEST = Item(
    "--",
    "virtual machine",
    "the host sets the clock of the CPUs, which may vary, and may take them away: trials that "
    "lose CPU time are repeated, and a run warns where all settings change alike",
    "nothing in it ends that: measure at another hour, or wait: `concurve sweep --wait-quiet 5m …`",
)

#: A machine of fewer has none that a measurement could have for itself.
CPUS_TO_SPARE = 4

#: The capability that admits priorities below 0 and real-time policies, by the kernel's number.
_SYS_NICE = 23
#: The map of the users of the first namespace: in another one a capability grants no priority.
_ALL_USERS = ["0", "0", "4294967295"]


def grants(facts: dict[str, Any], root: Path = Path("/"), runner: Path | None = None) -> list[Item]:
    """The CPUs, the priorities and the memory that a measured program may have. ``runner`` is the
    program that sets its priority."""
    may_raise = _may_raise(root, runner)
    return [
        _cpus(facts),
        _quota(root),
        _nice(may_raise),
        _realtime(may_raise),
        _memory(facts),
    ]


def quieting(facts: dict[str, Any], root: Path = Path("/")) -> list[Item]:
    """How steady the CPUs are, with the command that makes them steadier. A virtual machine is told
    what can be done in it, and no more: its host has the frequency."""
    items = [
        _governor(facts),
        _boost(facts, root),
        _smt(facts),
        _isolation(facts, root),
        _cgroup(facts),
    ]
    if not is_virtual(facts):
        return items
    return [_GUEST, *(item for item in items if item.mark != "--" or item.remedy)]


def foremost(items: Sequence[Item]) -> str:
    """What matters most of these, which are in the order of their weight, in short."""
    of_weight = (item for item in items if item.mark == "!!")
    found = next(of_weight, _GUEST if _GUEST in items else None)
    if found is None:
        return "nothing: the machine is quiet, and its CPUs are steady"
    return f"{found.name}: {found.says.partition(': ')[0]}"


def _cpus(facts: dict[str, Any]) -> Item:
    allowed = facts.get("cpus_allowed", [])
    online = facts.get("topology", {}).get("cpus", len(allowed))
    says = f"{len(allowed)} of {online} CPUs: {as_list(allowed)}"
    if len(allowed) < online:
        return Item("!!", "CPUs", says, f"`taskset -c 0-{online - 1} concurve …`")
    return Item("ok", "CPUs", says)


def _quota(root: Path) -> Item:
    quota = cpu_quota(root)
    if quota is None:
        return Item("ok", "CPU quota", "none")
    return Item(
        "!!",
        "CPU quota",
        f"{quota:g} CPUs: beyond them the cgroup throttles",
        "`docker run --cpus=N …`, or for a unit: `systemctl set-property UNIT CPUQuota=`",
    )


def _nice(may_raise: bool) -> Item:
    limit = resource.getrlimit(resource.RLIMIT_NICE)[0]
    is_free = may_raise or limit == resource.RLIM_INFINITY
    least = -20 if is_free else max(-20, 20 - limit)
    if least < 0:
        return Item("ok", "nice", f"{least} to 19")
    return Item(
        "--",
        "nice",
        "0 to 19: --nice below 0 is refused",
        _remedy("`sudo setcap cap_sys_nice+ep $(command -v concurve-trial)`"),
    )


def _realtime(may_raise: bool) -> Item:
    limit = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    if may_raise or limit != 0:
        return Item("ok", "real-time policies", "fifo and rr are granted")
    return Item(
        "--",
        "real-time policies",
        "--policy fifo and rr are refused",
        _remedy("a line '@USER - rtprio 99' in /etc/security/limits.conf"),
    )


def _remedy(of_a_user: str) -> str:
    """How priorities are granted: to root, who lacks them in a container, or to a user."""
    if os.geteuid() == 0:
        return "`docker run --cap-add SYS_NICE …`; rootless containers cannot grant it"
    return f"`sudo concurve …`, or {of_a_user}"


def _may_raise(root: Path, runner: Path | None) -> bool:
    """Is the capability that admits any priority ours, or that of the file of the runner? Root
    lacks it where a container was started without it."""
    try:
        status = (root / "proc/self/status").read_text(encoding="utf-8", errors="replace")
        users = (root / "proc/self/uid_map").read_text(encoding="utf-8")
    except OSError:
        return False
    found = re.search(r"^CapEff:\s*([0-9a-fA-F]+)$", status, re.MULTILINE)
    ours = int(found[1], 16) if found else 0
    is_granted = ours >> _SYS_NICE & 1 or (runner is not None and _grants_it(runner))
    return bool(is_granted) and users.split() == _ALL_USERS


def _grants_it(program: Path) -> bool:
    """Does the file of a program give it the capability?"""
    try:
        stored = os.getxattr(program, "security.capability")
        flags, permitted = struct.unpack_from("<II", stored)
    except (OSError, struct.error):
        return False
    return bool(flags & 1 and permitted >> _SYS_NICE & 1)


def _memory(facts: dict[str, Any]) -> Item:
    cgroup = facts.get("cgroup", {})
    limit = str(cgroup.get("memory_max", cgroup.get("memory_limit_bytes", "none")))
    total = facts.get("memory_bytes", 0)
    says = f"{total / 2**30:.1f} GiB"
    if not limit.isdigit():
        return Item("ok", "memory", says)
    return Item(
        "!!",
        "memory",
        f"{says}, limited to {int(limit) / 2**30:.1f} GiB by the cgroup",
        "`docker run --memory=SIZE …`, or for a unit: `systemctl set-property UNIT MemoryMax=`",
    )


def _governor(facts: dict[str, Any]) -> Item:
    if "governor" not in facts:
        return _unread(facts, "governor", "frequency governor")
    if facts["governor"] == "performance":
        return Item("ok", "frequency governor", "performance")
    return Item(
        "!!",
        "frequency governor",
        f"{facts['governor']}: the frequency follows the load",
        "`sudo cpupower frequency-set -g performance`",
    )


def _boost(facts: dict[str, Any], root: Path) -> Item:
    if "boost" not in facts:
        return _unread(facts, "boost", "boost")
    if facts["boost"] == "off":
        return Item("ok", "boost", "off")
    intel = (root / _CPU / "intel_pstate/no_turbo").exists()
    value, file = ("1", "intel_pstate/no_turbo") if intel else ("0", "cpufreq/boost")
    return Item(
        "!!",
        "boost",
        "on: the frequency depends on how many CPUs are busy, and on their temperature",
        f"`echo {value} | sudo tee /{_CPU}/{file}`",
    )


def _smt(facts: dict[str, Any]) -> Item:
    if "smt" not in facts:
        return _unread(facts, "smt", "SMT")
    if facts["smt"] != "on":
        return Item("ok", "SMT", facts["smt"])
    return Item(
        "!!",
        "SMT",
        "on: two CPUs share a core, so the second half of the CPUs adds less",
        f"`echo off | sudo tee /{_CPU}/smt/control`",
    )


def _isolation(facts: dict[str, Any], root: Path) -> Item:
    try:
        isolated = (root / _CPU / "isolated").read_text(encoding="utf-8").strip()
    except OSError as error:
        return Item("--", "isolated CPUs", f"not read: {error.strerror}")
    allowed = facts.get("cpus_allowed", [])
    online = facts.get("topology", {}).get("cpus", len(allowed))
    # The kernel takes them out of the CPUs that a process is given at its start.
    use = f"taskset -c 0-{online - 1} concurve … --cpus"
    if isolated:
        return Item("ok", "isolated CPUs", f"{isolated}: use them by `{use} {isolated}`")
    if len(allowed) < CPUS_TO_SPARE:
        return Item("--", "isolated CPUs", "none; it takes four CPUs to spare some")
    last = as_list(allowed[len(allowed) // 2 :])
    return Item(
        "--",
        "isolated CPUs",
        "none: other processes run on every CPU",
        f"`isolcpus={last} nohz_full={last}` on the kernel's command line, then `{use} {last}`",
    )


def _cgroup(facts: dict[str, Any]) -> Item:
    version = facts.get("cgroup", {}).get("version")
    if version is None:
        return _unread(facts, "cgroup", "cgroup")
    allowed = facts.get("cpus_allowed", [])
    says = f"version {version}"
    if len(allowed) < CPUS_TO_SPARE:
        return Item("--", "cgroup", f"{says}; it takes four CPUs to keep others off some")
    others, ours = as_list(allowed[: len(allowed) // 2]), as_list(allowed[len(allowed) // 2 :])
    if version == 2:
        command = (
            f"`sudo systemctl set-property --runtime user.slice AllowedCPUs={others}`; the same "
            "for system.slice; then "
            f"`sudo systemd-run --scope --slice=measure -p AllowedCPUs={ours} concurve …`"
        )
    else:
        command = (
            f"`sudo cset shield --cpu {ours} --kthread on`; then `sudo cset shield -e concurve …`"
        )
    return Item("--", "cgroup", f"{says}: keeps other processes off some CPUs", command)


def _unread(facts: dict[str, Any], key: str, name: str) -> Item:
    return Item("--", name, facts.get("absent", {}).get(key, "not read"))


def as_list(cpus: list[int]) -> str:
    """CPUs as the kernel lists them: ``0-3,8``."""
    parts: list[list[int]] = []
    for cpu in cpus:
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
