"""The daemons that connect the hosts, as seen on one of them. ``python -m concurve.hosts.daemons
stop MARK`` ends those with a mark in their environment; others of their kind are left alone.
``folder PATH`` makes the folder in which they keep their sockets, ``private [NAME]...`` fails
where this machine has a public address, or a name stands for one here; ``files`` prints digests of
our own files, and ``busy MARK`` who measures by those with the mark."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from concurve.definition.inventory import PUBLIC_ADDRESS, PUBLIC_REMEDY
from concurve.errors import HostError
from concurve.host.addresses import public_addresses
from concurve.host.lock import measurement_under_way
from concurve.host.own_files import own_files
from concurve.host.processes import cpu_ns, has_variable, signal_if
from concurve.hosts.commands import MARK_VARIABLE
from concurve.hosts.names import check_private_names

#: Seconds between SIGTERM and SIGKILL.
GRACE_SECONDS = 5.0

_LOOK_SECONDS = 0.05

_USAGE = (
    "usage: python -m concurve.hosts.daemons stop MARK | folder PATH | private [NAME]... | files | "
    "busy MARK"
)

#: What is said of a full file system.
IS_FULL = "is full"

#: Ray's sockets, logs and object store are in its folder, and our agents and trials beside it.
FREE_BYTES_LEAST = 64 << 20

#: The fields of /proc/PID/stat after the name: the parent, and the moment of the start, which tells
#: two processes of one number apart.
_PARENT, _STARTED = 1, 19

#: Seconds until the daemons are looked for again, when a trial begins. What they start meanwhile
#: counts among the strangers of a trial, and is doubted like those.
LOOKED_FOR_SECONDS = 20.0

_PROC = Path("/proc")


def marked(mark: str, proc: Path = _PROC) -> dict[int, str]:
    """The processes with the mark in the environment that they were started with, and those that
    they started, with when each was: one that gives itself a title, as Ray's do, writes it over its
    environment."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    started: dict[int, str] = {}
    children: dict[int, list[int]] = {}
    with_mark = []
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):  # it has ended, or is not ours
            pid, fields = int(folder.name), _fields(folder)
            started[pid] = fields[_STARTED]
            children.setdefault(int(fields[_PARENT]), []).append(pid)
            if has_variable(folder, wanted):
                with_mark.append(pid)
    found: dict[int, str] = {}
    while with_mark:
        pid = with_mark.pop()
        if pid not in found:
            found[pid] = started[pid]
            with_mark += children.get(pid, [])
    return found


def _fields(folder: Path) -> list[str]:
    """The fields of a process's ``stat`` after its name.

    Raises:
        OSError: it has ended.
    """
    stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()


class CpuOfDaemons:
    """The CPU time of the processes with a mark and of those that they started, over one trial
    after the other. To look for them takes some 10 ms of CPU time, on a host that is being
    measured; so those are read that the last look found."""

    def __init__(self, mark: str, proc: Path = _PROC) -> None:
        self._mark = mark
        self._proc = proc
        self._found: dict[int, str] = {}
        self._looked_at = -math.inf
        self._begun: dict[int, int] = {}

    def begin(self) -> None:
        """Note what they have used until now."""
        now = time.monotonic()
        if now - self._looked_at >= LOOKED_FOR_SECONDS:
            self._found, self._looked_at = marked(self._mark, self._proc), now
        self._begun = self._each_ns()

    def used_ns(self) -> int | None:
        """What those have used since that still live; ``None`` if there were none to be read."""
        if not self._begun:
            return None
        used = (ns - self._begun[pid] for pid, ns in self._each_ns().items() if pid in self._begun)
        return sum(used)

    def _each_ns(self) -> dict[int, int]:
        """The CPU time so far of each one that lives."""
        found = {}
        for pid, started in self._found.items():
            with contextlib.suppress(OSError, IndexError):  # it has ended
                if _fields(self._proc / str(pid))[_STARTED] == started:
                    found[pid] = cpu_ns(pid)
        return found


