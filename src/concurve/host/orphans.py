"""Processes that would outlive whom they work for: those that are to end with their parent,
and those that carry a mark in their environment, which every descendant inherits, also one whose
parents have ended."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
from collections.abc import Callable
from pathlib import Path

from concurve.host.processes import has_variable, signal_if

_PROC = Path("/proc")

#: ``linux/prctl.h``: the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)

#: Processes that are killed may have begun others meanwhile: looked again so often.
_PASSES = 20


def ending_with_parent(number: signal.Signals) -> Callable[[], None]:
    """For ``preexec_fn``, in a program of one thread: the process gets the signal when that thread
    ends, however it does."""
    parent = os.getpid()

    def ask() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it has ended before that
            os._exit(1)

    return ask


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
