"""Real servers as roles of a trial.

What differs from server to server is a :class:`~concurve.attendants.servers.server.Server`; a new
one is a module with such a class, and a line below. The attendant
(:mod:`concurve.attendants.servers.attend`) prepares and starts the server, reports ``ready`` when
it answers, reads its own figures under load, and stops it.

A study names it as ``program = "redis-server"``; the arguments are the attendant's ``--port N``
and the server's own arguments.
"""

from __future__ import annotations

from pathlib import Path

from concurve.attendants.servers.mariadb import MariaDB
from concurve.attendants.servers.postgresql import VERSIONS, PostgreSQL
from concurve.attendants.servers.redis import Redis
from concurve.attendants.servers.server import Server
from concurve.errors import HostError
from concurve.host.own_python import module

#: By the name that studies use.
SERVERS: dict[str, Server] = {
    server.name: server for server in (Redis(), MariaDB(), PostgreSQL(), *map(PostgreSQL, VERSIONS))
}


def program(name: str, where: str) -> Path:
    """Where a server is installed.

    Raises:
        HostError: the server, or something that it needs, is not installed; the message says what,
            in which places, and how to install it.
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
    return (*module("concurve.attendants.servers.attend"), name, str(program(name, where)))
