"""The journal of a volume: what takes back each change, written before the change is made.

A file of lines of JSON, locked by the process whose volume it is. The lock ends with the process,
however it ends; whoever finds a journal without a lock takes back what stands in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from concurve.volumes.errors import VolumeError
from concurve.volumes.steps import Step

#: Another place for journals: tests have theirs.
VARIABLE = "CONCURVE_VOLUMES"
_FOLDER = Path("/run/concurve/volumes")
_ENDING = ".journal"


def folder() -> Path:
    """Where journals are. Like mounts and settings of devices, they do not outlive a restart of the
    machine."""
    return Path(os.environ.get(VARIABLE) or _FOLDER)


class _Done(msgspec.Struct, frozen=True, tag="done"):
    """The step of this number, counted from 0, has been done."""

    step: int


class Journal:
    """Steps that will take back what is done to the machine."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file
        self._steps = _left(path)

    def intend(self, step: Step) -> None:
        """Note how the change is taken back that is made next."""
        self._write(step)
        self._steps[len(self._steps)] = step

    def take_back(self) -> None:
        """Take back all changes, the last one first, and end the journal.

        A step that fails does not keep the others from being done; it stays in the journal.

        Raises:
            VolumeError: not all could be done; the next start tries again.
        """
        said = ""
        for number, step in reversed(self._steps.items()):
            try:
                step.do()
                self._write(_Done(number))
            except (OSError, VolumeError) as error:
                said = said or str(error)
        if said:
            raise VolumeError(
                f"not all could be taken back: {said}; the next start tries again "
                f"({self._path} says what is left)"
            )
        self._path.unlink()

    def _write(self, line: Step | _Done) -> None:
        os.write(self._file, msgspec.json.encode(line) + b"\n")
        os.fsync(self._file)


@contextlib.contextmanager
def new_journal() -> Iterator[Journal]:
    """A journal of this process; at the end all changes are taken back.

    Raises:
        VolumeError: what stands in it could not be taken back.
    """
    folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    # Under another name until it is locked: else somebody might take it for an abandoned one.
    file, name = tempfile.mkstemp(dir=folder())
    fcntl.flock(file, fcntl.LOCK_EX)
    path = Path(name).with_suffix(_ENDING)
    Path(name).rename(path)
    journal = Journal(path, file)
    try:
        yield journal
    finally:
        try:
            journal.take_back()
        finally:
            os.close(file)


def repair() -> int:
    """Take back what killed processes have left; how many of them there were.

    Raises:
        VolumeError: not all could be taken back.
    """
    repaired = 0
    for path in sorted(folder().glob(f"*{_ENDING}")) if os.geteuid() == 0 else ():
        file = _locked(path)
        if file is None:
            continue
        try:
            Journal(path, file).take_back()
            repaired += 1
        finally:
            os.close(file)
    return repaired


def _locked(path: Path) -> int | None:
    """The journal's descriptor, if its process has ended and nobody else repairs it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Somebody else may have ended it before it was locked; then its name is gone.
        text = path.read_bytes()
    except (BlockingIOError, FileNotFoundError):
        os.close(file)
        return None
    # A last line without its end stands for a change that was never made.
    os.ftruncate(file, text.rfind(b"\n") + 1)
    return file


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
