"""The daemons that connect the hosts, as seen on one of them. ``python -m concurve.hosts.daemons
stop MARK`` ends those with a mark in their environment; others of their kind are left alone.
``folder PATH`` makes the folder in which they keep their sockets."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import stat
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from concurve.errors import HostError
from concurve.host.processes import has_variable, signal_if
from concurve.hosts.commands import MARK_VARIABLE

#: Seconds between SIGTERM and SIGKILL.
GRACE_SECONDS = 5.0

_LOOK_SECONDS = 0.05

_USAGE = "usage: python -m concurve.hosts.daemons stop MARK | folder PATH"

#: The fields of /proc/PID/stat after the name: user and system time in ticks.
_USER, _SYSTEM = 11, 12


def marked(mark: str, proc: Path = Path("/proc")) -> list[int]:
    """The processes with the mark in the environment that they were started with."""
    wanted = _assignment(mark)
    found = []
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            if has_variable(folder, wanted):
                found.append(int(folder.name))
    return sorted(found)


def _assignment(mark: str) -> bytes:
    return f"{MARK_VARIABLE}={mark}".encode()


def cpu_ns(pids: Sequence[int], proc: Path = Path("/proc")) -> int:
    """The CPU time so far of living processes; a resolution of ticks."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
            fields = stat.rpartition(")")[2].split()
            ticks += int(fields[_USER]) + int(fields[_SYSTEM])
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def stop(mark: str) -> int:
    """End the processes with a mark; how many there were."""
    pids = [pid for pid in marked(mark) if pid != os.getpid()]
    _signal(pids, signal.SIGTERM, mark)
    until = time.monotonic() + GRACE_SECONDS
    while (left := set(pids) & set(marked(mark))) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    _signal(sorted(left), signal.SIGKILL, mark)
    return len(pids)


def _signal(pids: Sequence[int], number: signal.Signals, mark: str) -> None:
    """Signal the processes that still have the mark."""
    for pid in pids:
        folder = Path("/proc", str(pid))
        with contextlib.suppress(OSError):
            signal_if(pid, number, functools.partial(has_variable, folder, _assignment(mark)))


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


def main(argv: Sequence[str] | None = None) -> int:
    """Stop what has a mark, or make a folder. Exit codes: 0 done, 1 the folder is not to be used, 2
    wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    if len(words) != 2 or words[0] not in ("stop", "folder") or not words[1]:
        print(_USAGE, file=sys.stderr)
        return 2
    if words[0] == "stop":
        print(f"{stop(words[1])} processes ended")
        return 0
    try:
        make_folder(Path(words[1]))
    except HostError as error:
        print(error.what, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
