"""One measurement at a time per machine. Those that wait for it stand in line (``turns.py``).

An advisory lock on a file that every user can open. The kernel drops it with its holder, so
nothing is left behind by a killed run.

Every user may also make this file, and write anything into it: so where it is not named by
``CONCURVE_LOCK``, neither a link nor anything but a file is followed, and little of it is read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from concurve.errors import BusyError, HostError

LOCK_NAME = "concurve-measurement.lock"
_SHARED = Path("/run/lock")

#: So much of what a holder says of itself is read.
_SAID_BYTES_MAX = 400

#: The open file of the lock that is held for the runs of this process.
_HELD: ContextVar[int | None] = ContextVar("measurement_lock", default=None)


def lock_path() -> Path:
    """``CONCURVE_LOCK``, else a file in ``/run/lock``, or in ``/tmp`` where not every user may
    write to that: all users of the machine must find the same one."""
    given = os.environ.get("CONCURVE_LOCK")
    if given:
        return Path(given)
    return (_SHARED if _is_for_all(_SHARED) else Path("/tmp")) / LOCK_NAME


def _is_for_all(folder: Path) -> bool:
    """Whether every user may make a file there, whoever asks."""
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


@contextmanager
def measurement_lock(what: str, *, for_runs: bool = False) -> Iterator[None]:
    """Hold the machine's measurement lock; ``what`` names the holder for other processes. Who holds
    it ``for_runs`` hands it to each run that is begun meanwhile.

    Raises:
        BusyError: another measurement runs.
        HostError: the file cannot be opened.
    """
    held = _HELD.get()
    if held is not None:
        _say(held, what)
        yield
        return
    descriptor = taken_lock(what)
    try:
        token = _HELD.set(descriptor if for_runs else None)
        try:
            yield
        finally:
            _HELD.reset(token)
    finally:
        os.close(descriptor)


def taken_lock(what: str) -> int:
    """Take the machine's measurement lock: the descriptor with which it is given back, by whichever
    thread closes it, or by the end of this process.

    Raises:
        BusyError: another measurement runs.
        HostError: the file cannot be opened.
    """
    path = lock_path()
    try:
        descriptor = open_for_all(path)
    except OSError as error:
        raise HostError(
            f"the measurement lock {path} cannot be opened: {error.strerror}",
            "CONCURVE_LOCK=FILE names another, the same for all users of the machine",
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _said(descriptor)
            raise BusyError(
                f"another measurement runs on this machine: {holder or 'holder unknown'}",
                "wait until it is done, as sweep, run and resume do with --wait-quiet 10m: two at "
                "once would disturb each other",
            ) from error
        _say(descriptor, what)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def measurement_under_way(root: Path = Path("/")) -> str:
    """Who holds the measurement lock, in its own words; empty if nobody does. It is only looked at:
    to try it would keep a measurement from beginning."""
    try:
        descriptor = _open_file(lock_path(), os.O_RDONLY)
        try:
            found, said = os.fstat(descriptor), _said(descriptor)
        finally:
            os.close(descriptor)
        locks = (root / "proc/locks").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    pid = said.removeprefix("pid ").partition(",")[0]
    is_held = any(
        inode == str(found.st_ino) and (place == device or by == pid)
        for by, place, inode in _file_locks(locks)
    )
    return (said or "holder unknown") if is_held else ""


def _say(descriptor: int, what: str) -> None:
    """Name the holder."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"pid {os.getpid()}, {what}\n".encode(), 0)


def _said(descriptor: int) -> str:
    """What the holder says of itself: one line."""
    said = os.pread(descriptor, _SAID_BYTES_MAX, 0).decode(errors="replace").strip()
    return said.partition("\n")[0]


def _file_locks(text: str) -> Iterator[tuple[str, str, str]]:
    """The locks of whole files in ``/proc/locks``: who holds each, its device and its inode."""
    for line in text.splitlines():
        # "1: FLOCK  ADVISORY  WRITE 4711 fd:01:131 0 EOF"; who waits for one has "->" before FLOCK.
        fields = line.split()
        if len(fields) >= 6 and fields[1] == "FLOCK":
            place, _, inode = fields[5].rpartition(":")
            yield fields[4], place, inode


def open_for_all(path: Path) -> int:
    """A file that every user may lock; it is made if it is not there.

    Raises:
        OSError: it cannot be opened, or is not what a lock is.
    """
    # Without O_CREAT first: protected_regular refuses it on another user's file in /tmp.
    with contextlib.suppress(FileNotFoundError):
        return _open_file(path, os.O_RDWR)
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        os.fchmod(descriptor, 0o666)
        return descriptor
    return _open_file(path, os.O_RDWR)  # another one has made it


def _open_file(path: Path, flags: int) -> int:
    """An open regular file. In a folder of all users, a name may be a link to a file of this
    user's, which the holder would overwrite.

    Raises:
        OSError: it cannot be opened, or is no regular file of one name.
    """
    is_named = bool(os.environ.get("CONCURVE_LOCK"))
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | (0 if is_named else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not is_named:
            raise OSError(error.errno, "it is a link") from error
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        wrong = "it is no regular file"
    elif status.st_nlink != 1 and not is_named:
        wrong = "it is a second name of a file"
    else:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, wrong)
