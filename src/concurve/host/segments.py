"""Shared memory of System V that a killed PostgreSQL leaves: it belongs to no process, and stays
until somebody removes it. Its number stands in the server's ``postmaster.pid``."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

_IPC_RMID = 0
_LIBC = ctypes.CDLL(None, use_errno=True)


def free_segment(folder: Path) -> None:
    """Remove the segment of the server whose data directory this was, if it is still that one."""
    with contextlib.suppress(OSError, ValueError):
        lines = (folder / "postmaster.pid").read_text(encoding="ascii", errors="replace")
        postmaster, segment = parse_postmaster(lines)
        if maker_of(segment) == postmaster:
            _LIBC.shmctl(segment, _IPC_RMID, None)


def parse_postmaster(text: str) -> tuple[int, int]:
    """Its process and its segment: lines 1 and 7, the latter with a key before.

    Raises:
        ValueError: it has no segment yet.
    """
    lines = text.splitlines()
    if len(lines) < 7 or len(lines[6].split()) != 2:
        raise ValueError(text)
    return int(lines[0]), int(lines[6].split()[1])


def maker_of(segment: int) -> int | None:
    """The process that made a segment, by ``/proc/sysvipc/shm``; numbers are used again."""
    rows = Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()
    names = rows[0].split()
    number, maker = names.index("shmid"), names.index("cpid")
    found = (row.split() for row in rows[1:])
    return next((int(row[maker]) for row in found if int(row[number]) == segment), None)
