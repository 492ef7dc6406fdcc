"""Who runs a run: a process, named so that anybody on its machine can see whether it still lives.

A run that is being measured is stored with its holder. The kernel tells by the process's number and
its start time whether it lives, so nothing has to be taken back when it is killed. Of a process of
another machine, or of another PID namespace, nothing is known: it counts as alive.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

_PROC = Path("/proc")

#: The field of /proc/PID/stat after the name: the state; and the start time in clock ticks.
_STATE, _START = 0, 19


def own_holder() -> str:
    """The holder that this process is."""
    pid = os.getpid()
    started = _started(pid) or ""
    return " ".join((_machine(), _boot(), _namespace(), str(pid), started))


def is_gone(holder: str) -> bool:
    """Is it certain that the holder's process has ended?"""
    parts = holder.split(" ")
    if len(parts) != 5:
        return False
    machine, boot, namespace, pid, started = parts
    if machine != _machine() or not boot:
        return False
    if boot != _boot():
        return True
    if namespace != _namespace() or not pid.isdecimal() or not started:
        return False
    fields = _stat(int(pid))
    if fields is None:
        # Another user's process may be hidden (`hidepid`): the kernel tells it from one that ended.
        return not _exists(int(pid))
    return _started_of(fields) != started


def process_of(holder: str) -> int | None:
    """The number of the holder's process, if it lives and is seen from here; else ``None``."""
    parts = holder.split(" ")
    if len(parts) != 5:
        return None
    *place, pid, started = parts
    if place != [_machine(), _boot(), _namespace()] or not pid.isdecimal() or not started:
        return None
    return int(pid) if _started(int(pid)) == started else None


def _machine() -> str:
    """The machine's own name and id: images of containers may share the id."""
    name = socket.gethostname().replace(" ", "_")
    return f"{name[:64]}/{_read(Path('/etc/machine-id'))[:32]}"


def _boot() -> str:
    return _read(_PROC / "sys/kernel/random/boot_id")


def _namespace() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink()).replace(" ", "_")
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; ``None`` if it ended or is hidden."""
    fields = _stat(pid)
    return None if fields is None else _started_of(fields)


def _started_of(fields: list[str]) -> str | None:
    """The start time in these fields; ``None`` of a process that ended and is not reaped yet."""
    return None if fields[_STATE] in ("Z", "X") else fields[_START]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name; ``None`` if it cannot be read."""
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return fields if len(fields) > _START else None


def _exists(pid: int) -> bool:
    """Is there a process of this number, of whichever user?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