def stop(mark: str) -> int:
    """End the processes with a mark and those that they started; how many there were."""
    found = marked(mark)
    found.pop(os.getpid(), None)
    for pid, started in found.items():
        _signal(pid, started, signal.SIGTERM)
    # One whose parent has ended is a descendant no more: each is asked for by itself.
    until = time.monotonic() + GRACE_SECONDS
    while (left := [it for it in found.items() if _lives(*it)]) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        # One that ends may have started another before it knew.
        for pid, started in marked(mark).items():
            if pid not in found and pid != os.getpid():
                found[pid] = started
                _signal(pid, started, signal.SIGTERM)
    for pid, started in left:
        _signal(pid, started, signal.SIGKILL)
    return len(found)


def _lives(pid: int, started: str) -> bool:
    """Does the process that was started then live, and is more than what its parent has to reap?"""
    try:
        fields = _fields(_PROC / str(pid))
    except OSError:
        return False
    return fields[_STARTED] == started and fields[0] not in ("Z", "X")


def _signal(pid: int, started: str, number: signal.Signals) -> None:
    """Signal a process, unless another one has its number now."""
    with contextlib.suppress(OSError):
        signal_if(pid, number, functools.partial(_lives, pid, started))


def make_folder(path: Path) -> None:
    """Make a folder for this user alone, or take one that is.

    Raises:
        HostError: it is another user's, or no folder.
    """
    try:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.fstat(folder)
            if status.st_uid != os.geteuid():
                raise HostError(f"{path} belongs to another user", "that user removes it")
            if stat.S_IMODE(status.st_mode) & 0o077:
                os.fchmod(folder, 0o700)
            check_free(path, os.fstatvfs(folder))
        finally:
            os.close(folder)
    except OSError as error:
        raise HostError(
            f"the folder {path} cannot be used: {error.strerror}", "what is there is removed"
        ) from error


def check_free(path: Path, file_system: os.statvfs_result) -> None:
    """Refuse a file system without room for what Ray and trials write.

    Raises:
        HostError: names the path, and how much is free.
    """
    free = file_system.f_bavail * file_system.f_frsize
    if free < FREE_BYTES_LEAST:
        raise HostError(
            f"the file system of {path} {IS_FULL}: {free >> 20} MiB are free",
            f"free {FREE_BYTES_LEAST >> 20} MiB there",
        )


def check_private(names: Sequence[str] = ()) -> None:
    """Refuse this machine if one of its own addresses is public, or if a name stands for one here.

    Raises:
        HostError: it is, or the kernel does not list them.
    """
    try:
        found = public_addresses()
    except OSError as error:
        raise HostError(
            f"its addresses are not known: {error.filename}: {error.strerror}", PUBLIC_REMEDY
        ) from error
    if found:
        raise HostError(f"{found[0]} {PUBLIC_ADDRESS}", PUBLIC_REMEDY)
    check_private_names(names)


def measured_by(mark: str) -> str:
    """Who measures here by what has the mark, in its own words; empty if nobody does."""
    who = measurement_under_way()
    pid = who.removeprefix("pid ").partition(",")[0]
    return who if pid.isdecimal() and int(pid) in marked(mark) else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the words ask for. Exit codes: 0 done, 1 the folder, or the machine, is not to be
    used, 2 wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    match words:
        case ["private", *names]:
            return _told(functools.partial(check_private, names))
        case ["files"]:
            return _told(_print_files)
        case ["busy", mark] if mark:
            print(measured_by(mark))
            return 0
        case ["stop", mark] if mark:
            count = stop(mark)
            print(f"stopped; {count} processes have ended" if count else "none of ours ran")
            return 0
        case ["folder", path] if path:
            return _told(functools.partial(make_folder, Path(path)))
    print(_USAGE, file=sys.stderr)
    return 2


def _print_files() -> None:
    for what, digest in own_files().items():
        print(f"{what} {digest}")


def _told(do: Callable[[], None]) -> int:
    """Do something, and say why it cannot be done."""
    try:
        do()
    except HostError as error:
        print(error.what, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
