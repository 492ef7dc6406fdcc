"""Files that a user names to be read. Some have no end, or no beginning: a device is refused, a
pipe or a terminal has some time to say something, and no content is longer than a bound.
``instrument/files`` does the same for the programs in Rust."""

from __future__ import annotations

import errno
import os
import select
import stat
from pathlib import Path

#: More than any study file, table of figures or of numbers.
BYTES_MAX = 64 << 20

#: How long a pipe or a terminal may say nothing.
PATIENCE_S = 30.0

#: The numbers of terminals among the kinds of devices (devices.txt of the kernel).
_TERMINALS = (4, 5, *range(136, 144))

_READ_BYTES = 1 << 20


def read_named(path: Path) -> bytes:
    """What a file that a user has named contains: also a pipe, as ``/dev/stdin`` and the shell's
    ``<(…)`` are.

    Raises:
        OSError: it cannot be read, is a folder, a device or a socket, is longer than
            :data:`BYTES_MAX`, or a pipe from which nothing comes; ``strerror`` says which.
    """
    _check_kind(path.stat())
    # Without waiting for the other end of a pipe, and without taking the terminal for one's own.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        return _read_all(descriptor)
    finally:
        os.close(descriptor)


def read_named_text(path: Path, encoding: str = "utf-8") -> str:
    """The same as text, whose lines end with ``\\n``.

    Raises:
        OSError: as :func:`read_named`.
        UnicodeDecodeError: it is no text in this encoding.
    """
    text = read_named(path).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _check_kind(status: os.stat_result) -> None:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISSOCK(mode):
        raise OSError(errno.ENXIO, "it is a socket: name a file or a pipe")
    is_terminal = stat.S_ISCHR(mode) and os.major(status.st_rdev) in _TERMINALS
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not is_terminal):
        raise OSError(errno.ENODEV, "it is a device: name a file or a pipe")


def _read_all(descriptor: int) -> bytes:
    waits = stat.S_ISFIFO(os.fstat(descriptor).st_mode) or os.isatty(descriptor)
    content = bytearray()
    while len(content) <= BYTES_MAX:
        if waits and not _is_readable(descriptor):
            raise TimeoutError(errno.ETIMEDOUT, f"nothing came from it for {PATIENCE_S:.0f} s")
        try:
            part = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:  # another reader was faster
            continue
        if not part:
            return bytes(content)
        content += part
    raise OSError(errno.EFBIG, f"it has more than {BYTES_MAX >> 20} MiB")


def _is_readable(descriptor: int) -> bool:
    """Whether something can be read, or the other end is closed, before it is too late."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(PATIENCE_S * 1000))
