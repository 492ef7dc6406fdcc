"""The hosts on which the tests of hosts run: which files they refuse, and that what they do to the
hosts of a file goes through OpenSSH to the host that is meant, and to no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from concurve.errors import HostError
from concurve.hosts import commands
from tests.helpers import clusters, openssh, real
from tests.helpers.agents import Namespaces, no_namespaces
from tests.helpers.clusters import FILE_VARIABLE, LINK_VARIABLE, InNamespaces, OfAFile

#: Three hosts at addresses of this machine.
HOSTS = "".join(f'[hosts.{name}]\naddress = "127.0.0.{n}"\n' for n, name in enumerate("abc", 1))


def file_of(folder: Path, hosts: str = HOSTS, python: str = sys.executable) -> Path:
    file = folder / "lab.toml"
    file.write_text(f'[ray]\npython = "{python}"\n{hosts}')
    return file


@pytest.mark.parametrize(
    ("hosts", "python", "says"),
    [
        (HOSTS.partition("[hosts.c]")[0], sys.executable, "2 hosts"),
        (
            HOSTS.replace("127.0.0", "192.0.2"),
            sys.executable,
            "a has Ray's head, and its address 192.0.2.1 is not one of this machine",
        ),
        (HOSTS, "python3", "'python3', and the tests are run by"),
    ],
)
def test_a_file_on_whose_hosts_the_tests_cannot_run_is_refused(
    tmp_path: Path, hosts: str, python: str, says: str
) -> None:
    with pytest.raises(HostError, match=r"lab\.toml: ") as refused:
        OfAFile(file_of(tmp_path, hosts, python))
    assert says in refused.value.what
    assert refused.value.remedy


def test_the_laboratory_is_on_the_host_of_the_head(tmp_path: Path) -> None:
    file = file_of(tmp_path, f'head = "b"\n{HOSTS}[hosts.d]\naddress = "127.0.0.4"\n')
    found = OfAFile(file)
    assert found.hosts == ("b", "a", "c"), "that of the head first, and no more than are used"
    assert found.laboratory(["true"]) == ["true"], "these tests run there"


def test_a_network_is_taken_down_by_the_command_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, file = tmp_path / "said", file_of(tmp_path)
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    monkeypatch.delenv(LINK_VARIABLE, raising=False)
    reason = clusters.no_link()
    assert reason is not None and LINK_VARIABLE in reason
    monkeypatch.setenv(LINK_VARIABLE, f"echo {{host}} {{address}} {{state}} > {said}")
    assert clusters.no_link() is None
    OfAFile(file).link("b", "down")
    assert said.read_text() == "b 127.0.0.2 down\n"
    monkeypatch.setenv(LINK_VARIABLE, "echo no such port >&2; exit 3")
    with pytest.raises(HostError, match="host b: the command that takes its network up failed"):
        OfAFile(file).link("b", "up")


@pytest.mark.parametrize(
    ("cpus", "is_pinned", "housekeeping"),
    [({0, 3, 5}, True, (5,)), ({0, 3, 5}, False, ()), ({3}, True, ())],
)
def test_daemons_of_namespaces_have_a_cpu_of_their_own_where_another_is_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cpus: set[int],
    is_pinned: bool,
    housekeeping: tuple[int, ...],
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cpus)
    names = Namespaces(("a", "b", "c"))  # nothing is made yet
    found = InNamespaces(names, tmp_path, 7300, is_pinned)
    assert {host.housekeeping for host in found.inventory.hosts} == {housekeeping}
    started = " ".join(found.here(step).words[-1] for step in commands.up(found.inventory)[-1])
    assert ("taskset -c 5 " in started) == bool(housekeeping)


#: Starts a process with the mark of Ray on each host, and strikes that of one.
_STRIKES = """
import json, signal, sys
from pathlib import Path
from concurve.hosts import commands
from concurve.hosts.commands import MARK_VARIABLE, Step
from tests.helpers.clusters import OfAFile

cluster = OfAFile(Path(sys.argv[1]))
line = f"{MARK_VARIABLE}={cluster.mark} setsid sleep 1077 </dev/null >/dev/null 2>&1 &"
commands.run([
    Step(host.name, "a start", commands.ssh(host, line), "") for host in cluster.inventory.hosts
])
seen = [cluster.processes()]
cluster.strike("one", "sleep 1077", signal.SIGKILL)
seen.append(cluster.processes())
used = [cluster.memory("two", "concurve.")["others"], cluster.cpu_ns("two")]
cluster.down()
seen.append(cluster.processes())
print(json.dumps([used, [{name: [*it.values()] for name, it in one.items()} for one in seen]]))
"""


@pytest.mark.real
@pytest.mark.skipif(no_namespaces() is not None, reason=str(no_namespaces()))
@pytest.mark.skipif(openssh.no_sshd() is not None, reason=str(openssh.no_sshd()))
def test_what_is_struck_is_on_the_host_that_is_meant(tmp_path: Path) -> None:
    with openssh.reached(("server", "one", "two"), tmp_path, 7300) as hosts:
        done = subprocess.run(
            hosts.within("server", sys.executable, "-c", _STRIKES, str(hosts.file)),
            env=hosts.environment,
            capture_output=True, text=True, timeout=real.PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    used, seen = json.loads(done.stdout)
    sleeps = ["sleep 1077"]
    assert seen[0] == {"server": sleeps, "one": sleeps, "two": sleeps}
    assert seen[1] == {"server": sleeps, "one": [], "two": sleeps}
    assert seen[2] == {"server": [], "one": [], "two": []}
    bytes_in_memory, cpu_ns = used
    assert bytes_in_memory > 0 <= cpu_ns
