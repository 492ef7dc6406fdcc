"""Finds the processes of an attached role by number, systemd unit or container. Nothing is done
to them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from concurve import words
from concurve.definition.attaching import parse_attach
from concurve.errors import HostError
from concurve.host.machine import describe_file
from concurve.wire.spec import Attach, AttachedProcess

CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")

#: Programs that know the identity of a container by its name, with their arguments.
_ENGINES = (
    ("docker", "inspect", "--format", "{{.Id}}"),
    ("podman", "inspect", "--format", "{{.Id}}"),
)
_ENGINE_SECONDS = 10

_CONTAINER_ID = re.compile(r"[0-9a-f]{12,64}")

#: The hierarchies of cgroups of version 1, those with a process of each unit or container first.
_HIERARCHIES = ("", "systemd", "unified", "memory", "cpu,cpuacct", "cpuacct", "cpu", "pids")


def _output(command: Sequence[str]) -> str:
    """What a program prints; an empty text if it is not there or fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ENGINE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find(
    text: str,
    where: str,
    cgroups: Path = CGROUPS,
    proc: Path = PROC,
    output: Callable[[Sequence[str]], str] = _output,
) -> Attach:
    """The processes that a text names now: a process with its start time, or a cgroup.

    Raises:
        StudyError: the text names none of the kinds.
        HostError: there is no such process, unit or container here.
    """
    kind, name = parse_attach(text, where)
    if kind == "process":
        return Attach(process=AttachedProcess(int(name), _started_ticks(int(name), where, proc)))
    if kind == "unit":
        unit = name if re.search(r"\.(service|scope|slice)$", name) else f"{name}.service"
        folder = _cgroup(lambda folder: folder == unit, cgroups)
        if folder is None:
            raise _no_unit(unit, where, cgroups)
        return Attach(cgroup=str(folder))
    identity = name if _CONTAINER_ID.fullmatch(name) else _identity(name, output)
    folder = _cgroup(lambda folder: identity in folder, cgroups) if identity else None
    if folder is None:
        raise HostError(
            f"{where}: no container {name!r} runs here, or no cgroup of it can be seen",
            "its identity (docker ps --no-trunc), or the number of its process",
        )
    return Attach(cgroup=str(folder))


def describe(attached: Attach, proc: Path = PROC) -> dict[str, Any]:
    """What is known of an attached role: its processes, and the program of its first one."""
    if attached.process is None:
        return {"attached": attached.cgroup}
    pid = attached.process.pid
    facts: dict[str, Any] = {"attached": f"process {pid}"}
    try:
        program = (proc / str(pid) / "exe").readlink()
    except OSError:
        return facts  # of another user
    return {**facts, **describe_file(program)} if program.is_file() else facts


def _started_ticks(pid: int, where: str, proc: Path) -> int:
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise HostError(
            f"{where}: there is no process {pid}, or it is not visible here", "pgrep -a NAME"
        ) from error
    process = _process_of(pid, proc)
    if process != pid:
        raise HostError(f"{where}: {pid} is a thread of process {process}", f"{process}")
    fields = text.rpartition(")")[2].split()
    if fields[0] in "ZX":
        raise HostError(f"{where}: process {pid} has ended", "pgrep -a NAME")
    return int(fields[19])


def _process_of(pid: int, proc: Path) -> int:
    """The process that a number belongs to: ``/proc`` shows those of threads too."""
    try:
        lines = (proc / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return pid
    found = re.search(r"^Tgid:\s*(\d+)$", lines, re.MULTILINE)
    return int(found[1]) if found else pid


def _identity(name: str, output: Callable[[Sequence[str]], str]) -> str:
    found = (output((*engine, name)) for engine in _ENGINES)
    return next((text for text in found if _CONTAINER_ID.fullmatch(text)), "")


#: So many units of a like name are named.
_UNITS_NAMED = 3


def _no_unit(unit: str, where: str, cgroups: Path) -> HostError:
    """That a unit has no processes, and which units have that are called alike: Debian's
    ``postgresql.service`` only starts ``postgresql@15-main.service``."""
    what = f"{where}: no unit {unit} has processes here"
    stem, _, kind = unit.rpartition(".")
    begins = stem.partition("@")[0]

    def is_like(name: str) -> bool:
        return name.startswith(begins) and name.endswith(f".{kind}")

    names = sorted({folder.name for folder in _cgroups(is_like, cgroups)})[:_UNITS_NAMED]
    if not names:
        return HostError(what, f"systemctl status {unit}, or the number of its process")
    has = words.verb(len(names), "has", "have")
    said = f"{what}; {words.listed(names)} {has}"
    return HostError(said, f"--attach unit:{names[0].removesuffix('.service')}")


def _cgroup(wanted: Callable[[str], bool], root: Path) -> Path | None:
    """The highest folder below the root that is wanted and has processes, in the first hierarchy
    that has one."""
    return next(_cgroups(wanted, root), None)


def _cgroups(wanted: Callable[[str], bool], root: Path) -> Iterator[Path]:
    """The folders below the root that are wanted and have processes, one hierarchy after the
    other, in each the highest first."""
    for hierarchy in _HIERARCHIES:
        top = root / hierarchy
        if (hierarchy and not top.is_dir()) or not (top / "cgroup.procs").is_file():
            continue
        for path, folders, _ in os.walk(top):
            folders.sort()
            for folder in folders:
                if wanted(folder) and _has_processes(Path(path, folder)):
                    yield Path(path, folder)


def _has_processes(folder: Path) -> bool:
    for path, _, files in os.walk(folder):
        if "cgroup.procs" in files:
            try:
                if Path(path, "cgroup.procs").read_text(encoding="ascii").strip():
                    return True
            except OSError:
                continue
    return False
