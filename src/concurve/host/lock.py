"""One measurement at a time per machine.

An advisory lock on a file that every user can open. The kernel drops it with its holder, so
nothing is left behind by a killed run.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from concurve.errors import BusyError, HostError

LOCK_NAME = "concurve-measurement.lock"
_SHARED = Path("/run/lock")


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
def measurement_lock(what: str) -> Iterator[None]:
    """Hold the machine's measurement lock; ``what`` names the holder for other processes.

    Raises:
        BusyError: another measurement runs.
        HostError: the file cannot be opened.
    """
    path = lock_path()
    try:
        descriptor = _open(path)
    except OSError as error:
        raise HostError(
            f"the measurement lock {path} cannot be opened: {error.strerror}",
            "CONCURVE_LOCK=FILE names another, the same for all users of the machine",
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 400, 0).decode(errors="replace").strip()
            raise BusyError(
                f"another measurement runs on this machine: {holder or 'holder unknown'}",
                "wait until it is done; two at once would disturb each other",
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()}, {what}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        # Without O_CREAT first: protected_regular refuses it on another user's file in /tmp.
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        os.fchmod(descriptor, 0o666)
        return descriptor
