"""The journal of a volume: the step that undoes each change, written before the change is made.

A file of lines of JSON, each with its checksum, locked by the process whose volume it is. The lock
ends with the process, however it ends; the next attendant that finds a journal without a lock does
its steps. A second lock is inherited by the tools that the process starts (``losetup``, ``mount``),
which may outlive it: the steps are done once these tools have ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks
from concurve.attendants.volumes.steps import PREFIX, Detach, Remove, Step, Tell, Unmap, silent

#: Names another folder for journals, as tests do.
VARIABLE = "CONCURVE_VOLUMES"
_FOLDER = Path("/run/concurve/volumes")
_ENDING = ".journal"

#: What a damaged line raises.
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)

#: What stands between a line and its checksum.
_CHECKSUM = b" #"
_TOOLS_ENDING = ".tools"

#: Seconds for a child between fork and exec to close the lock that it inherited.
_LETTING_GO_SECONDS = 0.3
#: Seconds for the tools of a killed process to end. Only a hang takes as long.
_TOOLS_SECONDS = 60.0
#: What takes longer is told.
_TELL_SECONDS = 1.0
_LOOK_SECONDS = 0.005


def folder() -> Path:
    """The folder of journals. Like mounts and settings of devices, they do not survive a reboot."""
    return Path(os.environ.get(VARIABLE) or _FOLDER)


class DamagedError(AttendantError):
    """A journal that cannot be read."""

    remedy = (
        "undo by hand what its other lines name (umount, dmsetup remove, losetup --detach), "
        "then delete the file"
    )


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

    def take_back(self, tell: Tell = silent) -> None:
        """Undo all changes, the last one first, and end the journal; ``tell`` says what is waited
        for.

        If a step fails, the others are done all the same, and the failed step stays in the journal.

        Raises:
            AttendantError: some steps failed; the next start tries again.
        """
        said = ""
        for number, step in reversed(self._steps.items()):
            try:
                step.do(tell)
                self._write(_Done(number))
            except (OSError, ValueError, AttendantError) as error:
                said = said or str(error)
        if said:
            raise AttendantError(
                f"some changes could not be undone: {said}; the next start tries again "
                f"({self._path} says what is left)"
            )
        self._path.unlink()
        self._path.with_suffix(_TOOLS_ENDING).unlink(missing_ok=True)

    def _write(self, line: Step | _Done) -> None:
        text = msgspec.json.encode(line)
        os.write(self._file, b"%s%s%08x\n" % (text, _CHECKSUM, zlib.crc32(text)))
        os.fsync(self._file)


@contextlib.contextmanager
def new_journal(tell: Tell = silent) -> Iterator[Journal]:
    """A journal of this process; at the end all changes are undone. ``tell`` says what is waited
    for.

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
            journal.take_back(tell)
        finally:
            os.close(tools)
            os.close(file)


class Left(NamedTuple):
    """What a killed process has left: its journal, if there is one, and the steps that undo it, in
    their order; or why they are not known."""

    path: Path | None
    steps: list[Step]
    damage: str = ""


def repair(tell: Tell = silent) -> int:
    """Undo the changes of killed processes; return the number of these processes. ``tell`` says
    what is waited for.

    Raises:
        AttendantError: some changes could not be undone.
    """
    repaired = 0
    for path in _journals():
        file = _lock(path, os.O_RDWR | os.O_APPEND, _LETTING_GO_SECONDS)
        if file is None:
            continue
        try:
            tools = _lock_for_tools(path, tell)
            try:
                _cut(path, file)
                Journal(path, file).take_back(tell)
                repaired += 1
            finally:
                os.close(tools)
        except FileNotFoundError:
            # Another process has removed it before it was locked.
            path.with_suffix(_TOOLS_ENDING).unlink(missing_ok=True)
        finally:
            os.close(file)
    return repaired


