"""Finds the processes of this machine that serve a TCP port. Nothing is done to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")

_LISTENS = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def serving(port: int, proc: Path = PROC) -> list[int]:
    """The processes that listen to a port, as far as they are to be seen from here, and those that
    they have started: engines of a server may be processes of their own."""
    sockets = set(_sockets(port, proc))
    if not sockets:
        return []
    processes = {int(folder.name): folder for folder in proc.iterdir() if folder.name.isdigit()}
    found = {pid for pid, folder in processes.items() if not sockets.isdisjoint(_held(folder))}
    parents = {pid: _parent(folder) for pid, folder in processes.items()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def _sockets(port: int, proc: Path) -> Iterator[str]:
    """The inodes of the sockets that listen to a port."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _held(folder: Path) -> Iterator[str]:
    """The inodes of the sockets that a process holds; none where it is not ours."""
    try:
        for descriptor in (folder / "fd").iterdir():
            if match := _SOCKET.fullmatch(str(descriptor.readlink())):
                yield match[1]
    except OSError:
        return


def _parent(folder: Path) -> int:
    try:
        text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
