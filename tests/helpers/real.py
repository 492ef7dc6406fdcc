"""The laboratory as its users have it: real processes, found again by a mark of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from concurve.errors import HostError
from concurve.host import native
from tests.helpers import forked

#: The command line, beside the Python that runs the tests.
CONCURVE = str(Path(sys.executable).parent / "concurve")

#: Starts a program in Python, which follows, without the site packages: in a third of the time.
PYTHON = (sys.executable, "-S", "-E", "-c")


def program(name: str) -> str:
    """Path of one of our compiled programs; its mere name where it is not built."""
    try:
        return str(native.binary(name))
    except HostError:
        return name


TARGETS = program("concurve-targets")

#: Every process of a laboratory started here inherits it.
MARK = "CONCURVE_TEST_MARK"

#: Variables of the caller's environment that would change the output; and one by which each process
#: would compile all that it imports, in three times the CPU time.
STEERING = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CONCURVE_REPORT",
            "PYTHONDONTWRITEBYTECODE")  # fmt: skip

#: Seconds for whatever is sure to come. Only a hang takes as long, on the busiest machine too.
PATIENCE = 300.0

#: Seconds for the output of a process that has ended: a child of it may still hold the pipe.
OUTPUT_SECONDS = 10.0


def let_others_through(folder: Path) -> None:
    """Make a private folder of pytest accessible for other users."""
    for parent in folder.parents:
        if Path(tempfile.gettempdir()) in parent.parents:
            parent.chmod(parent.stat().st_mode | 0o011)


def missing() -> str | None:
    """Why the real laboratory cannot be started here, or ``None``."""
    for needed in (CONCURVE, program("concurve-trial"), TARGETS):
        if shutil.which(needed) is None:
            return f"{needed} is not built: make build"
    return None


class Lab:
    """A laboratory with a store, a lock and a working folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "concurve.db"
        self.mark = uuid.uuid4().hex
        self._started: Process | None = None

    def environment(self, **more: str) -> dict[str, str]:
        own = {
            "CONCURVE_DB": str(self.db),
            "CONCURVE_LOCK": str(self.folder / "lock"),
            MARK: self.mark,
        }
        plain = {k: v for k, v in os.environ.items() if k not in STEERING}
        return {**plain, "COLUMNS": "80", **own, **more}

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start ``concurve`` without waiting for it."""
        process = subprocess.Popen(
            [CONCURVE, *arguments],
            env=self.environment(**environment),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started = process
        return process

    def fork(
        self, *arguments: str, stdout: int = subprocess.PIPE, closed: Sequence[int] = ()
    ) -> forked.Process:
        """As :meth:`start`, in a process that need not import it. It does not carry our mark, what
        it starts does. ``closed`` are the numbers of standard streams."""
        process = self._forked(arguments, {}, stdout, closed)
        self._started = process
        return process

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ``concurve`` to its end, in a process that need not import it."""
        return self._forked(arguments, environment).completed()

    def run_signalled(
        self, seconds: float, number: signal.Signals, *arguments: str
    ) -> subprocess.CompletedProcess[str]:
        """The same, with a signal so many seconds after its start, unless it has ended by then."""
        process = self.fork(*arguments)
        process.wait(seconds)
        process.send_signal(number)
        return process.completed()

    def _forked(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdout: int = subprocess.PIPE,
        closed: Sequence[int] = (),
    ) -> forked.Process:
        return forked.start(
            CONCURVE,
            arguments,
            env=self.environment(**environment),
            cwd=self.folder,
            stdout=stdout,
            closed=closed,
            timeout=PATIENCE,
        )

    def alive(self) -> dict[int, str]:
        """Command lines of the living processes that carry our mark."""
        mark, found = f"{MARK}={self.mark}".encode(), {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(folder.name)] = line.decode(errors="replace").strip()
            except OSError:
                continue  # it has ended, or is not ours
        return found

    def wait_until_alone(self, seconds: float = 60.0) -> dict[int, str]:
        """The processes that are still alive after this time; empty as soon as there is none."""
        deadline = time.monotonic() + seconds
        while (left := self.alive()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return left

    def end(self) -> None:
        """End the remaining processes, as after a failed test."""
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_for_process(self, command: str) -> None:
        """Wait until a process of ours has this command line: of the command that was started last
        without waiting for it."""
        what = f"the process {command!r}"
        wait_until(lambda: command in self.alive().values(), what, of=self._started)


class Process(Protocol):
    """A process that brings about what is waited for."""

    def poll(self) -> int | None: ...

    def communicate(self) -> tuple[Any, Any]: ...


def with_words(words: str) -> list[int]:
    """The processes of this machine with these words in their command lines, whatever else they
    have: what has given its environment away has no mark."""
    found, own = [], os.getpid()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended
        if words in line and int(folder.name) != own:
            found.append(int(folder.name))
    return found


def wait_until(happened: Callable[[], bool], what: str, of: Process | None = None) -> None:
    """Wait for what is sure to come; not any longer once the process has ended ``of`` which it is.

    Raises:
        AssertionError: it does not come. With what the process said, if it has ended.
    """
    deadline = time.monotonic() + PATIENCE
    while not happened():
        code = None if of is None else of.poll()
        if of is not None and code is not None and not happened():
            raise AssertionError(f"{what} does not come: ended with {code}\n{_said_by(of)}")
        assert time.monotonic() < deadline, f"{what} did not come in {PATIENCE:.0f} s"
        time.sleep(0.02)


def first_line(process: subprocess.Popen[str]) -> str:
    """The line by which a process says that it is ready, without its end.

    Raises:
        AssertionError: it has closed its output without one. With what it said.
    """
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(OUTPUT_SECONDS)
        said = _said_by(process)
        raise AssertionError(f"it printed no line: ended with {process.poll()}\n{said}")
    return line.strip()


def _said_by(process: Process) -> str:
    """What an ended process has written to pipes, as far as nobody else has read it, and no child
    of it holds them open."""
    try:
        if isinstance(process, subprocess.Popen):
            said = process.communicate(timeout=OUTPUT_SECONDS)
        else:
            said = process.communicate()
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        return f"(its output cannot be read: {error})"
    parts = [part.decode(errors="replace") if isinstance(part, bytes) else part for part in said]
    return "\n".join(filter(None, parts))


def stop(pid: int) -> None:
    """Stop a process. The signal takes effect some time after it was sent: waits until each thread
    has stopped."""

    def has_stopped() -> bool:
        stats = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/stat")]
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

    os.kill(pid, signal.SIGSTOP)
    wait_until(has_stopped, f"the stop of process {pid}")
