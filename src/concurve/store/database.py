"""The database of a store: opens it, checks and upgrades its format, and translates its errors.

History of the format: 1 (2026-11) first version; 2 (2026-11) campaigns, in tables of their own.
An older store is brought up to date when it is opened; one that may only be read stays as it is,
and has no campaigns.
"""

from __future__ import annotations

import functools
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from concurve.errors import StoreError
from concurve.interruption import whole
from concurve.store import tables
from concurve.store.connections import Connection
from concurve.store.file import StoreFile, patiently
from concurve.store.place import check_there, default_url, no_store, open_place, remedy
from concurve.store.sqlite import SqliteConnection

STORE_FORMAT = 2

#: The first format that has campaigns.
FORMAT_OF_CAMPAIGNS = 2

#: A format as it is written: a number above 0 in ASCII digits.
_FORMAT_NUMBER = re.compile(r"[1-9][0-9]{0,8}")

#: Other keys: "holder ID" is the process of a run or a campaign that is running.
_FORMAT_QUERY = "SELECT value FROM concurve_meta WHERE \"key\" = 'format'"


def _given(url: str | None) -> str:
    """A place as it is given, or the default one.

    Raises:
        StoreError: it is empty: an unset variable in a script, say, never means the default store.
    """
    if url is None:
        return default_url()
    if not url.strip():
        raise StoreError(
            "--db: the name of the store is empty", "a file or postgresql://…, or no --db"
        )
    return url


