"""``concurve doctor``: what is granted, and the command for each remedy."""

from __future__ import annotations

import os
import resource
import struct
from pathlib import Path
from typing import Any

import pytest

from concurve.host.doctor import as_list, foremost, grants, quieting
from concurve.host.machine_check import Item
from tests.host.test_machine import tree

FACTS: dict[str, Any] = {
    "topology": {"cpus": 8},
    "cpus_allowed": list(range(8)),
    "governor": "powersave",
    "boost": "on",
    "smt": "on",
    "cgroup": {"version": 2, "memory_max": "none"},
    "memory_bytes": 8 * 2**30,
}


def named(items: list[Item]) -> dict[str, Item]:
    return {item.name: item for item in items}


def test_each_thing_that_disturbs_has_its_command(tmp_path: Path) -> None:
    tree(tmp_path, {"sys/devices/system/cpu/isolated": "\n"})
    found = named(quieting(FACTS, tmp_path))
    commands = {
        "frequency governor": "`sudo cpupower frequency-set -g performance`",
        "boost": "`echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost`",
        "SMT": "`echo off | sudo tee /sys/devices/system/cpu/smt/control`",
        "isolated CPUs": "`isolcpus=4-7 nohz_full=4-7` on the kernel's command line, then "
        "`taskset -c 0-7 concurve … --cpus 4-7`",
    }
    for name, command in commands.items():
        assert found[name].remedy == command
    assert "AllowedCPUs=0-3" in found["cgroup"].remedy
    assert "AllowedCPUs=4-7" in found["cgroup"].remedy


def test_what_is_right_has_no_command(tmp_path: Path) -> None:
    tree(tmp_path, {"sys/devices/system/cpu/isolated": "2-3\n"})
    facts = {**FACTS, "governor": "performance", "boost": "off", "smt": "not supported"}
    found = named(quieting(facts, tmp_path))
    for name in ("frequency governor", "boost", "SMT", "isolated CPUs"):
        assert (found[name].mark, found[name].remedy) == ("ok", ""), name


def test_the_file_of_boost_is_that_of_the_driver(tmp_path: Path) -> None:
    tree(tmp_path, {"sys/devices/system/cpu/intel_pstate/no_turbo": "0\n"})
    boost = named(quieting(FACTS, tmp_path))["boost"]
    assert boost.remedy == "`echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo`"


def test_version_1_of_the_cgroups_and_a_small_machine(tmp_path: Path) -> None:
    facts = {**FACTS, "cgroup": {"version": 1}, "cpus_allowed": [0, 1, 2, 3]}
    found = named(quieting(facts, tmp_path))
    assert "cset shield --cpu 2-3" in found["cgroup"].remedy
    tree(tmp_path, {"sys/devices/system/cpu/isolated": "\n"})
    small = named(quieting({**facts, "cpus_allowed": [0, 1]}, tmp_path))
    for name in ("isolated CPUs", "cgroup"):
        assert "four CPUs" in small[name].says and not small[name].remedy


def test_a_virtual_machine_is_told_what_can_be_done_in_it(tmp_path: Path) -> None:
    tree(tmp_path, {"sys/devices/system/cpu/isolated": "\n"})
    absent = {"governor": "no cpufreq", "boost": "the kernel shows no boost setting"}
    facts = {"hypervisor": True, "smt": "on", "cgroup": {"version": 2}, "absent": absent,
             "cpus_allowed": [0, 1], "topology": {"cpus": 2}}  # fmt: skip
    found = quieting(facts, tmp_path)
    assert [item.name for item in found] == ["virtual machine", "SMT"]
    assert all(item.remedy for item in found)
    large = quieting({**facts, "cpus_allowed": list(range(8))}, tmp_path)
    assert {"isolated CPUs", "cgroup"} < set(named(large)), "that can be done in a guest, too"


