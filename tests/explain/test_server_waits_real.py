"""PostgreSQL's sessions that wait for a row, as the runner samples them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from concurve.store import Store
from concurve.wire import decode_record
from concurve.wire.record import RoleRecord
from tests.helpers import real
from tests.helpers.postgres import Server

pytestmark = [pytest.mark.real, pytest.mark.postgresql]


@contextmanager
def session_behind_a_row(url: str) -> Iterator[int]:
    """A session that waits for a row which another one has changed; its process."""
    import psycopg

    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as waiter:
        holder.execute("CREATE TABLE hot AS SELECT 0 AS n")
        holder.commit()
        holder.execute("UPDATE hot SET n = 1")
        asking = threading.Thread(target=waiter.execute, args=("UPDATE hot SET n = 2",))
        asking.start()
        try:
            yield waiter.info.backend_pid
        finally:
            holder.rollback()
            asking.join()


def test_who_waits_for_a_row_is_seen_at_its_latch_and_where_it_takes_the_lock(
    lab: real.Lab, postgres: Server
) -> None:
    with session_behind_a_row(postgres.database("hot_row")) as pid:
        done = lab.run(
            "sweep", "--effort", "quick", "--repeats", "2..2", "-P", "n", "1", "--attach",
            str(postgres.pid()), "--", "sh", "-c", "sleep 2; : {n}",
        )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    store = Store.existing(str(lab.db))
    raw = store.first_record(store.find_run("last").id)
    assert raw is not None
    roles = decode_record(raw).roles
    server = next(role for role in roles if any(it.pid == pid for it in role.threads.listed))
    assert _seen_at_row(server, pid)


def _seen_at_row(server: RoleRecord, pid: int) -> bool:
    own = next(it.waits for it in server.threads.listed if it.pid == pid)
    assert own is not None and own.wake_up and not own.poll, own
    assert server.sites is not None
    return any(
        site.function == "XactLockTableWait" and site.primitive == "mutex"
        for site in server.sites.listed
        if any(waiter.tid == pid for waiter in site.waiters)
    )
