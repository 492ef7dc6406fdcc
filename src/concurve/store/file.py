"""The file of a store in SQLite: made for its owner alone, opened also where it can only be read,
and watched while it is written.

A path may lead to another file at any moment: somebody deletes it, moves another one over it, or
cuts it. SQLite then goes on with the file that it has open, without an error, and nobody finds
again what it writes. So the file at the path is compared with the opened one, and what was written
is read back through a connection of its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from concurve.interruption import refuse_to_wait
from concurve.permissions import file_mode, keep_private

#: Seconds to wait for another client that keeps the store locked: who reads, and who has measured
#: something that would be lost.
READING_SECONDS = 20.0
WRITING_SECONDS = 600.0

#: Seconds of each attempt, in which nothing else is done, not even an interrupt.
_LOOK_SECONDS = 1.0

Given = TypeVar("Given")

#: The files that SQLite keeps beside a database whose writer is connected.
_LOG = "-wal"
_SHARED_MEMORY = "-shm"


class Change(NamedTuple):
    """What has become of a file, in words. If it has only become shorter, another client may have
    put it in order (``VACUUM``, a checkpoint), or somebody has cut it: its contents tell."""

    says: str
    is_shorter: bool = False


class _Watched:
    """A file that was seen at a path, and whether it is still there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity: tuple[int, int] | None = None
        self._bytes = 0

    def see(self) -> None:
        """Remember the file, the first time that it is there."""
        if self._identity is None:
            with contextlib.suppress(OSError):
                status = self._path.stat()
                self._identity = (status.st_dev, status.st_ino)

    def changed(self) -> Change | None:
        """What has become of it since; ``None`` if it is there and no shorter."""
        self.see()
        if self._identity is None:
            return None
        try:
            status = self._path.stat()
        except OSError:
            return Change("was deleted or moved, or its folder was")
        if (status.st_dev, status.st_ino) != self._identity:
            return Change("was replaced by another file")
        if status.st_size < self._bytes:
            says = f"was cut from {self._bytes} to {status.st_size} bytes"
            return Change(says, is_shorter=True)
        self._bytes = status.st_size
        return None

    def accept(self) -> None:
        """Take the present length for the right one."""
        self._bytes = 0


class StoreFile:
    """The file at a path."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._opened = self.path
        self._query = "mode=rw"
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._file = _Watched(self.path)
        self._log = _Watched(Path(f"{self.path}{_LOG}"))

    def make(self) -> None:
        """Make the file if it is not there; where that fails, opening it says why."""
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            os.close(os.open(self.path, flags, file_mode()))

    def written(self) -> tuple[int, ...]:
        """Numbers that change whenever the file or its log is written."""
        found: list[int] = []
        for ending in ("", _LOG):
            with contextlib.suppress(OSError):
                status = Path(f"{self._opened}{ending}").stat()
                found += [status.st_ino, status.st_size, status.st_mtime_ns]
        return tuple(found)

    def keep_private(self) -> None:
        """Give the file and those beside it their permissions: an older version made them for all
        users, and records hold what programs printed."""
        for ending in ("", _LOG, _SHARED_MEMORY):
            keep_private(Path(f"{self.path}{ending}"))

    def connect(self) -> sqlite3.Connection:
        """A connection; it makes no file.

        Raises:
            sqlite3.Error: the file cannot be opened.
        """
        connection = sqlite3.connect(
            _uri(self._opened, self._query),
            uri=True,
            timeout=_LOOK_SECONDS,
            check_same_thread=False,
        )
        self._file.see()
        return connection

    def read_only(self) -> bool:
        """From now on, connections only read, and need no file beside this one: for a store in a
        folder that nobody here may write to. ``False`` if it is not one, or cannot be read.

        What a writer that was killed has left in its log is read too, from a copy of both.
        """
        if os.access(self.path.parent, os.W_OK) or not os.access(self.path, os.R_OK):
            return False
        log = Path(f"{self.path}{_LOG}")
        try:
            if log.exists() and log.stat().st_size > 0:
                self._opened = self._copied(log)
        except (OSError, sqlite3.Error):
            return False
        self._query = "mode=ro&immutable=1"
        return True

    def _copied(self, log: Path) -> Path:
        """A copy of the file with what its log holds, which is gone with this object."""
        self._copy = tempfile.TemporaryDirectory(prefix="concurve-store-")
        copy = Path(self._copy.name) / "store.db"
        shutil.copyfile(self.path, copy)
        shutil.copyfile(log, f"{copy}{_LOG}")
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
        return copy

    def close(self) -> None:
        """Remove the copy, if there is one."""
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def changed(self) -> Change | None:
        """What has become of the file and its log since they were opened; ``None`` if they are as
        they were."""
        if self._opened != self.path:
            return None
        file, log = self._file.changed(), self._log.changed()
        if log is not None:
            log = log._replace(says=f"lost its log: the file that ends with {_LOG} {log.says}")
        both = [change for change in (file, log) if change is not None]
        return min(both, key=lambda change: change.is_shorter, default=None)

    def accept(self) -> None:
        """Take the present lengths for the right ones."""
        self._file.accept()
        self._log.accept()

    def is_sound(self) -> bool:
        """Does a new connection find the file whole?

        Raises:
            sqlite3.Error: another client keeps it locked.
        """
        try:
            with self.reading() as reading:
                found = patiently(lambda: reading.execute("PRAGMA quick_check(1)").fetchone())
                return bool(found == ("ok",))
        except sqlite3.Error as error:
            if is_busy(error):
                raise
            return False

    def reading(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """A connection that reads what is in the file now, whatever other ones remember."""
        return contextlib.closing(
            sqlite3.connect(_uri(self.path, "mode=ro"), uri=True, timeout=_LOOK_SECONDS)
        )

    def rescue(self, opened: sqlite3.Connection) -> Path | None:
        """Copy what an open connection still has into a new file beside this one, or in another
        folder if this one is gone; ``None`` if nothing whole can be copied."""
        for target in self._rescue_places():
            try:
                with contextlib.closing(sqlite3.connect(_uri(target, "mode=rw"), uri=True)) as new:
                    opened.backup(new)
                    if new.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",):
                        return target
            except sqlite3.Error:
                pass
            target.unlink(missing_ok=True)
        return None

    def _rescue_places(self) -> Iterator[Path]:
        """New, empty files: beside the store, in the working folder, in the temporary folder."""
        folders: list[Callable[[], Path]] = [
            lambda: self.path.parent,
            Path.cwd,
            lambda: Path(tempfile.gettempdir()),
        ]
        for folder in folders:
            with contextlib.suppress(OSError):
                descriptor, name = tempfile.mkstemp(
                    dir=folder(), prefix=f"{self.path.stem}-recovered-", suffix=".db"
                )
                os.close(descriptor)
                yield Path(name)


def patiently(call: Callable[[], Given], seconds: float = WRITING_SECONDS) -> Given:
    """What a call gives, once no other client keeps the store locked.

    Raises:
        sqlite3.Error: the call failed otherwise, or it is still locked after so many seconds.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > end:
                raise
            refuse_to_wait()


def is_busy(error: sqlite3.Error) -> bool:
    """Does another client keep the store locked? The lower byte of a code is its kind."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _uri(path: Path, query: str) -> str:
    return f"file:{urllib.parse.quote(str(path), errors='surrogateescape')}?{query}"
