"""Connections of a store: one for each use, and the places that they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.errors import StoreError
from concurve.figures import encode_figures
from concurve.store.place import open_place
from tests.helpers.postgres import Server
from tests.store.test_store import RECORD, filled, outcome, row


def reads_while_it_writes(url: str) -> None:
    """Records are read one by one; a trial may be stored meanwhile, by the same store."""
    store = filled(url, 5)
    reading = store.records(row().id)
    assert next(reading).key.block == 0
    store.add_trial(row().id, outcome(7), encode_figures({}), RECORD)
    assert [record.key.block for record in reading][:4] == [1, 2, 3, 4]
    assert store.count(row().id) == 6
    store.close()
    assert store.count(row().id) == 6, "a closed store opens again when it is asked"
    store.close()


def test_sqlite_reads_while_it_writes(tmp_path: Path) -> None:
    reads_while_it_writes(str(tmp_path / "s.db"))


@pytest.mark.postgresql
def test_postgresql_reads_while_it_writes(postgres: Server) -> None:
    reads_while_it_writes(postgres.database("reads_and_writes"))


@pytest.mark.postgresql
def test_a_connection_that_the_server_ended_is_made_anew(postgres: Server) -> None:
    store = filled(postgres.database("ended"))
    with store._connections.use() as connection:
        (own,) = connection.run("SELECT pg_backend_pid()")
    with store._connections.use() as one, store._connections.use() as other:
        pids = {c.run("SELECT pg_backend_pid()")[0][0]: c for c in (one, other)}
        ending = next(c for pid, c in pids.items() if pid != own[0])
        ending.run("SELECT pg_terminate_backend(:pid)", pid=own[0])
    assert store.count(row().id) == 3
    store.close()


def test_a_part_of_a_transaction_is_not_stored(tmp_path: Path) -> None:
    store = filled(str(tmp_path / "s.db"), 1)

    class StopError(Exception):
        pass

    def written() -> Iterator[None]:
        with store._writing() as connection:
            connection.run("DELETE FROM concurve_records")
            yield
            raise StopError

    with pytest.raises(StopError):
        list(written())
    assert len(list(store.records(row().id))) == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host:5433/data", "postgresql://me:***@host:5433/data"),
        ("postgres://me@host/data?password=secret", "postgres://me@host/data"),
        ("postgresql://host/data", "postgresql://host/data"),
    ],
)
def test_a_place_is_shown_without_its_password(url: str, shown: str) -> None:
    pytest.importorskip("psycopg")
    assert open_place(url).connections.shown == shown


@pytest.mark.parametrize("url", ["postgresql://me:secret@host:port/x", "postgresql://[secret/x"])
def test_a_malformed_place_is_refused_without_its_password(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="malformed") as refused:
        open_place(url)
    assert "secret" not in str(refused.value)
