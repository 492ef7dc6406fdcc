"""Processes that would outlive whom they work for: those that are to end with their parent; those
that carry a mark in their environment, which every descendant inherits that is not given another
environment; and those that a subreaper has to wait for, whatever they did to leave."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from concurve.host.processes import has_variable, signal_if

_PROC = Path("/proc")

#: ``linux/prctl.h``: the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1

#: The process becomes the parent of its descendants that have lost theirs.
_PR_SET_CHILD_SUBREAPER = 36

_LIBC = ctypes.CDLL(None)

#: Processes that are killed may have begun others meanwhile: looked again so often.
_PASSES = 20

#: Seconds between two looks at children, and so long they are waited for: one that another user
#: owns, or that the disk holds, does not end by a signal of ours.
_LOOK_SECONDS = 0.01
_CHILDREN_SECONDS = 10.0


def ending_with_parent(number: signal.Signals) -> Callable[[], None]:
    """For ``preexec_fn``, in a program of one thread: the process gets the signal when that thread
    ends, however it does."""
    parent = os.getpid()

    def ask() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it has ended before that
            os._exit(1)

    return ask


def become_subreaper() -> None:
    """Become the parent of all descendants whose parents end: none of them gets away, whatever
    session or environment it has. A program that this process becomes by ``exec`` stays it."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_for_children(seconds: float) -> bool:
    """Take the end of each child of the first thread; ``True`` if there is none within a time."""
    until = time.monotonic() + seconds
    while children := _children():
        for pid in children:
            with contextlib.suppress(ChildProcessError):  # somebody else has taken its end
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() >= until:
            return not _children()
        time.sleep(_LOOK_SECONDS)
    return True


def end_children() -> None:
    """Kill every child of the first thread, and what becomes its child by that: of a subreaper, all
    that they have started. Children of other threads are left alone, where the kernel tells them
    apart (``/proc/PID/task/TID/children``)."""
    until = time.monotonic() + _CHILDREN_SECONDS
    while (children := _children()) and time.monotonic() < until:
        for pid in children:  # each is ours until its end is taken, so the number is no other's
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        wait_for_children(_LOOK_SECONDS)


def _children() -> list[int]:
    """The children of the first thread of this process, which also gets orphans."""
    own = os.getpid()
    try:
        return [int(pid) for pid in (_PROC / f"self/task/{own}/children").read_text().split()]
    except FileNotFoundError:  # a kernel without this file
        return [int(folder.name) for folder in _PROC.glob("[0-9]*") if _parent(folder) == own]


def _parent(folder: Path) -> int | None:
    """The parent of the process of this folder of ``/proc``; ``None`` if it has ended."""
    try:
        return int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def end_marked(variable: str, value: str) -> None:
    """Kill every process whose environment has this variable with this value."""
    for _ in range(_PASSES):
        if not signal_marked(variable, value, signal.SIGKILL):
            return


def signal_marked(variable: str, value: str, number: signal.Signals) -> int:
    """Send a signal to each process whose environment has this variable with this value; how many
    there were."""
    mark, sent = f"{variable}={value}".encode(), 0
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            if has_variable(folder, mark):
                pid = int(folder.name)
                sent += signal_if(pid, number, functools.partial(has_variable, folder, mark))
    return sent
