"""The common part of attendants: name, errors, exit codes, and the signals that stop them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from concurve.wire.report_channel import ATTENDANT

#: The signals that stop an attendant.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class AttendantError(Exception):
    """The server or volume cannot be made, watched or removed; the text says why, and what to
    try."""


class StoppedError(Exception):
    """A stop signal came before the server or volume was ready."""


def attend(subject: str, work: Callable[[], None]) -> int:
    """Do an attendant's work; its exit code: 0 stopped, 1 failed, with the reason on standard
    error after the name of the ``subject``."""
    try:
        work()
    except StoppedError:
        return 0
    except (AttendantError, OSError) as error:
        print(f"{subject}: {error}", file=sys.stderr)
        return 1
    return 0


def name_thread() -> None:
    """Name the main thread, so that records distinguish the attendant from its server."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(ATTENDANT, encoding="utf-8")


def block_stop_signals() -> None:
    """Keep stop signals from interrupting what follows, in this process and in the tools that it
    starts. Call before anything is made."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def wait_for_stop() -> None:
    """Wait for a stop signal; they must be blocked."""
    signal.sigwait(STOP_SIGNALS)


class Signals:
    """SIGTERM, SIGINT and SIGCHLD as bytes on a descriptor, for an attendant that works while it
    waits: no signal is missed, and none interrupts a call."""

    def __init__(self) -> None:
        self._reads, writes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(writes)

    def stopped(self, seconds: float) -> bool:
        """Wait for a signal, at most ``seconds``; ``True`` if it is a stop signal."""
        if not select.select([self._reads], [], [], seconds)[0]:
            return False
        received = os.read(self._reads, 64)
        return any(number in received for number in STOP_SIGNALS)
