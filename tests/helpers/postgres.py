"""A PostgreSQL server of the tests' own: made, started and removed by them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from concurve.host.temporary import free_port
from tests.helpers.real import wait_until

USER = "postgres"


class Server:
    """A running server; ``database`` makes an empty database and gives its URL."""

    def __init__(self, binaries: Path, port: int) -> None:
        self._binaries = binaries
        self._port = port

    def url(self, name: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self._port}/{name}"

    def database(self, name: str) -> str:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def guarded(self, name: str, password: str) -> str:
        """A database of a user of that name, who is asked for the password; its URL."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            user = sql.Identifier(name)
            made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(user, sql.Literal(password))
            connection.execute(made)
            connection.execute(sql.SQL("CREATE DATABASE {0} OWNER {0}").format(user))
            rules = Path(self._shown(connection, "hba_file"))
            first = f"host all {name} 127.0.0.1/32 scram-sha-256\n"
            rules.write_text(first + rules.read_text(encoding="utf-8"), encoding="utf-8")
            connection.execute("SELECT pg_reload_conf()")
        url = f"postgresql://{name}@127.0.0.1:{self._port}/{name}"
        wait_until(lambda: not _admits(url), "the server asks for the password")
        return url

    def pid(self) -> int:
        """The number of its first process."""
        import psycopg

        with psycopg.connect(self.url("postgres")) as connection:
            folder = Path(self._shown(connection, "data_directory"))
        return int((folder / "postmaster.pid").read_text(encoding="utf-8").split()[0])

    @staticmethod
    def _shown(connection: Any, setting: str) -> str:
        return str(connection.execute(f"SHOW {setting}").fetchone()[0])


def _admits(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url, password="").close()
    except psycopg.OperationalError:
        return False
    return True


def missing() -> str | None:
    """Why no server can be started here, or ``None``."""
    if find_binaries() is None:
        return "PostgreSQL is not installed: apt-get install postgresql"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(USER)
        except KeyError:
            return f"initdb refuses root, and there is no user {USER}"
        if shutil.which("setpriv") is None:
            return "initdb refuses root, and setpriv is missing: apt-get install util-linux"
    return None


def find_binaries() -> Path | None:
    """The folder of the newest initdb and pg_ctl."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version)
    found = shutil.which("initdb")
    candidates = [*reversed(folders), *([Path(found).parent] if found else [])]
    return next((folder for folder in candidates if (folder / "pg_ctl").exists()), None)


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in folder.parent.name.split(".") if part.isdigit())


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Start a server with its data in ``folder`` on a free port of this machine alone."""
    binaries = find_binaries()
    assert binaries is not None
    data = folder / "data"
    _as_user([str(binaries / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "-N", "-E",
              "UTF8"], folder)  # fmt: skip
    control = [str(binaries / "pg_ctl"), "-D", str(data), "-w", "-t", "300",
               "-l", str(folder / "log")]  # fmt: skip
    port = _start(control, folder)
    try:
        yield Server(binaries, port)
    finally:
        _as_user([*control, "-m", "immediate", "stop"], folder)


def _start(control: list[str], folder: Path) -> int:
    """Start the server on a free port, which another process may take first."""
    for attempt in (1, 2, 3):
        port = free_port()
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        )
        try:
            _as_user([*control, "-o", options, "start"], folder)
        except RuntimeError:
            if attempt == 3:
                raise
        else:
            return port
    raise AssertionError("unreachable")


def _as_user(command: list[str], folder: Path) -> None:
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": str(folder)}
    if os.geteuid() == 0:
        command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *command]
    # To files, not pipes: the server would keep a pipe open.
    with (folder / "said").open("a+") as said:
        done = subprocess.run(
            command, env=environment, cwd=folder, stdout=said, stderr=said, check=False
        )
        if done.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"{command[0]} failed: {said.read()[-500:]}")