def left() -> list[Left]:
    """What killed processes have left, without waiting for anything and without undoing it: root
    alone sees it."""
    found = []
    for path in _journals():
        file = _lock(path, os.O_RDWR | os.O_APPEND, 0.0)
        if file is None:
            continue
        try:
            with contextlib.suppress(FileNotFoundError):
                found.append(_left_by(path))
        finally:
            os.close(file)
    return found


def _left_by(path: Path) -> Left:
    """What the journal of a killed process says."""
    try:
        return Left(path, list(reversed(_left(path).values())))
    except DamagedError as error:
        return Left(path, [], str(error))


def without_journal() -> list[Left]:
    """Volumes of processes that have ended, and that no journal mentions: the journal is lost, or
    is in another folder."""
    if os.geteuid() != 0:
        return []
    mentioned = {text for path in _journals() for text in _texts(path)}
    steps: dict[str, list[Step]] = {}
    for name in blocks.mapped_devices():
        if name not in mentioned:
            steps.setdefault(_process_of(name), []).append(Unmap(name))
    files = [device.backing for device in blocks.loops()]
    for file in dict.fromkeys(file for file in files if file):
        if str(file) not in mentioned:
            undone: list[Step] = [Detach(str(file)), Remove(str(file))]
            steps.setdefault(_process_of(file.name), []).extend(undone)
    return [
        Left(None, found)
        for process, found in steps.items()
        if process and not Path("/proc", process).exists()
    ]


def _process_of(name: str) -> str:
    """The process that has made what bears a name, by its number; empty if no attendant has."""
    process = name.removeprefix(PREFIX).partition("-")[0]
    return process if name.startswith(PREFIX) and process.isdigit() else ""


def _journals() -> list[Path]:
    """The journals, which belong to root."""
    if os.geteuid() != 0:
        return []
    return sorted(path for path in folder().glob(f"*{_ENDING}") if path.is_file())


def _texts(path: Path) -> Iterator[str]:
    """The paths that a journal mentions."""
    with contextlib.suppress(FileNotFoundError):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(*_UNREADABLE):
                found = msgspec.json.decode(
                    line.rpartition(_CHECKSUM)[0] or line, type=dict[str, Any]
                )
                yield from (str(value) for value in found.values() if isinstance(value, str))


def _lock_for_tools(journal: Path, tell: Tell = silent) -> int:
    """Take the lock that tools inherit, after the tools of a killed process have ended."""
    place = journal.with_suffix(_TOOLS_ENDING)
    tools = _lock(place, os.O_RDWR | os.O_CREAT, min(_TELL_SECONDS, _TOOLS_SECONDS))
    if tools is None and _TOOLS_SECONDS > _TELL_SECONDS:
        tell(
            "waiting for a tool that a killed run has started, at most "
            f"{_TOOLS_SECONDS:.0f} s ({journal})"
        )
        tools = _lock(place, os.O_RDWR | os.O_CREAT, _TOOLS_SECONDS)
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


def _decoded(text: bytes, where: str) -> Step | _Done:
    """A line.

    Raises:
        DamagedError: it is damaged. What it says is not done: it may name anything.
    """
    line, mark, checksum = text.rpartition(_CHECKSUM)
    try:
        if mark and checksum != b"%08x" % zlib.crc32(line):
            raise ValueError("its checksum is another one")
        # An older version has written no checksums.
        found: Step | _Done = msgspec.json.decode(line if mark else text, type=Step | _Done)
    except _UNREADABLE as error:
        raise DamagedError(
            f"{where}: it is damaged ({error}), so nothing of it is undone"
        ) from error
    return found


def _left(path: Path) -> dict[int, Step]:
    """Steps that are still to be done, by their numbers; an incomplete last line is none.

    Raises:
        DamagedError: it is damaged.
    """
    steps: dict[int, Step] = {}
    count = 0
    for number, text in enumerate(path.read_bytes().rpartition(b"\n")[0].split(b"\n"), 1):
        if not text and number == 1:
            break  # nothing was intended
        line = _decoded(text, f"the journal {path}, line {number}")
        if isinstance(line, _Done):
            steps.pop(line.step, None)
        else:
            steps[count] = line
            count += 1
    return steps
