"""Temporary folders and free ports of trials, servers and agents. Making a folder first removes the
folders of killed processes, with the shared memory of servers in them."""

from __future__ import annotations

import contextlib
import ctypes
import errno
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
    with _owned(Path(tempfile.mkdtemp(prefix=PREFIX)), "data") as folder:
        yield folder


@contextlib.contextmanager
def folder_at(path: Path) -> Iterator[bool]:
    """The folder that :func:`temporary_folder` made on another host, at the same path here: whether
    it was made, and so is removed at the end. On a host that shares the file system it is there.

    Raises:
        OSError: the folder cannot be made.
    """
    if path.is_dir():
        yield False
        return
    own = path.parent
    if not own.name.startswith(PREFIX):
        raise OSError(errno.EINVAL, "no folder of a trial", str(path))
    remove_abandoned()
    own.mkdir(mode=0o700)
    with _owned(own, path.name):
        yield True


def offered_folder() -> Path:
    """The path of a folder that another process of this user is to make (:func:`taken_folder`)
    inside of one that is there, so that nobody else makes it first."""
    return Path(tempfile.mkdtemp(prefix=PREFIX)) / "data"


@contextlib.contextmanager
def taken_folder(path: Path) -> Iterator[None]:
    """The folder that another process has offered; it is removed at the end.

    Raises:
        OSError: it cannot be made, or is not this user's.
    """
    os.close(_own_folder(path.parent))
    remove_abandoned()
    with _owned(path.parent, path.name):
        yield


@contextlib.contextmanager
def _owned(own: Path, name: str) -> Iterator[Path]:
    """A folder of this name inside of one that is locked by this process, and removed at the end.

    Raises:
        OSError: it cannot be made.
    """
    # It has its name once it is locked: another process would take it for that of a killed one.
    unnamed = own / f"{_LOCK}-{os.getpid()}"
    lock = os.open(unnamed, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unnamed.rename(own / _LOCK)
        own.chmod(0o711)
        inner = own / name
        inner.mkdir(mode=0o711)
        yield inner
    finally:
        _remove(own)
        os.close(lock)


def remove_abandoned() -> None:
    """Remove the folders of killed processes of this user. All users make theirs in one place, and
    another may give such a name to anything: only a folder of this user is entered, and no link is
    followed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # no lock yet, of another user, or already removed
            folder = _own_folder(path)
            try:
                flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                lock = os.open(_LOCK, flags, dir_fd=folder)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if _empty(folder):
                        path.rmdir()
                finally:
                    os.close(lock)
            finally:
                os.close(folder)


def _own_folder(path: Path) -> int:
    """A descriptor of a folder that belongs to this user.

    Raises:
        OSError: it is no folder, or another user's.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if os.fstat(folder).st_uid == os.geteuid():
        return folder
    os.close(folder)
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))


def _remove(path: Path) -> None:
    """Remove a folder of this process."""
    folder = _own_folder(path)
    try:
        if _empty(folder):
            path.rmdir()
    finally:
        os.close(folder)


def _empty(folder: int) -> bool:
    """Empty a folder by its descriptor, its lock last: the next call finds what cannot be removed
    now. Whether it is empty."""
    for name in os.listdir(folder):
        if name != _LOCK:
            free_segment(Path(f"/proc/self/fd/{folder}", name))
            shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
    if os.listdir(folder) != [_LOCK]:
        return False
    os.unlink(_LOCK, dir_fd=folder)
    return True


_IPC_RMID = 0
_LIBC = ctypes.CDLL(None, use_errno=True)

#: A PostgreSQL writes eight short lines about itself.
_POSTMASTER_BYTES_MAX = 4096


def free_segment(folder: Path) -> None:
    """Remove the System V shared memory of the PostgreSQL whose data directory this is, if it still
    belongs to that server and its user. It belongs to no process, so a killed server leaves it."""
    with contextlib.suppress(OSError, ValueError):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(folder / "postmaster.pid", flags)
        try:
            owner = os.fstat(file).st_uid
            text = os.read(file, _POSTMASTER_BYTES_MAX).decode("ascii", errors="replace")
        finally:
            os.close(file)
        postmaster, segment = parse_postmaster(text)
        if _maker(segment) == (postmaster, owner):
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
    """The process that made a segment, because numbers are reused; ``None`` if there is none."""
    found = _maker(segment)
    return None if found is None else found[0]


def _maker(segment: int) -> tuple[int, int] | None:
    """The process that made a segment, and its user, by ``/proc/sysvipc/shm``."""
    rows = Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()
    names = rows[0].split()
    number, maker, user = names.index("shmid"), names.index("cpid"), names.index("cuid")
    found = (row.split() for row in rows[1:])
    return next(
        ((int(row[maker]), int(row[user])) for row in found if int(row[number]) == segment), None
    )


def free_port(address: str = "127.0.0.1") -> int:
    """A TCP port of an address of this machine on which no process listens now. Another process may
    take it before the server does; then the trial fails and is redone with another port.

    Raises:
        OSError: this machine does not have the address.
    """
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port
