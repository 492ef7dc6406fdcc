"""A PostgreSQL server of the tests' own: made, started and removed by them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from concurve.host.temporary import free_port

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
