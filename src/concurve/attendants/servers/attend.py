"""The attendant of a real server in a trial: ``python -m concurve.attendants.servers.attend NAME
FILE --port N [--bind ADDRESS] [--data 'ARGUMENT …'] [ARGUMENT …]``.

It starts the server in a new folder, writes ``{"ready":true}`` to the report channel when it
answers, asks it for its figures while it is under load, and stops it at SIGTERM. The server listens
on loopback, and on the address of ``--bind``; clients are asked for the password that is in the
variable CONCURVE_PASSWORD. ``--data`` has the arguments with which concurve-load fills a database:
once, and later trials use copies of it. The server's output goes to standard error. Exit codes: 0
stopped, 1 the server failed, 2 wrong usage.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from concurve.attendants.attendant import AttendantError, Signals, attend, name_thread
from concurve.attendants.servers import SERVERS
from concurve.attendants.servers.contents import fill
from concurve.attendants.servers.process import (
    end,
    refuse_ended,
    running,
    wait_until_it_answers,
)
from concurve.attendants.servers.server import LOOPBACK, Database, Reading, Server, Session
from concurve.host.temporary import temporary_folder
from concurve.secrets import PASSWORD_VARIABLE
from concurve.wire.report_channel import report

#: Seconds between two readings; a reading costs the server some tens of microseconds.
READING_SECONDS = 0.05

_USAGE = f"""usage: python -m concurve.attendants.servers.attend NAME FILE --port N \
[--bind ADDRESS] [--data 'ARGUMENT ...'] [ARGUMENT ...]
NAME is one of {", ".join(SERVERS)}; the arguments are the server's own,
those of --data are for concurve-load, which fills a database with them."""


class _Task(NamedTuple):
    server: Server
    file: Path
    port: int
    bind: str
    data: str
    arguments: Sequence[str]


def main(argv: Sequence[str] | None = None) -> int:
    """Attend a server until SIGTERM or SIGINT."""
    name_thread()
    task = _parse(sys.argv[1:] if argv is None else argv)
    if task is None:
        print(_USAGE, file=sys.stderr)
        return 2
    return attend(task.server.name, lambda: _in_new_folder(task))


def _parse(argv: Sequence[str]) -> _Task | None:
    if len(argv) < 4 or argv[0] not in SERVERS or argv[2] != "--port" or not argv[3].isdigit():
        return None
    server, own = SERVERS[argv[0]], argv[4:]
    given = {"--bind": LOOPBACK, "--data": ""}
    while own and own[0] in given:
        if len(own) < 2 or (own[0] == "--data" and not isinstance(server, Database)):
            return None
        given[own[0]], own = own[1], own[2:]
    return _Task(server, Path(argv[1]), int(argv[3]), given["--bind"], given["--data"], own)


def _in_new_folder(task: _Task) -> None:
    try:
        with temporary_folder() as folder:
            _attend(task, folder, Signals())
    except OSError as error:  # the connection to the server was lost
        raise AttendantError(f"it no longer answers: {error}") from error


def _attend(task: _Task, folder: Path, signals: Signals) -> None:
    """Start the server, report it ready, read its counters until a stop signal, and stop it."""
    server, password = task.server, os.environ.get(PASSWORD_VARIABLE, "")
    _refuse_open(task.bind, password)
    _refuse_taken(task.port)
    if isinstance(server, Database):
        fill(server, task.file, task.data, folder, signals)
    if password:
        server.admit(folder, password)
    argv = server.argv(task.file, folder, task.port, task.arguments, task.bind)
    with running(server, argv, folder) as process:
        session = wait_until_it_answers(server, task.port, process, signals)
        if password:
            session.protect(password)
        for fact, value in session.facts().items():
            report({"fact": fact, "value": value})
        first = session.read()
        report({"ready": True})
        readings = _read_until_stopped(session, process, signals)
        last = session.read()
        loaded = under_load([first, *readings, last], session)
        for name, value in session.indicators(first, loaded, last).items():
            report({"indicator": name, "value": value})
        session.stop(process)
        end(process)


def _refuse_open(bind: str, password: str) -> None:
    """Refuse what is no address, and one that other machines reach where there is no password."""
    try:
        address = ipaddress.ip_address(bind)
    except ValueError:
        raise AttendantError(f"--bind {bind}: not an IP address, such as 10.0.0.11") from None
    if address.version == 6 and address.is_unspecified:
        raise AttendantError(f"--bind {bind}: name an address of this machine, or 0.0.0.0")
    if not address.is_loopback and not password:
        raise AttendantError(
            f"--bind {bind}: a server that listens beyond loopback needs a password: set "
            f"{PASSWORD_VARIABLE}"
        )


def _refuse_taken(port: int) -> None:
    """Refuse a port that is in use: otherwise another server would answer instead of ours."""
    with socket.socket() as probe:
        if probe.connect_ex((LOOPBACK, port)) == 0:
            raise AttendantError(f"port {port} is taken")


def _read_until_stopped(
    session: Session, process: subprocess.Popen[bytes], signals: Signals
) -> list[Reading]:
    readings = []
    while not signals.stopped(READING_SECONDS):
        refuse_ended(process)
        readings.append(session.read())
    return readings


def under_load(readings: Sequence[Reading], session: Session) -> list[Reading]:
    """The readings between two busy intervals: the server was busy when they were taken."""
    busy = [session.busy(before, after) for before, after in pairwise(readings)]
    return [
        reading
        for reading, before, after in zip(readings[1:-1], busy, busy[1:], strict=False)
        if before and after
    ]


if __name__ == "__main__":
    sys.exit(main())
