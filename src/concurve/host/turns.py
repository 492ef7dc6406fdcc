"""Whose turn it is: those that wait for the machine have it in the order in which they came.

Each locks one byte of a file beside the measurement lock: the byte behind the last one that is
locked. The kernel drops the lock with its process, so a waiter that is killed leaves nothing; and
nothing is written into the file, so nothing that another user wrote is believed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Callable, Iterator

from concurve.host.lock import lock_path, open_for_all

#: ``struct flock``: kind, whence, first byte, number of bytes (0: all that follow), process.
_RANGE = struct.Struct("@hhqqi4x")

#: As many places are tried where others that come at the same time take the same one.
_TRIES = 100


@contextlib.contextmanager
def in_line() -> Iterator[Callable[[], int]]:
    """Stand in line for the machine. Gives what counts those that came before and wait yet.

    Where the file cannot be made or locked, there is no order, and nobody is before anybody.
    """
    with contextlib.ExitStack() as opened:
        descriptor = None
        with contextlib.suppress(OSError):
            descriptor = open_for_all(lock_path().with_name(f"{lock_path().name}.line"))
            opened.callback(os.close, descriptor)
        place = 0 if descriptor is None else _taken_place(descriptor)
        yield lambda: 0 if descriptor is None else len(_locked(descriptor, 0, place))


def _taken_place(descriptor: int) -> int:
    """Lock the byte behind the last that is locked: its number, or 0 where that is refused."""
    place = 0
    with contextlib.suppress(OSError, struct.error):
        for _ in range(_TRIES):
            place = 1 + max(_locked(descriptor, place, None), default=place)
            with contextlib.suppress(BlockingIOError):
                _ask(descriptor, fcntl.F_OFD_SETLK, place, 1)
                return place
    return 0


def _locked(descriptor: int, first: int, end: int | None) -> list[int]:
    """The bytes from ``first`` on and before ``end`` that others have locked; of a range, which no
    waiter of ours locks, its last byte."""
    found: list[int] = []
    ranges = [(first, end)]
    while ranges:
        low, high = ranges.pop()
        if high is not None and low >= high:
            continue
        length = 0 if high is None else high - low
        try:
            kind, _, start, count, _ = _ask(descriptor, fcntl.F_OFD_GETLK, low, length)
        except OSError:
            continue
        if kind == fcntl.F_UNLCK:
            continue
        # The kernel names one of those that are in the way, and not the first: look on both sides.
        ranges.append((low, start))
        if count:
            found.append(start + count - 1)
            ranges.append((start + count, high))
    return found


def _ask(descriptor: int, what: int, first: int, count: int) -> tuple[int, int, int, int, int]:
    """Lock a range of the file, or ask who has locked a part of it."""
    asked = _RANGE.pack(fcntl.F_WRLCK, os.SEEK_SET, first, count, 0)
    kind, whence, start, length, pid = _RANGE.unpack(fcntl.fcntl(descriptor, what, asked))
    return kind, whence, start, length, pid
