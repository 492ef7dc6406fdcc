"""A PostgreSQL of a bench's own: found, made, started and taken away again."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from measuring.figures import MissingToolError

PORT = 5432
"""Part of the name of its socket; where it listens to the network it should be a free one."""
_ROOTS = ("/usr/lib/postgresql", "/opt/concurve/postgresql")
_ALWAYS = {
    "max_connections": "120",
    "max_wal_size": "8GB",
    "autovacuum": "off",
}


class Postgres(NamedTuple):
    """A server that is up."""

    tools: Path
    folder: Path
    """Of its Unix socket; whatever else is put there goes with it."""
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}&port={self.port}"

    def options(self) -> list[str]:
        """How libpq's programs find it."""
        return ["-h", str(self.folder), "-p", str(self.port), "-U", "postgres"]


def find_tools() -> Path:
    """The folder of the newest server that has pgbench beside it.

    Raises:
        MissingToolError: there is none.
    """
    found = [path.parent for root in _ROOTS for path in Path(root).glob("*/bin/pgbench")]
    if not found:
        raise MissingToolError("pgbench is missing (apt-get install postgresql)")
    return max(found, key=lambda folder: float(folder.parent.name))


@contextmanager
def running(
    tools: Path, settings: Mapping[str, str], within: Path | None = None, port: int = PORT
) -> Iterator[Postgres]:
    """An empty PostgreSQL without autovacuum, in a folder that its user may enter; nothing of it
    stays."""
    with tempfile.TemporaryDirectory(dir=within) as name:
        folder, data = Path(name), Path(name) / "data"
        user = own_user(folder)
        quietly([*user, str(tools / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust",
                 "-N"])  # fmt: skip
        everything = {**_ALWAYS, "unix_socket_directories": name, "port": str(port), **settings}
        options = [word for key, value in everything.items() for word in ("-c", f"{key}={value}")]
        process = subprocess.Popen(
            [*user, str(tools / "postgres"), "-D", str(data), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            server = Postgres(tools, folder, port)
            wait_for(server, process)
            yield server
        finally:
            process.terminate()
            process.wait(60)


def own_user(folder: Path) -> list[str]:
    """The command prefix that runs a program as a user who may run PostgreSQL: not root.

    Raises:
        SystemExit: there is no such user.
    """
    if os.geteuid() != 0:
        return []
    try:
        os.chown(folder, *(int(output(["id", flag, "postgres"])) for flag in ("-u", "-g")))
    except subprocess.CalledProcessError as error:
        raise SystemExit("no user postgres, and PostgreSQL refuses root") from error
    folder.chmod(0o755)
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "env", "LC_ALL=C"]


def wait_for(server: Postgres, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Until it takes connections.

    Raises:
        SystemExit: it does not.
    """
    deadline = time.monotonic() + seconds
    ready = [str(server.tools / "pg_isready"), "-q", *server.options()]
    while subprocess.run(ready, check=False).returncode != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"PostgreSQL of {server.tools} does not start")
        time.sleep(0.05)


def output(argv: Sequence[str]) -> str:
    return subprocess.check_output(argv, text=True, stderr=subprocess.DEVNULL)


def quietly(argv: Sequence[str]) -> None:
    """Run to its end.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]} exited with {done.returncode}: {done.stderr[-300:]}")
