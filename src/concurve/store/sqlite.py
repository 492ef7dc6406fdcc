"""A store in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from concurve.store.connections import ROWS_AT_ONCE, Row, Types
from concurve.store.file import READING_SECONDS, WRITING_SECONDS, StoreFile, patiently
from concurve.store.network import is_on_network

ERROR = sqlite3.Error
"""What SQLite raises."""


class SqliteConnection:
    """A :class:`~concurve.store.connections.Connection` to a file."""

    types = Types(number="INTEGER", blob="BLOB")

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connect()
        # No isolation level: Python's module begins no transaction by itself.
        self._connection.isolation_level = None
        # Full sync: a committed trial survives a crash of the machine.
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            self._connection.execute(f"PRAGMA {pragma}")

    def run(self, statement: str, **parameters: Any) -> list[Row]:
        """Execute a statement; all its rows."""
        return patiently(
            lambda: self._connection.execute(statement, parameters).fetchall(), READING_SECONDS
        )

    def run_each(self, statement: str, many: Iterable[Mapping[str, Any]]) -> None:
        """Execute a statement once with each of these parameters."""
        self._connection.executemany(statement, many)

    def read(self, statement: str, **parameters: Any) -> Iterator[Row]:
        """The rows of a query one by one."""
        with closing(self._connection.execute(statement, parameters)) as cursor:
            yield from cursor

    def batches(self, statement: str, **parameters: Any) -> Iterator[list[Row]]:
        """All rows of a query, some thousand at a time."""
        # A lock is met by its first row, and held off until its last one.
        cursor = patiently(lambda: self._connection.execute(statement, parameters), READING_SECONDS)
        with closing(cursor):
            yield from iter(lambda: cursor.fetchmany(ROWS_AT_ONCE), [])

    @contextmanager
    def transaction(self, is_patient: bool = False) -> Iterator[None]:
        """What is written inside is stored as a whole, or not at all."""
        seconds = WRITING_SECONDS if is_patient else READING_SECONDS
        # Immediate: another writer is waited for here, and never met half-way.
        patiently(lambda: self._connection.execute("BEGIN IMMEDIATE"), seconds)
        try:
            yield
            patiently(lambda: self._connection.execute("COMMIT"), seconds)
        except BaseException:
            with suppress(sqlite3.Error):  # an error of the disk has rolled it back already
                self._connection.rollback()
            raise

    def lock_creation(self) -> None:
        """Nothing: a transaction locks the file."""

    def tables(self) -> list[str]:
        """The names of all tables."""
        found = self.run("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [name for (name,) in found if not name.startswith("sqlite_")]

    def use_write_ahead_log(self) -> None:
        """Switch the file to its write-ahead log; it keeps this setting. On a network file system
        that log works for one machine alone (sqlite.org/wal.html), and another may have the store:
        there the file keeps a rollback journal."""
        ((_, _, file), *_) = self.run("PRAGMA database_list")
        mode = "delete" if file and is_on_network(Path(file)) else "wal"
        # Refused where another process does it now, or where the file may only be read.
        with suppress(sqlite3.OperationalError):
            if self.run("PRAGMA journal_mode") != [(mode,)]:
                # Tried once: where others have the file open, the next one that opens it tries.
                self._connection.execute(f"PRAGMA journal_mode={mode}").fetchall()

    def is_alive(self) -> bool:
        """A file always is."""
        return True

    def rescued_by(self, file: StoreFile) -> Path | None:
        """Where the file saved what this connection still has; ``None`` if nothing could be."""
        return file.rescue(self._connection)

    def close(self) -> None:
        """Close it."""
        self._connection.close()