def test_what_matters_most_is_said_first(tmp_path: Path) -> None:
    tree(tmp_path, {"sys/devices/system/cpu/isolated": "2-3\n"})
    load = Item("!!", "load now", "other processes use 98 % of the CPU time")
    quiet = Item("ok", "load now", "other processes use 1 % of the CPU time")
    steady = {**FACTS, "governor": "performance", "boost": "off", "smt": "not supported"}
    assert foremost([load, *quieting(FACTS, tmp_path)]).startswith("load now: other processes")
    assert foremost([quiet, *quieting(FACTS, tmp_path)]).startswith("frequency governor: powersave")
    guest = quieting({**steady, "hypervisor": True}, tmp_path)
    assert foremost([quiet, *guest]).startswith("virtual machine: the host")
    assert foremost([quiet, *quieting(steady, tmp_path)]).startswith("nothing: ")


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    found = quieting({"absent": {"governor": "no cpufreq"}}, tmp_path)
    assert all(item.mark == "--" for item in found)
    assert named(found)["frequency governor"].says == "no cpufreq"


def test_grants_of_an_ordinary_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    found = named(grants({**FACTS, "cpus_allowed": [0, 1, 5]}, tmp_path))
    assert found["nice"].mark == "--" and "setcap" in found["nice"].remedy
    assert found["real-time policies"].mark == "--"
    assert found["CPUs"].says == "3 of 8 CPUs: 0-1,5"
    monkeypatch.setattr(resource, "getrlimit", lambda _: (30, 30))
    assert named(grants(FACTS, tmp_path))["nice"].says == "-10 to 19"
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (unlimited, unlimited))
    assert named(grants(FACTS, tmp_path))["nice"].says == "-20 to 19"


#: What root has where it has all, and in a container of Docker with its defaults.
ALL, OF_DOCKER = "000001ffffffffff", "00000000a80425fb"
FIRST, ROOTLESS = "         0          0 4294967295\n", "         0       1000          1\n"


@pytest.mark.parametrize(
    ("effective", "users", "is_granted"),
    [
        (ALL, FIRST, True),
        (OF_DOCKER, FIRST, False),
        ("0000000000800000", FIRST, True),
        (ALL, ROOTLESS, False),
    ],
)
@pytest.mark.parametrize("user", [0, 1000])
def test_priorities_are_granted_by_a_capability_and_not_to_a_user(
    user: int,
    effective: str,
    users: str,
    is_granted: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    of_process = {"status": f"Uid:\t0\nCapEff:\t{effective}\n", "uid_map": users}
    tree(tmp_path, {f"proc/self/{name}": text for name, text in of_process.items()})
    found = named(grants(FACTS, tmp_path))
    for item in (found["nice"], found["real-time policies"]):
        assert (item.mark == "ok") == is_granted, item
        if not is_granted:
            assert ("sudo" in item.remedy) != (user == 0), "root needs no sudo"
            assert ("--cap-add SYS_NICE" in item.remedy) == (user == 0)


def test_the_file_of_the_runner_may_have_the_capability(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the remedy advises must be seen once it is done."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    status = "CapEff:\t0000000000000000\n"
    tree(tmp_path, {"proc/self/status": status, "proc/self/uid_map": FIRST})
    stored = struct.pack("<IIIII", 0x02000001, 1 << 23, 0, 0, 0)
    monkeypatch.setattr(os, "getxattr", lambda *_: stored, raising=False)
    runner = tmp_path / "concurve-trial"
    assert named(grants(FACTS, tmp_path))["nice"].mark == "--"
    assert named(grants(FACTS, tmp_path, runner))["nice"].mark == "ok"
    stored = struct.pack("<IIIII", 0x02000001, 1 << 12, 0, 0, 0)
    assert named(grants(FACTS, tmp_path, runner))["nice"].mark == "--", "another capability"


def test_grants_of_root_and_limits_of_the_cgroup(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n",
                    "proc/self/status": f"CapEff:\t{ALL}\n",
                    "proc/self/uid_map": FIRST})  # fmt: skip
    facts = {**FACTS, "cgroup": {"version": 2, "memory_max": str(2**30)}}
    found = named(grants(facts, tmp_path))
    assert found["nice"].says == "-20 to 19"
    assert found["CPU quota"].says.startswith("1.5 CPUs")
    assert found["memory"].says == "8.0 GiB, limited to 1.0 GiB by the cgroup"


def test_cpus_as_the_kernel_lists_them() -> None:
    assert as_list([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert as_list([]) == ""
