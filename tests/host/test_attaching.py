"""The processes of an attached role, found in a made-up ``/proc`` and cgroup tree."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from concurve.errors import HostError
from concurve.host.attaching import Answer, describe, find
from concurve.wire.spec import Attach, AttachedProcess

ID = "3f4a" * 16


def _process(proc: Path, pid: int, state: str, started: int) -> None:
    (proc / str(pid)).mkdir(parents=True)
    fields = [state, "1", "1", "1", *["0"] * 15, str(started), "0"]
    (proc / str(pid) / "stat").write_text(f"{pid} (a ) b) {' '.join(fields)}\n")


def _group(root: Path, path: str, pids: str = "") -> Path:
    folder = root
    for part in ("", *path.split("/")):
        folder = folder / part
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "cgroup.procs"
        if not file.exists():
            file.write_text("")
    (folder / "cgroup.procs").write_text(pids)
    return folder


def test_a_process_has_its_start_time(tmp_path: Path) -> None:
    _process(tmp_path, 7, "S", 123456)
    found = find("7", "here", proc=tmp_path)
    assert found == Attach(process=AttachedProcess(7, 123456))
    assert describe(found, proc=tmp_path) == {"attached": "process 7"}


def test_a_process_that_is_not_there_or_has_ended(tmp_path: Path) -> None:
    _process(tmp_path, 7, "Z", 1)
    with pytest.raises(HostError, match="process 7 has ended"):
        find("7", "here", proc=tmp_path)
    with pytest.raises(HostError, match="here: there is no process 8"):
        find("8", "here", proc=tmp_path)


def test_the_number_of_a_thread_is_no_process(tmp_path: Path) -> None:
    _process(tmp_path, 8, "S", 1)
    (tmp_path / "8" / "status").write_text("Name:\tx\nTgid:\t7\nPid:\t8\n")
    with pytest.raises(HostError, match="8 is a thread of process 7"):
        find("8", "here", proc=tmp_path)


@pytest.mark.parametrize("name", ["unit:redis", "unit:redis.service"])
def test_a_unit_is_its_cgroup(tmp_path: Path, name: str) -> None:
    _group(tmp_path, "user.slice/other.service", "1\n")
    own = _group(tmp_path, "system.slice/redis.service", "9\n")
    assert find(name, "here", cgroups=tmp_path) == Attach(cgroup=str(own))


def test_a_unit_without_processes_does_not_run(tmp_path: Path) -> None:
    _group(tmp_path, "system.slice/redis.service")
    with pytest.raises(HostError, match=r"no unit redis\.service"):
        find("unit:redis", "here", cgroups=tmp_path)


def test_a_unit_that_only_starts_others_names_them(tmp_path: Path) -> None:
    """As Debian's PostgreSQL does."""
    _group(tmp_path, "system.slice/postgresql.service")
    main = "postgresql@15-main"
    _group(tmp_path, f"system.slice/system-postgresql.slice/{main}.service", "9\n")
    _group(tmp_path, "system.slice/postgresql@14-old.service")
    _group(tmp_path, "system.slice/redis.service", "7\n")
    with pytest.raises(HostError) as refused:
        find("unit:postgresql", "here", cgroups=tmp_path)
    said = f"here: no unit postgresql.service has processes here; {main}.service has"
    assert (refused.value.what, refused.value.remedy) == (said, f"--attach unit:{main}")
    with pytest.raises(HostError, match=r"main\.service has"):
        find("unit:postgresql@14-old", "here", cgroups=tmp_path)


def test_the_first_version_of_cgroups_has_a_folder_for_each_hierarchy(tmp_path: Path) -> None:
    own = _group(tmp_path / "systemd", "system.slice/redis.service/worker", "9\n").parent
    assert find("unit:redis", "here", cgroups=tmp_path) == Attach(cgroup=str(own))


@pytest.mark.parametrize(
    "path", [f"docker/{ID}", f"system.slice/docker-{ID}.scope", f"machine.slice/libpod-{ID}.scope"]
)
def test_a_container_is_found_by_name_and_by_identity(tmp_path: Path, path: str) -> None:
    own = _group(tmp_path, path, "9\n")

    def ask(command: Sequence[str]) -> Answer:
        return Answer(ID if command[0] == "podman" and command[-1] == "cache" else "")

    for name in ("cache", ID, ID[:12]):
        found = find(f"container:{name}", "here", cgroups=tmp_path, ask=ask)
        assert found == Attach(cgroup=str(own))
    with pytest.raises(HostError, match="no container 'another'"):
        find("container:another", "here", cgroups=tmp_path, ask=ask)


@pytest.mark.parametrize("first", "0f")
def test_the_program_that_watches_a_container_is_not_the_container(
    tmp_path: Path, first: str
) -> None:
    """Podman's conmon has a cgroup whose name holds the identity, and may be sorted before."""
    identity = first * 64
    _group(tmp_path, f"machine.slice/libpod-conmon-{identity}.scope", "8\n")
    own = _group(tmp_path, f"machine.slice/libpod-{identity}.scope", "9\n")
    found = find(f"container:{identity}", "here", cgroups=tmp_path)
    assert found == Attach(cgroup=str(own))


def test_an_engine_that_refuses_is_quoted(tmp_path: Path) -> None:
    def ask(command: Sequence[str]) -> Answer:
        return Answer(refusal="docker: permission denied" if command[0] == "docker" else "")

    with pytest.raises(HostError, match=r"can be seen \(docker: permission denied\)"):
        find("container:cache", "here", cgroups=tmp_path, ask=ask)


def test_an_attached_program_is_the_file_that_runs(tmp_path: Path) -> None:
    """Of a container, or since an upgrade, another file may have its path here."""
    _process(tmp_path, 7, "S", 1)
    (tmp_path / "runs").write_bytes(b"this one")
    (tmp_path / "7" / "exe").symlink_to(tmp_path / "runs")
    (tmp_path / "7" / "comm").write_text("redis-server\n")
    facts = describe(Attach(process=AttachedProcess(7, 1)), proc=tmp_path)
    assert facts["command"] == "redis-server", "the file may have another name"
    assert facts["path"] == str(tmp_path / "runs")
    assert facts["sha256"] == hashlib.sha256(b"this one").hexdigest()
