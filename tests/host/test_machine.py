"""Facts about a host, from made-up /proc and /sys trees."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from concurve.host.doctor import quieting
from concurve.host.machine import describe_machine, describe_program
from concurve.host.machine_check import inspect

CPUINFO = """processor	: 0
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz
flags		: fpu vme hypervisor
"""

BARE: dict[str, str] = {
    "proc/cpuinfo": CPUINFO.replace(" hypervisor", ""),
    "proc/meminfo": "MemTotal:       16384256 kB\nMemFree: 1 kB\n",
    "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "sys/devices/system/cpu/online": "0-3\n",
    "sys/devices/system/cpu/smt/control": "on\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
    "sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI\n",
    "sys/devices/system/cpu/vulnerabilities/l1tf": "Not affected\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "proc/sys/kernel/sched_autogroup_enabled": "1\n",
    "proc/sys/kernel/perf_event_paranoid": "2\n",
    "sys/devices/system/node/node0/cpulist": "0-3\n",
    "sys/devices/system/cpu/cpu0/cache/index0/level": "1\n",
    "sys/devices/system/cpu/cpu0/cache/index0/type": "Data\n",
    "sys/devices/system/cpu/cpu0/cache/index0/size": "32K\n",
    "sys/devices/system/cpu/cpu0/cache/index2/level": "2\n",
    "sys/devices/system/cpu/cpu0/cache/index2/type": "Unified\n",
    "sys/devices/system/cpu/cpu0/cache/index2/size": "1024K\n",
    # Version 1 of the control groups.
    "proc/self/cgroup": "4:cpu,cpuacct:/jobs/one\n3:memory:/jobs/one\n1:name=systemd:/x\n",
    "sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us": "150000\n",
    "sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes": "1073741824\n",
} | {
    f"sys/devices/system/cpu/cpu{cpu}/{name}": value
    for cpu in range(4)
    for name, value in {
        "topology/physical_package_id": "0\n",
        "topology/core_id": f"{cpu // 2}\n",
        "cpufreq/scaling_governor": "powersave\n",
    }.items()
}


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture(autouse=True)
def _no_detector(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """systemd-detect-virt would report the real host."""
    monkeypatch.setenv("PATH", str(tmp_path))


def test_a_bare_machine(tmp_path: Path) -> None:
    facts = describe_machine(tree(tmp_path, BARE))
    assert facts["cpu_model"] == "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz"
    assert facts["topology"] == {
        "cpus": 4, "cores": 2, "sockets": 1, "nodes": 1, "caches": {"L1d": "32K", "L2": "1024K"}
    }  # fmt: skip
    assert (facts["governor"], facts["boost"], facts["smt"]) == ("powersave", "on", "on")
    assert facts["memory_bytes"] == 16384256 * 1024
    assert facts["distribution"] == "Debian GNU/Linux 12 (bookworm)"
    assert facts["virtualisation"] == "none seen" and facts["hypervisor"] is False
    assert facts["transparent_hugepages"] == "madvise"
    assert facts["mitigations"] == {"l1tf": "Not affected", "meltdown": "Mitigation: PTI"}
    assert "absent" not in facts, facts.get("absent")


def test_control_groups_of_version_1_and_2(tmp_path: Path) -> None:
    first = describe_machine(tree(tmp_path / "one", BARE))
    assert first["cgroup"] == {
        "version": 1, "cpu_quota_us": "150000", "memory_limit_bytes": "1073741824", "cpus": "none"
    }  # fmt: skip
    second = {name: text for name, text in BARE.items() if "cgroup" not in name} | {
        "proc/self/cgroup": "0::/user.slice/job.scope\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/user.slice/job.scope/cpu.max": "200000 100000\n",
        "sys/fs/cgroup/user.slice/job.scope/memory.max": "max\n",
    }
    facts = describe_machine(tree(tmp_path / "two", second))
    assert facts["cgroup"] == {
        "version": 2, "cpu_max": "200000 100000", "memory_max": "none", "cpus": 2.0
    }  # fmt: skip


def test_a_quota_of_a_cgroup_above_ours_is_one_of_the_machine(tmp_path: Path) -> None:
    """As ``systemctl set-property user-1000.slice CPUQuota=150%`` sets it."""
    above = {name: text for name, text in BARE.items() if "cgroup" not in name} | {
        "proc/self/cgroup": "0::/user.slice/job.scope\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/user.slice/job.scope/cpu.max": "max 100000\n",
    }
    facts = describe_machine(tree(tmp_path, above))
    quota = next(item for item in inspect(facts, {}) if item.name == "CPU quota")
    assert (quota.mark, quota.says) == ("!!", "1.5 CPUs")


def test_no_limit_is_called_none_in_both_versions(tmp_path: Path) -> None:
    first = BARE | {
        "sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes": "9223372036854771712\n",
    }
    facts = describe_machine(tree(tmp_path / "one", first))
    assert facts["cgroup"] == {
        "version": 1, "cpu_quota_us": "none", "memory_limit_bytes": "none", "cpus": "none"
    }  # fmt: skip
    second = BARE | {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/cpu.max": "max 100000\n",
    }
    facts = describe_machine(tree(tmp_path / "two", second))
    assert facts["cgroup"] == {"version": 2, "cpu_max": "none", "cpus": "none"}
    assert {item.name: item.mark for item in inspect(facts, {})}["CPU quota"] == "ok"


def test_what_cannot_be_read_is_absent_with_a_reason(tmp_path: Path) -> None:
    facts = describe_machine(tmp_path)
    absent = facts["absent"]
    assert "no cpufreq" in absent["governor"]
    assert "cpuinfo" in absent["cpu_model"]
    assert all(absent.values())
    for name in ("cpu_model", "topology", "governor", "smt", "memory_bytes", "mitigations"):
        assert name not in facts, "absent, not empty"
    assert facts["cpus_allowed"], "known without any file"


def test_a_virtual_machine_and_an_arm_board(tmp_path: Path) -> None:
    virtual = BARE | {"proc/cpuinfo": CPUINFO, "sys/class/dmi/id/sys_vendor": "QEMU\n"}
    facts = describe_machine(tree(tmp_path / "vm", virtual))
    assert facts["virtualisation"] == "virtual machine QEMU" and facts["hypervisor"] is True
    arm = BARE | {"proc/cpuinfo": "processor\t: 0\nHardware\t: BCM2835\n"}
    assert describe_machine(tree(tmp_path / "arm", arm))["cpu_model"] == "BCM2835"


def marks(facts: dict[str, Any], probes: dict[str, Any] | None = None) -> dict[str, str]:
    return {item.name: item.mark for item in inspect(facts, probes or {})}


@pytest.mark.parametrize(
    ("facts", "mark", "name", "says"),
    [
        ({"virtualisation": "docker", "hypervisor": True}, "!!", "virtual machine",
         "seen, with docker in it"),
        ({"virtualisation": "kvm", "hypervisor": True}, "!!", "virtual machine", "kvm"),
        ({"virtualisation": "virtual machine QEMU", "hypervisor": True}, "!!", "virtual machine",
         "QEMU"),
        ({"virtualisation": "none", "hypervisor": True}, "!!", "virtual machine", "seen"),
        ({"virtualisation": "docker", "hypervisor": False}, "ok", "virtualisation",
         "container docker"),
        ({"virtualisation": "none", "hypervisor": False}, "ok", "virtualisation", "none"),
        ({"hypervisor": False, "absent": {"virtualisation": "timed out"}}, "--", "virtualisation",
         "timed out"),
    ],
)  # fmt: skip
def test_a_container_is_no_hypervisor(
    facts: dict[str, Any], mark: str, name: str, says: str
) -> None:
    """Other guests take CPU time only where there is one; doctor calls it by the same name."""
    (item,) = (it for it in inspect(facts, {}) if it.name in ("virtual machine", "virtualisation"))
    assert (item.mark, item.name, item.says) == (mark, name, says)
    assert ("the hypervisor may take" in item.remedy) == (mark == "!!")
    told = [it.name for it in quieting(facts)]
    assert ("virtual machine" in told) == (mark == "!!")


def test_the_check_marks_what_would_make_figures_doubtful(tmp_path: Path) -> None:
    facts = describe_machine(tree(tmp_path, BARE)) | {"cpus_allowed": [0, 1, 2, 3]}
    assert marks(facts) == {
        "CPUs": "ok", "frequency governor": "!!", "boost": "!!", "SMT": "!!",
        "virtualisation": "ok", "CPU quota": "!!", "autogroup": "ok",
    }  # fmt: skip
    assert all(item.remedy for item in inspect(facts, {}) if item.mark == "!!")
    quiet = facts | {
        "governor": "performance",
        "boost": "off",
        "smt": "off",
        "cgroup": {"version": 2, "cpu_max": "none"},
    }
    assert set(marks(quiet).values()) == {"ok"}
    fewer = {item.name: item for item in inspect(facts | {"cpus_allowed": [0]}, {})}
    assert fewer["CPUs"].mark == "!!" and "1 allowed" in fewer["CPUs"].says


def test_the_check_tells_what_is_not_granted(tmp_path: Path) -> None:
    probes = {
        "psi": {"granted": True},
        "sched": {"granted": True},
        "perf": {"granted": False, "reason": "paranoid is 3"},
    }
    found = {item.name: item for item in inspect(describe_machine(tmp_path), probes)}
    assert (found["psi"].mark, found["psi"].says) == ("ok", "granted")
    assert (found["perf"].mark, found["perf"].says) == ("--", "paranoid is 3")
    assert found["sched"].says == "granted: migrations of living threads"
    assert found["frequency governor"].mark == "--"


def test_a_program_is_told_by_its_content(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_bytes(b"#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "link").symlink_to(program)
    facts = describe_program("link", str(tmp_path))
    assert facts == {
        "command": "link",
        "path": str(program.resolve()),
        "bytes": 10,
        "sha256": hashlib.sha256(b"#!/bin/sh\n").hexdigest(),
    }
    assert describe_program("no-such", str(tmp_path))["absent"] == "not found on PATH"


def test_a_tool_that_hangs_is_absent_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(*_: object, **more: Any) -> None:
        raise subprocess.TimeoutExpired("systemd-detect-virt", more["timeout"])

    monkeypatch.setattr(shutil, "which", lambda _: "/hangs/systemd-detect-virt")
    monkeypatch.setattr(subprocess, "run", hangs)
    found = describe_machine(tree(tmp_path, BARE))
    assert "timed out" in found["absent"]["virtualisation"]
