"""Connections to the database of a store, by Python's database interface (PEP 249): SQLite by the
standard library, PostgreSQL by psycopg.

A statement is SQL that both databases read, its parameters named as in ``:run``. What differs
between the two stands in :mod:`~concurve.store.sqlite` and :mod:`~concurve.store.postgresql`.
Decision 42 says why no library stands between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Protocol

Row = tuple[Any, ...]
"""The columns of a row."""


#: So many rows are a batch.
ROWS_AT_ONCE = 2_000


class Types(NamedTuple):
    """The names that a database has for the types of columns that SQL does not name alike."""

    number: str
    """A whole number that the database counts up with each row."""
    blob: str
    """Bytes."""


class Connection(Protocol):
    """A connection. Outside of :meth:`transaction` each statement is a transaction of its own."""

    types: Types

    def run(self, statement: str, **parameters: Any) -> list[Row]:
        """Execute a statement; all its rows, none where it gives no rows."""

    def run_each(self, statement: str, many: Iterable[Mapping[str, Any]]) -> None:
        """Execute a statement once with each of these parameters."""

    def read(self, statement: str, **parameters: Any) -> Iterator[Row]:
        """The rows of a query one by one: together they may not fit into memory."""

    def batches(self, statement: str, **parameters: Any) -> Iterator[list[Row]]:
        """All rows of a query, some thousand at a time: who keeps columns of very many has not all
        of the rows beside them."""

    def transaction(self, is_patient: bool = False) -> AbstractContextManager[None]:
        """What is written inside is stored as a whole, or not at all. Who ``is_patient`` waits long
        for other clients that keep the store locked: what is to be written would be lost."""

    def lock_creation(self) -> None:
        """Lock out other processes that create the store, until the transaction ends."""

    def tables(self) -> list[str]:
        """The names of all tables in the database, the laboratory's and others."""

    def use_write_ahead_log(self) -> None:
        """Let others read while a run writes, where the database needs to be told."""

    def is_alive(self) -> bool:
        """Does the database still answer?"""

    def close(self) -> None:
        """Close it."""


class Connections:
    """The connections to a database: each use has one to itself and leaves it to the next one, so
    rows may be read one by one while others are written.

    ``shown`` is the place without a password, ``error`` what the database raises. ``is_file``: it
    is a file of its own, in which nothing else is expected.
    """

    def __init__(
        self,
        shown: str,
        connect: Callable[[], Connection],
        error: type[Exception],
        is_file: bool = False,
    ) -> None:
        self.shown = shown
        self.is_file = is_file
        self.error = error
        self._connect = connect
        self._idle: list[Connection] = []

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """A connection for one use."""
        connection = self._idle_one() or self._connect()
        try:
            yield connection
        finally:
            self._idle.append(connection)

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def _idle_one(self) -> Connection | None:
        """A connection that still answers: a server may have been restarted meanwhile."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive():
                return connection
            connection.close()
        return None
