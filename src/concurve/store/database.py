"""The database of a store: opens it, checks and upgrades its format, and translates its errors.

History of the format: 1 (2026-11) first version; 2 (2026-11) campaigns, in tables of their own.
An older store is brought up to date when it is opened; one that may only be read stays as it is,
and has no campaigns.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

import sqlalchemy as sa

from concurve.errors import StoreError
from concurve.store import tables
from concurve.store.place import check_there, default_url, open_place, remedy

STORE_FORMAT = 2

#: The first format that has campaigns.
FORMAT_OF_CAMPAIGNS = 2

#: Statements that lock out other processes that create the store, until the transaction ends.
_CREATION_LOCK = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "SELECT pg_advisory_xact_lock(20261121)",
}

#: A format as it is written: a number above 0 in ASCII digits.
_FORMAT_NUMBER = re.compile(r"[1-9][0-9]{0,8}")

#: Other keys: "holder ID" is the process of a run or a campaign that is running.
_FORMAT_QUERY = sa.select(tables.meta.c.value).where(tables.meta.c.key == "format")


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
    """A database in the format of a store: open with a file path or a database URL."""

    def __init__(self, url: str | None = None) -> None:
        self.url = _given(url)
        self._engine, self._file, self._shown = open_place(self.url)
        self._lost: StoreError | None = None
        try:
            self._open()
        except StoreError:
            if self._file is None or not self._file.read_only():
                raise
            self._engine.dispose()
            self._open()

    def _open(self) -> None:
        """Read its format, and bring it up to date."""
        with self._errors("opened"):
            self._format = self._stored_format()
            if self._format < STORE_FORMAT:
                self._bring_up_to_date()
            self._use_write_ahead_log()

    @classmethod
    def existing(cls, url: str | None = None) -> Self:
        """Open for reading: a missing file is an error, and no store is made.

        Raises:
            StoreError: there is no such store, or it cannot be opened.
        """
        url = _given(url)
        check_there(url)
        return cls(url)

    def close(self) -> None:
        """Close the connections to the database."""
        self._engine.dispose()
        if self._file is not None:
            self._file.close()

    def shown(self) -> str:
        """The store's place without a password."""
        return self._shown

    def _stored_format(self) -> int:
        """The format of the store, read before anything is changed; 0 for a new one.

        Raises:
            StoreError: it is no store, or has a newer format.
        """
        with self._engine.connect() as connection:
            found = sa.inspect(connection).get_table_names()
            if tables.meta.name not in found:
                self._check_foreign(found)
                return 0
            stored = connection.execute(_FORMAT_QUERY).scalar()
        if stored is None:
            return 0
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
        if foreign and self._engine.dialect.name == "sqlite":
            raise StoreError(
                f"{self.shown()} holds other tables ({', '.join(foreign[:3])}) and no runs; "
                "nothing was changed",
                "another file: --db FILE",
            )

    def _bring_up_to_date(self) -> None:
        """Make the tables that are missing and write the format. An older store that may not be
        changed is read as it is."""
        try:
            self._make_tables()
        except sa.exc.DBAPIError:
            if self._format == 0:
                raise
            return
        self._format = STORE_FORMAT

    def _make_tables(self) -> None:
        """Create them in one transaction, under a lock: another process may open the same store."""
        lock = _CREATION_LOCK[self._engine.dialect.name]
        with self._engine.begin() as connection:
            connection.exec_driver_sql(lock)
            tables.METADATA.create_all(connection)
            row = {"key": "format", "value": str(STORE_FORMAT)}
            if connection.execute(_FORMAT_QUERY).scalar() is None:
                connection.execute(tables.meta.insert().values(row))
            else:
                connection.execute(
                    tables.meta.update().where(tables.meta.c.key == "format").values(row)
                )

    def _use_write_ahead_log(self) -> None:
        """Switch SQLite to its write-ahead log, so that others can read while a run writes. The
        file keeps this setting."""
        if self._engine.dialect.name != "sqlite":
            return
        with self._engine.connect() as connection, suppress(sa.exc.OperationalError):
            # Refused where another process does it now, or where the file may only be read.
            if connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction of a store that is still where it was opened, before and afterwards.

        Raises:
            StoreError: it cannot be written, or its path leads to another file by now.
        """
        self._check_file()
        with self._errors("written"), self._engine.begin() as connection:
            yield connection
        self._check_file()

    def _check_file(self) -> None:
        """Refuse to go on with a file that nobody would find again; what it holds is saved."""
        if self._lost is None and self._file is not None and (what := self._file.changed()):
            self._lost = self._lost_error(what)
        if self._lost is not None:
            raise self._lost

    def _lost_error(self, what: str) -> StoreError:
        """The error of a store that is not as it was; what is still there is saved."""
        assert self._file is not None
        saved = None
        with suppress(sa.exc.SQLAlchemyError, sqlite3.Error), self._engine.connect() as connection:
            opened = connection.connection.dbapi_connection
            assert isinstance(opened, sqlite3.Connection)
            saved = self._file.rescue(opened)
        said = f"the store {self.shown()} {what} while it was in use"
        if saved is None:
            return StoreError(
                f"{said}, and nothing of it could be saved", "a backup of it, and the run anew"
            )
        return StoreError(
            f"{said}; what was stored until then is in {saved}",
            f"concurve resume last --db {shlex.quote(str(saved))}",
        )

    def _check_stored(self, query: sa.Select[int], least: int) -> None:
        """Read back how much is stored, through a connection that remembers nothing.

        Raises:
            StoreError: it is less than what was written.
        """
        with self._errors("read back"):
            if self._file is None:
                with self._engine.connect() as connection:
                    stored = int(connection.execute(query).scalar_one())
            else:
                options = {"literal_binds": True}
                text = str(query.compile(self._engine, compile_kwargs=options))
                with self._file.reading() as reading:
                    stored = int(reading.execute(text).fetchone()[0])
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
        except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
            text = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise StoreError(
                f"the store {self.shown()} could not be {verb}: {text}", remedy(text)
            ) from error
