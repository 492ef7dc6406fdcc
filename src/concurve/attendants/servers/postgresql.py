"""PostgreSQL, versions side by side: a process for each connection, over shared memory.

Debian installs each version in a folder of its own; ``scripts/install-postgresql.sh`` does so
beside it. Trials begin with copies of data that were made once
(:mod:`concurve.attendants.servers.data`).
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

from concurve.attendants.servers.server import LOOPBACK, Database, Reading, Session, addresses
from concurve.host.folders import data_folder

if TYPE_CHECKING:
    import psycopg

VERSIONS = ("9.6", *map(str, range(10, 19)))

#: The superuser of the data that are made here, known by that name everywhere.
_OWNER = "postgres"

#: Nothing outlives a kill: shared memory is in files of the folder. Enough connections for all
#: sessions; its data need not survive a loss of power.
_SETTINGS = {
    "unix_socket_directories": "",
    "dynamic_shared_memory_type": "mmap",
    "max_connections": "300",
    "fsync": "off",
}

#: Who comes from elsewhere is asked for a password, which is stored in either form; initdb has
#: admitted loopback.
_ADMITTED = "host all all all md5\n"

#: One row: the number of sessions that execute a statement, and what they wait for. Only client
#: sessions have a state. A wait for the next message of the client is no wait of a statement.
_ACTIVITY = """
SELECT count(*),
       count(*) FILTER (WHERE wait_event_type = 'Lock'),
       count(*) FILTER (WHERE wait_event_type IN ('LWLock', 'LWLockNamed', 'LWLockTranche')),
       count(*) FILTER (WHERE wait_event_type = 'IO')
FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()
"""

#: Functions were renamed with version 10.
_LOG_POSITION = "SELECT pg_{log}_location_diff(pg_current_{log}_location(), '0/0')::bigint"
_LOG_POSITION_NOW = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"


class PostgreSQL(Database):
    """``postgres`` of a version, such as ``postgresql-18``; without one (``postgresql``), of the
    newest that is installed."""

    program = "postgres"
    user: ClassVar[str | None] = "postgres"
    stop_signal: ClassVar[signal.Signals] = signal.SIGQUIT  # immediate shutdown
    settle_signal: ClassVar[signal.Signals] = signal.SIGINT  # fast shutdown, with a checkpoint

    def __init__(self, version: str | None = None) -> None:
        self.name = f"postgresql-{version}" if version else "postgresql"
        self.variable = "CONCURVE_" + self.name.upper().replace("-", "_").replace(".", "_")
        self.remedy = f"scripts/install-postgresql.sh {version or 18} in a checkout" + (
            "" if version else ", or apt-get install postgresql"
        )
        self.folders = tuple(
            f"{root}/{one}/bin"
            for one in ([version] if version else reversed(VERSIONS))
            for root in _roots()
        )

    def candidates(self) -> list[str | None]:
        return [f"{folder}/{self.program}" for folder in self.folders]

    def places(self) -> list[str]:
        named = os.environ.get(self.variable)
        wildcard = self.name.partition("-")[2] or "*"
        return [f"{self.variable}={named}"] if named else [f"{r}/{wildcard}" for r in _roots()]

    def lacks(self) -> tuple[str, str] | None:
        if importlib.util.find_spec("psycopg") is None:
            what = f"{self.name}: psycopg is not installed, which reads its counters"
            return what, "pip install 'concurve[postgresql]'"
        return super().lacks()

    def make(self, file: Path, folder: Path) -> list[str]:
        initdb = str(file.with_name("initdb"))
        return [initdb, "-D", str(folder), "-U", _OWNER, "-A", "trust", "-N", "-E", "UTF8",
                "--locale=C"]  # fmt: skip

    def admit(self, folder: Path, password: str) -> None:
        with (folder / "pg_hba.conf").open("a", encoding="ascii") as file:
            file.write(_ADMITTED)

    def argv(
        self, file: Path, folder: Path, port: int, arguments: Sequence[str], bind: str = LOOPBACK
    ) -> list[str]:
        listens = {"listen_addresses": ",".join(addresses(bind)), **_SETTINGS}
        settings = [word for key, value in listens.items() for word in ("-c", f"{key}={value}")]
        return [str(file), "-D", str(folder), "-p", str(port), *settings, *arguments]

    def url(self, port: int) -> str:
        return f"postgresql://{_OWNER}@{LOOPBACK}:{port}/postgres"

    def connect(self, port: int) -> Session | None:
        import psycopg

        try:
            link = psycopg.connect(
                host=LOOPBACK, port=port, user=_OWNER, dbname="postgres", autocommit=True,
                connect_timeout=60, prepare_threshold=0,
            )  # fmt: skip
        except psycopg.OperationalError as error:
            said = str(error)
            if "refused" in said or "starting up" in said or error.sqlstate == "57P03":
                return None
            raise ValueError(said.strip()) from error
        return _PostgreSQLSession(link)


class _PostgreSQLSession(Session):
    def __init__(self, link: psycopg.Connection[Any]) -> None:
        self._link = link
        old = link.info.server_version < 100_000
        self._log_position = _LOG_POSITION.format(log="xlog") if old else _LOG_POSITION_NOW

    def facts(self) -> dict[str, Any]:
        names = ("server_version", "shared_buffers", "synchronous_commit", "fsync")
        found = {name: self._row(f"SHOW {name}")[0] for name in names}
        found["postgresql_version"] = found.pop("server_version")
        return found

    def read(self) -> Reading:
        active, locks, latches, io = self._row(_ACTIVITY)
        figures = {
            "sessions_active": active,
            "sessions_waiting_lock": locks,
            "sessions_waiting_lwlock": latches,
            "sessions_waiting_io": io,
        }
        return Reading(self._row(self._log_position)[0], figures)

    def busy(self, before: Reading, after: Reading) -> bool:
        """Decided by the active sessions, because the counters of transactions are updated late."""
        return before.figures["sessions_active"] > 0 and after.figures["sessions_active"] > 0

    def indicators(
        self, first: Reading, under_load: Sequence[Reading], last: Reading
    ) -> dict[str, float]:
        """Sessions at a statement, and those that wait for a lock, for a lightweight lock (a latch)
        and for I/O, on average over the readings under load; bytes of log, exact over the trial."""
        found: dict[str, float] = {
            f"{name}_mean": fmean(reading.figures[name] for reading in under_load)
            for name in (last.figures if under_load else ())
        }
        found["wal_bytes"] = last.requests - first.requests
        return found

    def protect(self, password: str) -> None:
        from psycopg import sql

        words = sql.SQL("ALTER USER {} PASSWORD {}")
        self._link.execute(words.format(sql.Identifier(_OWNER), sql.Literal(password)))

    def settle(self) -> None:
        self._link.execute("VACUUM ANALYZE")

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        self._link.close()
        process.send_signal(PostgreSQL.stop_signal)

    def _row(self, query: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._link.execute(query.encode()).fetchone()
        assert row is not None
        return row


def _roots() -> list[str]:
    """The folders that hold versions side by side: Debian's, then ours."""
    data = data_folder()
    own = [] if data is None else [f"{data}/concurve/postgresql"]
    return ["/usr/lib/postgresql", "/opt/concurve/postgresql", *own]
