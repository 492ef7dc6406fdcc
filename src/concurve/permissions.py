"""The permissions of the files that we write: for their owner alone, unless ``CONCURVE_FILE_MODE``
says otherwise. ``instrument/files`` does the same for the programs in Rust."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

from concurve.errors import ConcurveError

#: Names other permissions, in octal as ``chmod`` takes them: ``640``.
VARIABLE = "CONCURVE_FILE_MODE"

_OWNER_ALONE = 0o600
_ALL = 0o666


def file_mode() -> int:
    """The permissions of files that are written.

    Raises:
        ConcurveError: the variable has something else than permissions of a file that its owner
            may read and write.
    """
    given = os.environ.get(VARIABLE)
    if given is None:
        return _OWNER_ALONE
    mode = int(given, 8) if re.fullmatch(r"[0-7]{3,4}", given, re.ASCII) else 0
    if mode & _OWNER_ALONE != _OWNER_ALONE or mode & ~_ALL:
        raise ConcurveError(
            f"{VARIABLE}={given}: no permissions that let the owner read and write a file",
            f"{VARIABLE}=640, or none: files are for their owner alone then",
        )
    return mode


def folder_mode() -> int:
    """The permissions of new folders: who may read a file may enter its folder.

    Raises:
        ConcurveError: as :func:`file_mode`.
    """
    mode = file_mode()
    return mode | 0o100 | (mode & 0o044) >> 2


def keep_private(path: Path) -> None:
    """Give a file the permissions, if it is one of this user. Where the system refuses it, it stays
    as it is.

    Raises:
        ConcurveError: as :func:`file_mode`.
    """
    mode = file_mode()
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            status = os.fstat(file)
            is_own = status.st_uid == os.geteuid()
            if is_own and stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) != mode:
                # O_PATH opens no device and waits for no pipe; chmod takes it by this name.
                Path(f"/proc/self/fd/{file}").chmod(mode)
        finally:
            os.close(file)
