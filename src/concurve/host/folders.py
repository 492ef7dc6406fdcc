"""Folders that live as long as a trial or a server, and that a killed process does not leave for
good: whoever makes the next one removes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from concurve.host.segments import free_segment

PREFIX = "concurve-at-work-"

#: Locked by the one whose folder it is; the lock ends with his process, however that ends.
_LOCK = ".lock"


@contextlib.contextmanager
def passing_folder() -> Iterator[Path]:
    """A new, empty folder in the temporary folder, which others may enter but not list; it is
    removed in the end.

    Raises:
        OSError: none can be made there.
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
    """Remove what killed processes have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # no lock yet, somebody else's, or gone meanwhile
            lock = os.open(folder / _LOCK, os.O_WRONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    """The lock last, so that what resists now is found again."""
    for path in folder.iterdir():
        if path.name != _LOCK:
            free_segment(path)
            shutil.rmtree(path, ignore_errors=True)
    if [path.name for path in folder.iterdir()] == [_LOCK]:
        (folder / _LOCK).unlink()
        folder.rmdir()
