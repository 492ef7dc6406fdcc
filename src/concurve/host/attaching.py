"""Finds the processes of an attached role by number, systemd unit or container. Nothing is done
to them."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from concurve import words
from concurve.definition.attaching import CONTAINER_ID, parse_attach
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

#: In the cgroup of the program that watches a container (``libpod-conmon-…``, ``crio-conmon-…``),
#: whose name holds the container's identity too.
_WATCHER = "conmon"

#: So much is said of an engine's refusal.
_REFUSAL_CHARS = 200

#: The hierarchies of cgroups of version 1, those with a process of each unit or container first.
_HIERARCHIES = ("", "systemd", "unified", "memory", "cpu,cpuacct", "cpuacct", "cpu", "pids")


class Answer(NamedTuple):
    """What a program printed, or why it printed nothing; both are empty where it is not there."""

    printed: str = ""
    refusal: str = ""


def _answer(command: Sequence[str]) -> Answer:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ENGINE_SECONDS, check=False
        )
    except OSError:
        return Answer()
    except subprocess.TimeoutExpired:
        return Answer(refusal=f"{command[0]} did not answer within {_ENGINE_SECONDS} s")
    if done.returncode == 0:
        return Answer(done.stdout.strip())
    said = done.stderr.strip().splitlines() or [f"exited with {done.returncode}"]
    return Answer(refusal=f"{command[0]}: {said[-1][:_REFUSAL_CHARS]}")


def find(
    text: str,
    where: str,
    cgroups: Path = CGROUPS,
    proc: Path = PROC,
    ask: Callable[[Sequence[str]], Answer] = _answer,
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
    is_identity = CONTAINER_ID.fullmatch(name) is not None
    answers = [] if is_identity else [ask((*engine, name)) for engine in _ENGINES]
    named = (found.printed for found in answers if CONTAINER_ID.fullmatch(found.printed))
    identity = name if is_identity else next(named, "")
    folder = _cgroup(lambda folder: _is_container(folder, identity), cgroups) if identity else None
    if folder is None:
        refusals = [] if identity else [found.refusal for found in answers if found.refusal]
        said = "".join(f" ({refusal})" for refusal in refusals)
        raise HostError(
            f"{where}: no container {name!r} runs here, or no cgroup of it can be seen{said}",
            "its identity (docker ps --no-trunc), or the number of its process",
        )
    return Attach(cgroup=str(folder))


def _is_container(folder: str, identity: str) -> bool:
    return identity in folder and _WATCHER not in folder


def describe(attached: Attach, proc: Path = PROC) -> dict[str, Any]:
    """What is known of an attached role: its processes, and the program of its first one."""
    if attached.process is None:
        return {"attached": attached.cgroup}
    pid = attached.process.pid
    facts: dict[str, Any] = {"attached": f"process {pid}"}
    # What it was started as: the file may be another program's, as redis-server is a link to it.
    with contextlib.suppress(OSError):
        facts["command"] = (proc / str(pid) / "comm").read_text(errors="replace").strip()
    link = proc / str(pid) / "exe"
    try:
        path = link.readlink()
    except OSError:
        return facts  # of another user
    # The file that runs, by the link itself: in a container, or since an upgrade, another file has
    # its path here.
    return {**facts, **describe_file(link), "path": str(path)}


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
