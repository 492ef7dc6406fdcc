"""Data that trials begin with: made once, kept, and copied for each trial, byte for byte.

Loading 100,000 accounts takes a server seconds; copying them takes 0.1 s. The originals are in
the user's cache (``XDG_CACHE_HOME``, else ``~/.cache``), in ``concurve/data``. Making a
new one removes those of the same content by other builds, and those not used for two weeks.
Each may be deleted at any time between runs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from concurve.attendants.attendant import AttendantError
from concurve.host.folders import cache_folder, no_home

KEPT_SECONDS = 14 * 86400


def restore(
    content: Sequence[str], makers: Sequence[Path], make: Callable[[Path], None], folder: Path
) -> None:
    """Fill the empty ``folder`` with the data that ``make`` produces.

    ``content`` and the programs ``makers`` identify the data: equal texts and builds give equal
    data. ``make`` is called only if there is no original yet; its result becomes the original.

    Raises:
        AttendantError: the data cannot be copied; an original that failed is removed.
    """
    original = originals() / f"{_digest(content)}-{_digest(map(_stamp, makers))}"
    if original.is_dir():
        os.utime(original)
        copy(original, folder)
        return
    make(folder)
    _keep(folder, original)


def originals() -> Path:
    """The folder of the originals.

    Raises:
        AttendantError: the user has no folder for them.
    """
    cache = cache_folder()
    if cache is None:
        raise AttendantError(f"no data can be kept: {no_home()}; XDG_CACHE_HOME names a place")
    return cache / "concurve" / "data"


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _stamp(file: Path) -> str:
    """The identity of a program file: another build may write other data."""
    found = file.resolve()
    status = found.stat()
    return f"{found} {status.st_size} {status.st_mtime_ns}"


def copy(source: Path, target: Path) -> None:
    """Copy the content of a folder into another, with owners and times; by reference if the file
    system supports it.

    Raises:
        AttendantError: no space, or no access; in the words of ``cp``.
    """
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", "--", f"{source}/.", str(target)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["cp said nothing"])[-1]
        raise AttendantError(
            f"its data cannot be copied to {target}: {last}; TMPDIR and XDG_CACHE_HOME name other "
            "places"
        )


def _keep(folder: Path, original: Path) -> None:
    """Keep the data completely or not at all; if another process was first, its data are equal."""
    _remove_outdated(original)
    try:
        original.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".new-", dir=original.parent))
    except OSError as error:
        raise AttendantError(
            f"no data can be kept in {original.parent}: {error.strerror}; XDG_CACHE_HOME names "
            "another place"
        ) from error
    try:
        copy(folder, made)
        if not original.exists():
            made.rename(original)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _remove_outdated(original: Path) -> None:
    content = original.name.partition("-")[0]
    for path in original.parent.glob("*") if original.parent.is_dir() else ():
        unused = path.stat().st_mtime < time.time() - KEPT_SECONDS
        if unused or path.name.startswith(f"{content}-"):
            shutil.rmtree(path, ignore_errors=True)
