"""MariaDB: a thread for each connection, or a pool of threads that connections share
(``--thread-handling=one-thread-per-connection | pool-of-threads``)."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

from concurve.attendants.servers.server import LOOPBACK, Database, Reading, Session, addresses

if TYPE_CHECKING:
    import pymysql

_OWNER = "root"

#: Names not looked up, no log for replicas; what it writes need not survive a loss of power.
_SETTINGS = (
    "--skip-name-resolve",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=0",
    "--max-connections=300",
)

_STATUS = (
    "Queries",
    "Threads_running",
    "Threadpool_threads",
    "Threadpool_idle_threads",
    "Innodb_row_lock_current_waits",
    "Innodb_row_lock_waits",
)
_ASK = f"SHOW GLOBAL STATUS WHERE Variable_name IN ({', '.join(map(repr, _STATUS))})"


class MariaDB(Database):
    """``mariadbd``, from Debian's package mariadb-server."""

    name = "mariadb"
    program = "mariadbd"
    variable = "CONCURVE_MARIADB"
    remedy = "apt-get install mariadb-server"
    user: ClassVar[str | None] = "mysql"
    stop_signal: ClassVar[signal.Signals] = signal.SIGKILL

    def lacks(self) -> tuple[str, str] | None:
        if importlib.util.find_spec("pymysql") is None:
            what = f"{self.name}: PyMySQL is not installed, which reads its counters"
            return what, "pip install 'concurve[mariadb]'"
        return super().lacks()

    def make(self, file: Path, folder: Path) -> list[str]:
        found = [file.with_name("mariadb-install-db"), Path("/usr/bin/mariadb-install-db")]
        program = next((one for one in found if one.exists()), found[0])
        return [str(program), "--no-defaults", *_places(folder), "--skip-test-db",
                "--auth-root-authentication-method=normal"]  # fmt: skip

    def argv(
        self, file: Path, folder: Path, port: int, arguments: Sequence[str], bind: str = LOOPBACK
    ) -> list[str]:
        # Any user of the machine may connect: SQL reads and writes no files elsewhere.
        places = [f"--socket={folder / 'socket'}", f"--pid-file={folder / 'pid'}",
                  f"--bind-address={','.join(addresses(bind))}", f"--port={port}",
                  f"--secure-file-priv={folder}"]  # fmt: skip
        return [str(file), "--no-defaults", *_places(folder), *places, *_SETTINGS, *arguments]

    def url(self, port: int) -> str:
        return f"mysql://{_OWNER}@{LOOPBACK}:{port}/"

    def connect(self, port: int) -> Session | None:
        import pymysql

        try:
            link = pymysql.connect(
                host=LOOPBACK, port=port, user=_OWNER, autocommit=True, connect_timeout=60,
                read_timeout=60,
            )  # fmt: skip
        except pymysql.err.OperationalError as error:
            if "refused" in str(error):
                return None
            raise ValueError(str(error)) from error
        return _MariaDBSession(link)


def _places(folder: Path) -> list[str]:
    """The folders of its data and its temporary tables: in a shared one, each server that starts
    removes the temporary tables of all others."""
    return [f"--datadir={folder / 'data'}", f"--tmpdir={folder}"]


class _MariaDBSession(Session):
    def __init__(self, link: pymysql.connections.Connection[Any]) -> None:
        self._link = link

    def facts(self) -> dict[str, Any]:
        asked = "SELECT VERSION(), @@thread_handling, @@thread_pool_size"
        version, handling, size = self._rows(asked)[0]
        found = {"mariadb_version": version, "thread_handling": handling}
        return {**found, "thread_pool_size": size} if handling == "pool-of-threads" else found

    def read(self) -> Reading:
        figures = {name: float(value) for name, value in self._rows(_ASK)}
        return Reading(int(figures.pop("Queries")), figures)

    def indicators(
        self, first: Reading, under_load: Sequence[Reading], last: Reading
    ) -> dict[str, float]:
        """Threads at work, sessions that wait for a row, and threads of the pool, on average over
        the readings under load; waits for rows, exact over the trial."""

        def mean_of(name: str) -> float:
            return fmean(reading.figures[name] for reading in under_load)

        waits = last.figures["Innodb_row_lock_waits"] - first.figures["Innodb_row_lock_waits"]
        found = {"row_lock_waits": waits}
        if under_load:
            found["threads_running_mean"] = mean_of("Threads_running")
            found["sessions_waiting_lock_mean"] = mean_of("Innodb_row_lock_current_waits")
            found["pool_threads_mean"] = mean_of("Threadpool_threads")
        return found

    def protect(self, password: str) -> None:
        """The owner on loopback, and the one from elsewhere, whom there is not yet."""
        self._rows("SET PASSWORD = PASSWORD(%s)", password)
        self._rows(f"CREATE USER {_OWNER}@'%%' IDENTIFIED BY %s", password)
        self._rows(f"GRANT ALL ON *.* TO {_OWNER}@'%' WITH GRANT OPTION")

    def settle(self) -> None:
        """Write all pages and remove old row versions, so that no trial does this work."""
        self._rows("SET GLOBAL innodb_fast_shutdown = 0")

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        self._rows("SET GLOBAL innodb_fast_shutdown = 2")  # writes the log, and no pages
        self._link.close()
        process.terminate()

    def _rows(self, query: str, *values: str) -> Sequence[Sequence[Any]]:
        with self._link.cursor() as cursor:
            cursor.execute(query, values or None)
            rows: Sequence[Sequence[Any]] = cursor.fetchall()
            return rows
