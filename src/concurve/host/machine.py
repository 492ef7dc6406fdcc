"""Facts about this host: what a reader must know to judge a run's figures.

Each fact is read from ``/proc`` and ``/sys`` under a root that tests replace. What cannot be
read is left out with its reason in ``absent``.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from concurve.host.quotas import cpu_quota
from concurve.version import __version__


def allowed_cpus() -> tuple[int, ...]:
    """CPUs that this process may use; ``os.cpu_count`` ignores cpusets."""
    return tuple(sorted(os.sched_getaffinity(0)))


def describe_machine(root: Path = Path("/")) -> dict[str, Any]:
    """The machine's description, as stored with every run."""
    facts: dict[str, Any] = {}
    absent: dict[str, str] = {}
    readers: dict[str, Callable[[Path], Any]] = {
        "cpu_model": _cpu_model,
        "topology": _topology,
        "governor": _governor,
        "boost": _boost,
        "smt": _smt,
        "memory_bytes": _memory_bytes,
        "kernel": lambda _: platform.release(),
        "distribution": _distribution,
        "virtualisation": _virtualisation,
        "hypervisor": _has_hypervisor,
        "cgroup": _cgroup_limits,
        "clocksource": _clocksource,
        "transparent_hugepages": _hugepages,
        "aslr": _aslr,
        "autogroup": _autogroup,
        "perf_event_paranoid": _perf_event_paranoid,
        "mitigations": _mitigations,
    }
    for name, reader in readers.items():
        try:
            facts[name] = reader(root)
        except (OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
            absent[name] = str(error)
    facts["cpus_allowed"] = list(allowed_cpus())
    facts["user"] = "root" if os.geteuid() == 0 else f"uid {os.geteuid()}"
    if absent:
        facts["absent"] = absent
    return facts


def versions() -> dict[str, str]:
    """Versions of the measuring software."""
    return {"concurve": __version__, "python": sys.version.split()[0]}


def describe_program(command: str, path: str | None = None) -> dict[str, Any]:
    """The file that a command stands for, identified by the SHA-256 of its content."""
    found = shutil.which(command, path=path)
    if found is None:
        return {"command": command, "absent": "not found on PATH"}
    return {"command": command, **describe_file(Path(found))}


def describe_file(path: Path) -> dict[str, Any]:
    """A file, identified by the SHA-256 of its content."""
    facts: dict[str, Any] = {"path": str(path.resolve())}
    try:
        facts["bytes"] = path.stat().st_size
        with path.open("rb") as stream:
            facts["sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        facts["absent"] = f"content not readable: {error.strerror}"
    return facts


def _text(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8", errors="replace").strip()


def _cpu_model(root: Path) -> str:
    text = _text(root, "proc/cpuinfo")
    for key in ("model name", "Model", "cpu model", "Hardware"):
        if match := re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE):
            return match[1]
    return platform.machine()


def _topology(root: Path) -> dict[str, Any]:
    """Online CPUs, cores, sockets and nodes, and the caches of the first CPU."""
    cpus = _cpu_list(_text(root, "sys/devices/system/cpu/online"))
    cores, sockets = set(), set()
    for cpu in cpus:
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        socket = _text(root, f"{folder}/physical_package_id")
        sockets.add(socket)
        cores.add((socket, _text(root, f"{folder}/core_id")))
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    return {
        "cpus": len(cpus),
        "cores": len(cores),
        "sockets": len(sockets),
        "nodes": max(1, len(nodes)),
        "caches": _caches(root, cpus[0]),
    }


def _caches(root: Path, cpu: int) -> dict[str, str]:
    caches = {}
    for index in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")):
        level, kind = _text(index, "level"), _text(index, "type")
        letter = {"Data": "d", "Instruction": "i"}.get(kind, "")
        caches[f"L{level}{letter}"] = _text(index, "size")
    return caches


def _cpu_list(text: str) -> list[int]:
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def _governor(root: Path) -> str:
    found = {
        path.read_text().strip()
        for path in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    }
    if not found:
        raise LookupError("no cpufreq: the hypervisor or the firmware sets the frequency")
    return ", ".join(sorted(found))


def _boost(root: Path) -> str:
    no_turbo = root / "sys/devices/system/cpu/intel_pstate/no_turbo"
    if no_turbo.exists():
        return "off" if no_turbo.read_text().strip() == "1" else "on"
    boost = root / "sys/devices/system/cpu/cpufreq/boost"
    if boost.exists():
        return "on" if boost.read_text().strip() == "1" else "off"
    raise LookupError("the kernel shows no boost setting")


def _smt(root: Path) -> str:
    state = _text(root, "sys/devices/system/cpu/smt/control")
    return {"notsupported": "not supported", "notimplemented": "not supported"}.get(state, state)


def _memory_bytes(root: Path) -> int:
    match = re.search(r"^MemTotal:\s+(\d+) kB", _text(root, "proc/meminfo"), re.MULTILINE)
    if not match:
        raise LookupError("no MemTotal in /proc/meminfo")
    return int(match[1]) * 1024


def _distribution(root: Path) -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', _text(root, "etc/os-release"), re.MULTILINE)
    if not match:
        raise LookupError("no PRETTY_NAME in /etc/os-release")
    return match[1]


def _virtualisation(root: Path) -> str:
    """The hypervisor or container, as far as it can be detected."""
    program = shutil.which("systemd-detect-virt")
    if program:
        with contextlib.suppress(LookupError):
            return _printed(program)
    vendor = root / "sys/class/dmi/id/sys_vendor"
    maker = vendor.read_text().strip() if vendor.exists() else ""
    if "hypervisor" in _text(root, "proc/cpuinfo"):
        return f"virtual machine {maker}".strip()
    return "none seen"


def _has_hypervisor(root: Path) -> bool:
    """Does a hypervisor have the CPUs, whatever container runs here? The kernel of an x86 machine
    lists that among what its CPUs can do; a Xen guest of another kind has a folder for it."""
    return "hypervisor" in _text(root, "proc/cpuinfo") or (root / "sys/hypervisor/type").exists()


@functools.cache  # a machine stays what it is
def _printed(program: str) -> str:
    done = subprocess.run([program], capture_output=True, text=True, timeout=5, check=False)
    if not (said := done.stdout.strip()):
        raise LookupError(f"{program} said nothing")
    return said


def _cgroup_limits(root: Path) -> dict[str, Any]:
    """CPU quota and memory limit of our cgroup, version 1 or 2."""
    version2 = root / "sys/fs/cgroup/cgroup.controllers"
    limits: dict[str, Any] = {"version": 2 if version2.exists() else 1}
    own = {}
    for line in _text(root, "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            own[controller] = path.lstrip("/")
    if version2.exists():
        folder = root / "sys/fs/cgroup" / own.get("", "")
        limits["cpu_max"] = _optional(folder / "cpu.max")
        limits["memory_max"] = _optional(folder / "memory.max")
    else:
        cpu = root / "sys/fs/cgroup/cpu" / own.get("cpu", "")
        memory = root / "sys/fs/cgroup/memory" / own.get("memory", "")
        limits["cpu_quota_us"] = _optional(cpu / "cpu.cfs_quota_us")
        limits["memory_limit_bytes"] = _optional(memory / "memory.limit_in_bytes")
    # Of a cgroup above ours as well.
    quota = cpu_quota(root)
    limits["cpus"] = "none" if quota is None else quota
    return {key: value for key, value in limits.items() if value is not None}


#: About the value that cgroup version 1 shows if no memory limit is set (rounded to pages).
_UNLIMITED_BYTES = 2**62


def _optional(path: Path) -> str | None:
    """A limit as text, ``none`` where none is set, ``None`` where the file is missing."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    unlimited = text.split()[:1] in (["-1"], ["max"])
    return "none" if unlimited or (text.isdigit() and int(text) > _UNLIMITED_BYTES) else text


def _clocksource(root: Path) -> str:
    return _text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource")


def _hugepages(root: Path) -> str:
    text = _text(root, "sys/kernel/mm/transparent_hugepage/enabled")
    match = re.search(r"\[(\w+)\]", text)
    return match[1] if match else text


def _aslr(root: Path) -> str:
    return _text(root, "proc/sys/kernel/randomize_va_space")


def _autogroup(root: Path) -> str:
    return _text(root, "proc/sys/kernel/sched_autogroup_enabled")


def _perf_event_paranoid(root: Path) -> str:
    return _text(root, "proc/sys/kernel/perf_event_paranoid")


def _mitigations(root: Path) -> dict[str, str]:
    folder = root / "sys/devices/system/cpu/vulnerabilities"
    return {path.name: path.read_text().strip() for path in sorted(folder.iterdir())}
