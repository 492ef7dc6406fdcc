"""A store in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import psycopg

from concurve.store.connections import ROWS_AT_ONCE, Row, Types

#: The number of the lock that processes take which create a store: any that no other program takes.
_CREATION_LOCK = 20261121
#: So many rows are asked for at once where they are read one by one.
_ROWS_AT_ONCE = 256

_PARAMETER = re.compile(r":(\w+)")

ERROR: type[Exception] = psycopg.Error
"""What psycopg raises."""


class PostgresqlConnection:
    """A :class:`~concurve.store.connections.Connection` to a server."""

    types = Types(number="SERIAL", blob="BYTEA")

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def run(self, statement: str, **parameters: Any) -> list[Row]:
        """Execute a statement; all its rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(_named(statement), parameters)
            return cursor.fetchall() if cursor.description is not None else []

    def run_each(self, statement: str, many: Iterable[Mapping[str, Any]]) -> None:
        """Execute a statement once with each of these parameters."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_named(statement), many)

    def read(self, statement: str, **parameters: Any) -> Iterator[Row]:
        """The rows of a query one by one, by a cursor of the server."""
        with self._connection.transaction(), self._connection.cursor("concurve_rows") as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            cursor.execute(_named(statement), parameters)
            yield from cursor

    def batches(self, statement: str, **parameters: Any) -> Iterator[list[Row]]:
        """All rows of a query, some thousand at a time; the server sends them together."""
        with self._connection.cursor() as cursor:
            cursor.execute(_named(statement), parameters)
            yield from iter(lambda: cursor.fetchmany(ROWS_AT_ONCE), [])

    def transaction(self, is_patient: bool = False) -> AbstractContextManager[Any]:
        """What is written inside is stored as a whole, or not at all."""
        return self._connection.transaction()

    def lock_creation(self) -> None:
        """Lock out other processes that create the store, until the transaction ends."""
        self.run(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})")

    def tables(self) -> list[str]:
        """The names of all tables of the schema in which those of a store are made."""
        found = self.run("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return [name for (name,) in found]

    def use_write_ahead_log(self) -> None:
        """Nothing: it always has one."""

    def is_alive(self) -> bool:
        """Does the server still answer?"""
        try:
            self.run("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        """Close it."""
        self._connection.close()


@lru_cache(maxsize=64)
def _named(statement: str) -> bytes:
    """The statement with its parameters as psycopg names them: ``:run`` is ``%(run)s``."""
    return _PARAMETER.sub(r"%(\1)s", statement).encode()
