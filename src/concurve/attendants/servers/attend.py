"""The attendant of a real server in a trial: ``python -m concurve.attendants.servers.attend NAME
FILE --port N [--data 'ARGUMENT …'] [ARGUMENT …]``.

It starts the server in a new folder, writes ``{"ready":true}`` to the report channel when it
answers, asks it for its figures while it is under load, and stops it at SIGTERM. ``--data`` has the
arguments with which concurve-load fills a database: once, and later trials use copies of it. The
server's output goes to standard error. Exit codes: 0 stopped, 1 the server failed, 2 wrong usage.
"""

from __future__ import annotations

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
from concurve.attendants.servers.server import Database, Reading, Server, Session
from concurve.host.temporary import temporary_folder
from concurve.wire.report_channel import report

#: Seconds between two readings; a reading costs the server some tens of microseconds.
READING_SECONDS = 0.05

_USAGE = f"""usage: python -m concurve.attendants.servers.attend NAME FILE --port N \
[--data 'ARGUMENT ...'] [ARGUMENT ...]
NAME is one of {", ".join(SERVERS)}; the arguments are the server's own,
those of --data are for concurve-load, which fills a database with them."""


class _Task(NamedTuple):
    server: Server
    file: Path
    port: int
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
    own, data = argv[4:], ""
    if own[:1] == ["--data"]:
        if len(own) < 2 or not isinstance(SERVERS[argv[0]], Database):
            return None
        data, own = own[1], own[2:]
    return _Task(SERVERS[argv[0]], Path(argv[1]), int(argv[3]), data, own)


def _in_new_folder(task: _Task) -> None:
    try:
        with temporary_folder() as folder:
            _attend(task, folder, Signals())
    except OSError as error:  # the connection to the server was lost
        raise AttendantError(f"it no longer answers: {error}") from error


def _attend(task: _Task, folder: Path, signals: Signals) -> None:
    """Start the server, report it ready, read its counters until a stop signal, and stop it."""
    server = task.server
    _refuse_taken(task.port)
    if isinstance(server, Database):
        fill(server, task.file, task.data, folder, signals)
    argv = server.argv(task.file, folder, task.port, task.arguments)
    with running(server, argv, folder) as process:
        session = wait_until_it_answers(server, task.port, process, signals)
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


def _refuse_taken(port: int) -> None:
    """Refuse a port that is in use: otherwise another server would answer instead of ours."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
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