class Database:
    """A database in the format of a store: open with a file path or a database URL. One that
    ``must_exist`` is made nowhere, not even in an empty database."""

    def __init__(self, url: str | None = None, *, must_exist: bool = False) -> None:
        self.url = _given(url)
        self._must_exist = must_exist
        self._connections, self._file = open_place(self.url)
        self._lost: StoreError | None = None
        self._is_private = False
        try:
            self._open()
        except StoreError:
            if self._file is None or not self._file.read_only():
                raise
            self._connections.close()
            self._open()

    def _open(self) -> None:
        """Read its format, and bring it up to date."""
        with self._errors("opened"), self._connections.use() as connection:
            self._format = self._stored_format(connection)
            if self._must_exist and self._format == 0:
                raise no_store(f"in {self.shown()}")
            if self._format < STORE_FORMAT:
                self._bring_up_to_date(connection)
            connection.use_write_ahead_log()

    @classmethod
    def existing(cls, url: str | None = None) -> Self:
        """Open for reading: a missing file and an empty database are errors, and no store is made.

        Raises:
            StoreError: there is no such store, or it cannot be opened.
        """
        url = _given(url)
        check_there(url)
        return cls(url, must_exist=True)

    def close(self) -> None:
        """Close the connections to the database."""
        self._connections.close()
        if self._file is not None:
            self._file.close()

    def written(self) -> tuple[int, ...] | None:
        """Numbers that change whenever the store is written, found without a query; ``None`` where
        a server of a database keeps it."""
        return None if self._file is None else self._file.written()

    def shown(self) -> str:
        """The store's place without a password."""
        return self._connections.shown

    def _stored_format(self, connection: Connection) -> int:
        """The format of the store, read before anything is changed; 0 for a new one.

        Raises:
            StoreError: it is no store, or has a newer format.
        """
        found = connection.tables()
        if tables.META not in found:
            self._check_foreign(found)
            return 0
        rows = connection.run(_FORMAT_QUERY)
        if not rows:
            return 0
        stored = str(rows[0][0])
        if not _FORMAT_NUMBER.fullmatch(stored):
            shown = stored[:40] or "''"
            raise StoreError(
                f"{self.shown()} has store format {shown}, which is no format number; "
                "nothing was changed",
                "was it edited? A backup of it, or another store: --db FILE",
            )
        if int(stored) <= STORE_FORMAT:
            return int(stored)
        raise StoreError(
            f"{self.shown()} has store format {stored}, this version reads up to "
            f"{STORE_FORMAT}; nothing was changed",
            "a newer version of concurve, or another --db",
        )

    def _check_foreign(self, found: list[str]) -> None:
        """Refuse a SQLite file with other tables: its name is probably a mistake. A database of a
        server may have other tables."""
        foreign = sorted(name for name in found if not name.startswith("concurve_"))
        if foreign and self._connections.is_file:
            raise StoreError(
                f"{self.shown()} holds other tables ({', '.join(foreign[:3])}) and no runs; "
                "nothing was changed",
                "another file: --db FILE",
            )

    def _bring_up_to_date(self, connection: Connection) -> None:
        """Make the tables that are missing and write the format. An older store that may not be
        changed is read as it is."""
        try:
            _make_tables(connection)
        except self._connections.error:
            if self._format == 0:
                raise
            return
        self._format = STORE_FORMAT

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A connection to read with."""
        with self._errors("read"), self._connections.use() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection to write with: everything inside, or nothing. The store is still where it
        was opened, before and afterwards.

        Raises:
            StoreError: it cannot be written, or its path leads to another file by now.
        """
        self._check_file()
        if self._file is not None and not self._is_private:
            self._file.keep_private()
            self._is_private = True
        with (
            whole(),
            self._errors("written"),
            self._connections.use() as connection,
            connection.transaction(is_patient=True),
        ):
            yield connection
        self._check_file()

    def _check_file(self) -> None:
        """Refuse to go on with a file that nobody would find again; what it holds is saved."""
        if self._lost is None and self._file is not None and (change := self._file.changed()):
            if change.is_shorter and self._is_in_order(self._file):
                self._file.accept()
            else:
                self._lost = self._lost_error(change.says)
        if self._lost is not None:
            raise self._lost

    def _is_in_order(self, file: StoreFile) -> bool:
        """Is a file that became shorter whole, with all that was written to it? Then another client
        has put it in order."""
        with self._errors("read back"):
            if not file.is_sound():
                return False
            with file.reading() as reading:
                return all(
                    patiently(functools.partial(_first, reading, query, parameters)) >= least
                    for query, parameters, least in self._written_rows()
                )

    def _written_rows(self) -> Iterator[tuple[str, dict[str, Any], int]]:
        """Queries of how much there is, their parameters, and how much was written."""
        yield from ()

    def _lost_error(self, what: str) -> StoreError:
        """The error of a store that is not as it was; what is still there is saved."""
        assert self._file is not None
        saved = None
        with suppress(self._connections.error), self._connections.use() as connection:
            assert isinstance(connection, SqliteConnection)
            saved = connection.rescued_by(self._file)
        said = f"the store {self.shown()} {what} while it was in use"
        if saved is None:
            return StoreError(
                f"{said}, and nothing of it could be saved", "a backup of it, and the run anew"
            )
        return StoreError(
            f"{said}; what was stored until then is in {saved}",
            f"concurve resume last --db {shlex.quote(str(saved))}",
        )

    def _check_stored(self, query: str, least: int, **parameters: Any) -> None:
        """Read back how much is stored, through a connection that remembers nothing.

        Raises:
            StoreError: it is less than what was written.
        """
        with self._errors("read back"):
            if self._file is None:
                with self._connections.use() as connection:
                    ((stored,),) = connection.run(query, **parameters)
            else:
                with self._file.reading() as reading:
                    stored = patiently(functools.partial(_first, reading, query, parameters))
        if stored < least and self._lost is None:
            what = f"has {stored} of {least} trials that were written to it"
            if self._file is None:
                raise StoreError(f"the store {self.shown()} {what}", "who else writes to it?")
            self._lost = self._lost_error(f"was changed by another program: it {what}")
        self._check_file()

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        """Raise errors of the database as :class:`StoreError` with a remedy."""
        try:
            yield
        except UnicodeEncodeError as error:  # of the bytes of a command line
            raise StoreError(
                f"the store {self.shown()} could not be {verb}: {error.object!r} is no text in "
                "UTF-8, as all that is stored is",
                "a name in UTF-8; concurve runs lists those that are stored",
            ) from error
        except (OSError, self._connections.error) as error:
            text = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise StoreError(
                f"the store {self.shown()} could not be {verb}: {text}", remedy(text)
            ) from error


def _first(reading: sqlite3.Connection, query: str, parameters: dict[str, Any]) -> int:
    """The number that a query gives."""
    return int(reading.execute(query, parameters).fetchone()[0])


def _make_tables(connection: Connection) -> None:
    """Create them in one transaction, under a lock: another process may open the same store."""
    with connection.transaction():
        connection.lock_creation()
        for statement in tables.making(connection.types):
            connection.run(statement)
        if connection.run(_FORMAT_QUERY):
            connection.run(
                "UPDATE concurve_meta SET value = :value WHERE \"key\" = 'format'",
                value=str(STORE_FORMAT),
            )
        else:
            connection.run(
                "INSERT INTO concurve_meta (\"key\", value) VALUES ('format', :value)",
                value=str(STORE_FORMAT),
            )
