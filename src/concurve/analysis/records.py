"""The records of a run: each is read once and handed to every reader that needs it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Protocol

from concurve.store import Store
from concurve.store.rows import RecordRow, TrialKey
from concurve.wire import decode_record
from concurve.wire.record import TrialRecord


class StoredRecord:
    """A record with its trial; decoded when it is first asked for."""

    def __init__(self, run: str, row: RecordRow) -> None:
        self._run = run
        self.key: TrialKey = row.key
        self.raw: bytes = row.record

    @cached_property
    def record(self) -> TrialRecord:
        """The record itself."""
        return decode_record(self.raw, self.key.shown(self._run))


class Reader(Protocol):
    """An analysis that needs records of a run."""

    def cells(self) -> Collection[int]:
        """The cells of which it needs a record."""

    def wants(self, key: TrialKey) -> bool:
        """Does it need the record of this trial?"""

    def take(self, stored: StoredRecord) -> None:
        """Read a record that it wants."""

    def has_all(self, cell: int) -> bool:
        """Does it need no more of this cell?"""


class FirstRecord:
    """The record of a run's first trial."""

    def __init__(self, key: TrialKey | None) -> None:
        self._key = key
        self.record: TrialRecord | None = None

    def cells(self) -> Collection[int]:
        """The cell of the first trial, if there is one."""
        return () if self._key is None else (self._key.cell,)

    def wants(self, key: TrialKey) -> bool:
        """Is this the first trial?"""
        return key == self._key

    def take(self, stored: StoredRecord) -> None:
        """Remember it."""
        self.record = stored.record

    def has_all(self, cell: int) -> bool:
        """One record is enough."""
        return self.record is not None or cell not in self.cells()


def read_records(store: Store, run: str, readers: Iterable[Reader]) -> None:
    """Read what the readers want, cell by cell, no record twice."""
    readers = list(readers)
    for cell in sorted({cell for reader in readers for cell in reader.cells()}):
        for row in store.records(run, cell):
            wanting = [reader for reader in readers if reader.wants(row.key)]
            stored = StoredRecord(run, row)
            for reader in wanting:
                reader.take(stored)
            if wanting and all(reader.has_all(cell) for reader in readers):
                break
