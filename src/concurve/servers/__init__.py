"""Real servers as roles of a trial: what each needs to behave like a program of ours.

The runner knows roles only: a command line, a report channel, SIGTERM at the end. A real server
knows nothing of report channels, and some need a data directory first. An *attendant*
(:mod:`concurve.servers.attend`) stands between: a small process that prepares and starts the
server, says ``ready`` when it answers, reads its own figures under load, and stops it. What differs
from server to server is a :class:`~concurve.servers.server.Server`; a new one is a module with such
a class, and a line below.

A study names it as ``program = "redis-server"``; the arguments are the attendant's ``--port N``
and whatever the server itself is to be given.
"""

from __future__ import annotations

import sys
from pathlib import Path

from concurve.errors import HostError
from concurve.servers.mariadb import MariaDB
from concurve.servers.postgresql import VERSIONS, PostgreSQL
from concurve.servers.redis import Redis
from concurve.servers.server import Server

#: Under which an attendant's thread is listed in a record.
NAME = "attendant"

#: By the name that studies use.
SERVERS: dict[str, Server] = {
    server.name: server for server in (Redis(), MariaDB(), PostgreSQL(), *map(PostgreSQL, VERSIONS))
}


def program(name: str, where: str) -> Path:
    """Where a server is installed.

    Raises:
        HostError: nowhere, or something that it needs is missing; the message says what, where it
            was looked for, and how it is installed.
    """
    server = SERVERS[name]
    file = server.find()
    if file is None:
        raise HostError(
            f"{where}: {name} is not installed (looked in {', '.join(server.places())})",
            f"{server.remedy}, or {server.variable}=FILE",
        )
    if (lack := server.lacks()) is not None:
        raise HostError(f"{where}: {lack[0]}", lack[1])
    return file


def command(name: str, where: str) -> tuple[str, ...]:
    """How the command line of a server's role begins: its attendant, and where the server is.

    Raises:
        HostError: it is not installed.
    """
    return (sys.executable, "-m", "concurve.servers.attend", name, str(program(name, where)))
