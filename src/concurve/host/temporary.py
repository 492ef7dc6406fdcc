"""Temporary folders and free ports of trials and servers. Making a folder first removes the folders
of killed processes, with the shared memory of servers in them."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "concurve-at-work-"

#: The process that owns the folder locks this file; the lock ends with the process, however it
#: ends.
_LOCK = ".lock"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new, empty folder in the temporary folder, which others may enter but not list; it is
    removed at the end.

    Raises:
        OSError: the folder cannot be made.
    """
    remove_abandoned()
    own = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = os.open(own / _LOCK, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        own.chmod(0o711)
        inner = own / "data"
        inner.mkdir(mode=0o711)
        yield inner
    finally:
        _remove(own)
        os.close(lock)


def remove_abandoned() -> None:
    """Remove the folders of killed processes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # no lock yet, of another user, or already removed
            lock = os.open(folder / _LOCK, os.O_WRONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last: the next call finds what cannot be removed now."""
    for path in folder.iterdir():
        if path.name != _LOCK:
            free_segment(path)
            shutil.rmtree(path, ignore_errors=True)
    if [path.name for path in folder.iterdir()] == [_LOCK]:
        (folder / _LOCK).unlink()
        folder.rmdir()


_IPC_RMID = 0
_LIBC = ctypes.CDLL(None, use_errno=True)


def free_segment(folder: Path) -> None:
    """Remove the System V shared memory of the PostgreSQL whose data directory this is, if it still
    belongs to that server. It belongs to no process, so a killed server leaves it."""
    with contextlib.suppress(OSError, ValueError):
        lines = (folder / "postmaster.pid").read_text(encoding="ascii", errors="replace")
        postmaster, segment = parse_postmaster(lines)
        if maker_of(segment) == postmaster:
            _LIBC.shmctl(segment, _IPC_RMID, None)


def parse_postmaster(text: str) -> tuple[int, int]:
    """The process and the segment of a server: lines 1 and 7, the segment after its key.

    Raises:
        ValueError: it has no segment yet.
    """
    lines = text.splitlines()
    if len(lines) < 7 or len(lines[6].split()) != 2:
        raise ValueError(text)
    return int(lines[0]), int(lines[6].split()[1])


def maker_of(segment: int) -> int | None:
    """The process that made a segment, by ``/proc/sysvipc/shm``, because numbers are reused."""
    rows = Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()
    names = rows[0].split()
    number, maker = names.index("shmid"), names.index("cpid")
    found = (row.split() for row in rows[1:])
    return next((int(row[maker]) for row in found if int(row[number]) == segment), None)


def free_port() -> int:
    """A TCP port of 127.0.0.1 on which no process listens now. Another process may take it before
    the server does; then the trial fails and is redone with another port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
