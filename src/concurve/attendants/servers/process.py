"""The process of a real server: it runs as its own user, and ends when its attendant ends."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from concurve.attendants.attendant import AttendantError, Signals, StoppedError
from concurve.attendants.servers.server import Server, Session
from concurve.host.orphans import ending_with_parent
from concurve.wire.report_channel import REPORT_VARIABLE

#: Seconds for a server to answer, and to end after a stop request. Only a hang takes as long.
PATIENCE_SECONDS = 120.0
#: Seconds between two attempts to connect.
_LOOK_SECONDS = 0.002


@contextlib.contextmanager
def running(server: Server, argv: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The server, in a process group of its own: only the attendant gets SIGTERM, because it reads
    the server once more before it stops it. Kills the server at the end if it is still running.

    Raises:
        AttendantError: it cannot be started.
    """
    try:
        process = subprocess.Popen(
            argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr, process_group=0,
            preexec_fn=ending_with_parent(server.stop_signal),  # noqa: PLW1509 - one thread
            **identity(server),
        )  # fmt: skip
    except OSError as error:
        raise AttendantError(f"{argv[0]} cannot be started: {error.strerror}") from error
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def identity(server: Server) -> dict[str, Any]:
    """The user and the environment of a process of this server, for :class:`subprocess.Popen`."""
    env = {key: value for key, value in os.environ.items() if key != REPORT_VARIABLE}
    if server.user is None or os.geteuid() != 0:
        return {"env": env}
    found = pwd.getpwnam(server.user)
    # One language for its messages, which people read.
    env |= {"HOME": "/", "USER": server.user, "LC_ALL": "C"}
    return {"env": env, "user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


def wait_until_it_answers(
    server: Server, port: int, process: subprocess.Popen[bytes], signals: Signals
) -> Session:
    """A session with the server.

    Raises:
        AttendantError: the server ended or never answered, or another server answered.
        StoppedError: a stop signal came first.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            session = server.connect(port)
        except (OSError, ValueError) as error:
            raise AttendantError(f"no such server on port {port}: {error}") from error
        refuse_ended(process)  # otherwise another process may have answered
        if session is not None:
            return session
        if signals.stopped(_LOOK_SECONDS):
            process.send_signal(server.stop_signal)
            raise StoppedError
    raise AttendantError(f"it did not answer on port {port} within {PATIENCE_SECONDS:.0f} s")


def end(process: subprocess.Popen[bytes]) -> None:
    """Wait until the server has ended after the stop request.

    Raises:
        AttendantError: the server did not end in time, or it failed.
    """
    try:
        code = process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        raise AttendantError(f"it did not stop within {PATIENCE_SECONDS:.0f} s") from None
    if code != 0:
        raise AttendantError(f"it ended with {code} after the request to stop")


def refuse_ended(process: subprocess.Popen[bytes]) -> None:
    """
    Raises:
        AttendantError: the server has ended although it was not stopped.
    """
    code = process.poll()
    if code is not None:
        raise AttendantError(f"it ended unexpectedly with {code}; its output is above")
