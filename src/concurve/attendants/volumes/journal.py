"""The journal of a volume: the step that undoes each change, written before the change is made.

A file of lines of JSON, locked by the process whose volume it is. The lock ends with the process,
however it ends; the next attendant that finds a journal without a lock does its steps. A
second lock is inherited by the tools that the process starts (``losetup``, ``mount``), which may
outlive it: the steps are done once these tools have ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes.steps import Step

#: Names another folder for journals, as tests do.
VARIABLE = "CONCURVE_VOLUMES"
_FOLDER = Path("/run/concurve/volumes")
_ENDING = ".journal"
_TOOLS_ENDING = ".tools"

#: Seconds for a child between fork and exec to close the lock that it inherited.
_LETTING_GO_SECONDS = 0.3
#: Seconds for the tools of a killed process to end. Only a hang takes as long.
_TOOLS_SECONDS = 60.0
_LOOK_SECONDS = 0.005


def folder() -> Path:
    """The folder of journals. Like mounts and settings of devices, they do not survive a reboot."""
    return Path(os.environ.get(VARIABLE) or _FOLDER)


class _Done(msgspec.Struct, frozen=True, tag="done"):
    """The step of this number, counted from 0, has been done."""

    step: int


class Journal:
    """The steps that undo the changes of the machine."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file
        self._steps = _left(path)

    def intend(self, step: Step) -> None:
        """Write down the step that undoes the next change."""
        self._write(step)
        self._steps[len(self._steps)] = step

    def take_back(self) -> None:
        """Undo all changes, the last one first, and end the journal.

        If a step fails, the others are done all the same, and the failed step stays in the journal.

        Raises:
            AttendantError: some steps failed; the next start tries again.
        """
        said = ""
        for number, step in reversed(self._steps.items()):
            try:
                step.do()
                self._write(_Done(number))
            except (OSError, AttendantError) as error:
                said = said or str(error)
        if said:
            raise AttendantError(
                f"some changes could not be undone: {said}; the next start tries again "
                f"({self._path} says what is left)"
            )
        self._path.unlink()
        self._path.with_suffix(_TOOLS_ENDING).unlink(missing_ok=True)

    def _write(self, line: Step | _Done) -> None:
        os.write(self._file, msgspec.json.encode(line) + b"\n")
        os.fsync(self._file)


@contextlib.contextmanager
def new_journal() -> Iterator[Journal]:
    """A journal of this process; at the end all changes are undone.

    Raises:
        AttendantError: some changes could not be undone.
    """
    folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    # Under another name until it is locked: otherwise another attendant could see it as abandoned.
    file, name = tempfile.mkstemp(dir=folder())
    fcntl.flock(file, fcntl.LOCK_EX)
    path = Path(name).with_suffix(_ENDING)
    tools = _lock_for_tools(path)
    Path(name).rename(path)
    journal = Journal(path, file)
    try:
        yield journal
    finally:
        try:
            journal.take_back()
        finally:
            os.close(tools)
            os.close(file)


def repair() -> int:
    """Undo the changes of killed processes; return the number of these processes.

    Raises:
        AttendantError: some changes could not be undone.
    """
    repaired = 0
    for path in sorted(folder().glob(f"*{_ENDING}")) if os.geteuid() == 0 else ():
        file = _lock(path, os.O_RDWR | os.O_APPEND, _LETTING_GO_SECONDS)
        if file is None:
            continue
        try:
            tools = _lock_for_tools(path)
            try:
                _cut(path, file)
                Journal(path, file).take_back()
                repaired += 1
            finally:
                os.close(tools)
        except FileNotFoundError:
            # Another process has removed it before it was locked.
            path.with_suffix(_TOOLS_ENDING).unlink(missing_ok=True)
        finally:
            os.close(file)
    return repaired


def _lock_for_tools(journal: Path) -> int:
    """Take the lock that tools inherit, after the tools of a killed process have ended."""
    tools = _lock(journal.with_suffix(_TOOLS_ENDING), os.O_RDWR | os.O_CREAT, _TOOLS_SECONDS)
    if tools is None:
        raise AttendantError(f"a tool that a killed run has started is still running ({journal})")
    os.set_inheritable(tools, True)
    return tools


def _lock(path: Path, flags: int, seconds: float) -> int | None:
    """A locked descriptor; ``None`` if there is no such file, or another process keeps the lock."""
    try:
        file = os.open(path, flags | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(file)
                return None
            time.sleep(_LOOK_SECONDS)


def _cut(path: Path, file: int) -> None:
    """Remove an incomplete last line: its change was never made."""
    os.ftruncate(file, path.read_bytes().rfind(b"\n") + 1)


def _left(path: Path) -> dict[int, Step]:
    """Steps that are still to be done, by their numbers."""
    steps: dict[int, Step] = {}
    count = 0
    for text in path.read_bytes().splitlines():
        line = msgspec.json.decode(text, type=Step | _Done)
        if isinstance(line, _Done):
            del steps[line.step]
        else:
            steps[count] = line
            count += 1
    return steps
