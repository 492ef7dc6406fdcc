"""The daemons that connect the hosts, as seen on one of them. ``python -m concurve.hosts.daemons
stop MARK`` ends those with a mark in their environment; others of their kind are left alone.
``folder PATH`` makes the folder in which they keep their sockets, and ``private`` fails where this
machine has a public address."""

from __future__ import annotations

import contextlib
import functools
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
from concurve.host.processes import has_variable, signal_if
from concurve.hosts.commands import MARK_VARIABLE

#: Seconds between SIGTERM and SIGKILL.
GRACE_SECONDS = 5.0

_LOOK_SECONDS = 0.05

_USAGE = "usage: python -m concurve.hosts.daemons stop MARK | folder PATH | private"

#: The fields of /proc/PID/stat after the name: the parent, user and system time in ticks, and the
#: moment of the start, which tells two processes of one number apart.
_PARENT, _USER, _SYSTEM, _STARTED = 1, 11, 12, 19

_PROC = Path("/proc")


def marked(mark: str, proc: Path = _PROC) -> list[int]:
    """The processes with the mark in the environment that they were started with, and those that
    they started: one that gives itself a title, as Ray's do, writes it over its environment."""
    return sorted(_family(mark, proc))


def _family(mark: str, proc: Path = _PROC) -> dict[int, str]:
    """The processes with the mark and their descendants, and when each was started."""
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


def cpu_ns(pids: Sequence[int], proc: Path = _PROC) -> int:
    """The CPU time so far of living processes; a resolution of ticks."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = _fields(proc / str(pid))
            ticks += int(fields[_USER]) + int(fields[_SYSTEM])
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def stop(mark: str) -> int:
    """End the processes with a mark and those that they started; how many there were."""
    found = _family(mark)
    found.pop(os.getpid(), None)
    for pid, started in found.items():
        _signal(pid, started, signal.SIGTERM)
    # One whose parent has ended is a descendant no more: each is asked for by itself.
    until = time.monotonic() + GRACE_SECONDS
    while (left := [it for it in found.items() if _lives(*it)]) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        # One that ends may have started another before it knew.
        for pid, started in _family(mark).items():
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
        finally:
            os.close(folder)
    except OSError as error:
        raise HostError(
            f"the folder {path} cannot be used: {error.strerror}", "what is there is removed"
        ) from error


def check_private() -> None:
    """Refuse this machine if one of its own addresses is public.

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


def main(argv: Sequence[str] | None = None) -> int:
    """Stop what has a mark, make a folder, or look at the addresses. Exit codes: 0 done, 1 the
    folder, or the machine, is not to be used, 2 wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["private"]:
        return _told(check_private)
    if len(words) != 2 or words[0] not in ("stop", "folder") or not words[1]:
        print(_USAGE, file=sys.stderr)
        return 2
    if words[0] == "stop":
        print(f"{stop(words[1])} processes ended")
        return 0
    return _told(functools.partial(make_folder, Path(words[1])))


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
