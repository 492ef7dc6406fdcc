"""The data of a database when a trial begins: the server and concurve-load make them once."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from concurve.attendants.attendant import AttendantError, Signals
from concurve.attendants.servers.data import restore
from concurve.attendants.servers.process import end, identity, running, wait_until_it_answers
from concurve.attendants.servers.server import Database
from concurve.errors import HostError
from concurve.host import native
from concurve.host.temporary import free_port
from concurve.wire.report_channel import REPORT_VARIABLE

#: The last argument of concurve-load, after those of the study: make the data and end.
INITIALISE = ("--init-only",)


def fill(server: Database, file: Path, data: str, folder: Path, signals: Signals) -> None:
    """Put a database's data into ``folder``, which is empty: without any content, or with what
    concurve-load makes of the arguments ``data``.

    Raises:
        AttendantError: the data cannot be made; the text says at which step.
        StoppedError: the attendant was asked to stop.
    """
    if server.user is not None and os.geteuid() == 0:
        shutil.chown(folder, server.user)
    load = loader() if data else None

    def make(empty: Path) -> None:
        _run(server, server.make(file, empty), empty)
        if load is not None:
            _load(server, file, [str(load), "URL", *shlex.split(data), *INITIALISE], empty, signals)

    restore([server.name, data], [file, *([load] if load else [])], make, folder)


def loader() -> Path:
    try:
        return native.binary("concurve-load")
    except HostError as error:
        raise AttendantError(f"its data cannot be made: {error.what}; {error.remedy}") from error


def _load(
    server: Database, file: Path, command: Sequence[str], folder: Path, signals: Signals
) -> None:
    """Start the server on its empty data, let concurve-load fill it, and stop it with complete
    files."""
    port = free_port()
    with running(server, server.argv(file, folder, port, ()), folder) as process:
        session = wait_until_it_answers(server, port, process, signals)
        run_loader([server.url(port) if word == "URL" else word for word in command])
        session.settle()
        process.send_signal(server.settle_signal)
        end(process)


def run_loader(argv: Sequence[str]) -> None:
    """Run concurve-load to make data.

    Raises:
        AttendantError: it failed; with the last line of its output.
    """
    # Its reports must not reach the report channel of the trial.
    env = {key: value for key, value in os.environ.items() if key != REPORT_VARIABLE}
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=env
    )
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise AttendantError(
            f"concurve load could not make its data (exit code {done.returncode}): {last}. It was "
            f"asked: {shlex.join(argv)}"
        )


def _run(server: Database, argv: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **identity(server),
        )  # fmt: skip
    except OSError as error:
        raise AttendantError(f"{argv[0]} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise AttendantError(f"{argv[0]} failed with {done.returncode}; its output is above")
