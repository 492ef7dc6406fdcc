"""Other processes by their numbers, which the kernel gives to others once they have ended."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

#: Of the number of a process's clock: the CPU time of all of its threads, at the resolution of the
#: scheduler (``CPUCLOCK_SCHED`` of the kernel).
_ALL_THREADS = 2


def cpu_ns(pid: int) -> int:
    """The CPU time so far of a process, by the clock that the kernel has of it
    (clock_getcpuclockid(3)): what stands in ``/proc`` is counted in ticks.

    Raises:
        OSError: it has ended.
    """
    return time.clock_gettime_ns((~pid << 3) | _ALL_THREADS)


def has_variable(folder: Path, assignment: bytes) -> bool:
    """Has the process of this folder of ``/proc`` a variable with this value, in the environment
    that it was started with?

    Raises:
        OSError: it has ended, or is not ours.
    """
    return assignment in (folder / "environ").read_bytes().split(b"\0")


def signal_if(pid: int, number: signal.Signals, is_meant: Callable[[], bool]) -> bool:
    """Send a signal to a process, if the one that has the number is meant. Whether it was sent.

    Raises:
        OSError: it has ended, or may not be signalled.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        if is_meant():  # an older kernel has no handles
            os.kill(pid, number)
            return True
        return False
    try:
        # Asked now: the handle stands for one process, whoever gets its number from here on.
        if not is_meant():
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    finally:
        os.close(handle)
