"""The attendant of a real server in a trial: ``python -m concurve.servers.attend NAME FILE --port N
[ARGUMENT …]``.

It starts the server in a new folder, writes ``{"ready":true}`` to the report channel when it
answers, asks it for its figures while it is under load, and stops it at SIGTERM. The server's
output goes to standard error. Exit codes: 0 stopped, 1 the server failed, 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from concurve.servers import NAME, SERVERS
from concurve.servers.server import Reading, Server, Session

REPORT_VARIABLE = "CONCURVE_REPORT"

#: ``linux/prctl.h``: the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)

#: For the server to answer, and to end when it is asked to. Only a hang takes as long.
PATIENCE_SECONDS = 120.0
#: Between two looks whether it answers.
LOOK_SECONDS = 0.002
#: Between two readings: each takes the server some tens of microseconds.
READING_SECONDS = 0.05
#: Requests since the reading before, above which it is under load: the attendant's own are fewer.
REQUESTS_MIN = 10

_USAGE = f"""usage: python -m concurve.servers.attend NAME FILE --port N [ARGUMENT ...]
NAME is one of {", ".join(SERVERS)}; the arguments are the server's own."""


class AttendanceError(Exception):
    """The server cannot be attended; the text says why."""


class _Task(NamedTuple):
    server: Server
    file: Path
    port: int
    arguments: Sequence[str]


def main(argv: Sequence[str] | None = None) -> int:
    """Attend a server until SIGTERM or SIGINT."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(NAME, encoding="utf-8")
    task = _parse(sys.argv[1:] if argv is None else argv)
    if task is None:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        with _signals() as woken, tempfile.TemporaryDirectory(prefix="concurve-") as folder:
            _attend(task, Path(folder), woken)
    except AttendanceError as error:
        print(f"{task.server.name}: {error}", file=sys.stderr)
        return 1
    except OSError as error:  # its connection was lost
        print(f"{task.server.name}: it no longer answers: {error}", file=sys.stderr)
        return 1
    return 0


def _parse(argv: Sequence[str]) -> _Task | None:
    if len(argv) < 4 or argv[0] not in SERVERS or argv[2] != "--port" or not argv[3].isdigit():
        return None
    return _Task(SERVERS[argv[0]], Path(argv[1]), int(argv[3]), argv[4:])


def _attend(task: _Task, folder: Path, woken: int) -> None:
    """The table of contents of an attendance."""
    _refuse_taken(task.port)
    with _running(task, folder) as process:
        session = _wait_until_it_answers(task, process, woken)
        if session is None:
            return
        for fact, value in session.facts().items():
            _report({"fact": fact, "value": value})
        first = session.read()
        _report({"ready": True})
        readings = _read_until_stopped(session, process, woken)
        last = session.read()
        loaded = under_load([first, *readings, last])
        for name, value in session.indicators(first, loaded, last).items():
            _report({"indicator": name, "value": value})
        session.stop()


def _refuse_taken(port: int) -> None:
    """Else the other one would answer for ours."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise AttendanceError(f"port {port} is taken")


@contextlib.contextmanager
def _running(task: _Task, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The server, in a process group of its own: SIGTERM is for the attendant, which has questions
    left."""
    argv = task.server.argv(task.file, folder, task.port, task.arguments)
    own = {key: value for key, value in os.environ.items() if key != REPORT_VARIABLE}
    try:
        process = subprocess.Popen(
            argv, cwd=folder, env=own, stdin=subprocess.DEVNULL, stdout=sys.stderr, process_group=0,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - there is one thread here
        )  # fmt: skip
    except OSError as error:
        raise AttendanceError(f"{task.file} cannot be started: {error.strerror}") from error
    try:
        yield process
        _end(process)
    finally:
        process.kill()
        process.wait()


def _end_with_parent() -> None:
    """Runs in the server's process before it starts: an attendant that is killed leaves none."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        code = process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        raise AttendanceError(f"it did not stop within {PATIENCE_SECONDS:.0f} s") from None
    if code != 0:
        raise AttendanceError(f"it ended with {code} when it was asked to stop")


def _wait_until_it_answers(
    task: _Task, process: subprocess.Popen[bytes], woken: int
) -> Session | None:
    """A session; ``None`` if the attendant is to stop first."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            session = task.server.connect(task.port)
        except (OSError, ValueError) as error:
            raise AttendanceError(f"no such server on port {task.port}: {error}") from error
        if session is not None:
            _refuse_ended(process)  # then somebody else has answered
            return session
        if _stopped(process, woken, LOOK_SECONDS):
            process.terminate()
            return None
    raise AttendanceError(f"it did not answer on port {task.port} within {PATIENCE_SECONDS:.0f} s")


def _read_until_stopped(
    session: Session, process: subprocess.Popen[bytes], woken: int
) -> list[Reading]:
    readings = []
    while not _stopped(process, woken, READING_SECONDS):
        readings.append(session.read())
    return readings


def under_load(readings: Sequence[Reading]) -> list[Reading]:
    """Those before and after which the server answered requests: it did so at the moment, too."""
    busy = [after.requests - before.requests > REQUESTS_MIN for before, after in pairwise(readings)]
    return [
        reading
        for reading, before, after in zip(readings[1:-1], busy, busy[1:], strict=False)
        if before and after
    ]


def _stopped(process: subprocess.Popen[bytes], woken: int, seconds: float) -> bool:
    """Wait that long, and not longer than until a signal comes: is it one to stop?"""
    if not select.select([woken], [], [], seconds)[0]:
        return False
    received = os.read(woken, 64)
    if signal.SIGTERM in received or signal.SIGINT in received:
        return True
    _refuse_ended(process)
    return False


def _refuse_ended(process: subprocess.Popen[bytes]) -> None:
    code = process.poll()
    if code is not None:
        raise AttendanceError(f"it ended by itself with {code}; its last words are above")


@contextlib.contextmanager
def _signals() -> Iterator[int]:
    """A descriptor from which the numbers of the signals are read that have come."""
    reads, writes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writes)
    yield reads


def _report(line: dict[str, Any]) -> None:
    channel = os.environ.get(REPORT_VARIABLE)
    if channel is not None:
        os.write(int(channel), json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
