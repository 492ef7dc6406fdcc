"""The working folder of a run: relative paths of its commands and hooks begin there."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from concurve.errors import HostError
from concurve.secrets import KNOWN

#: Variables that name files: what they mean does not change with the folder.
_PATHS = ("CONCURVE_LOCK", "CONCURVE_NATIVE", "CONCURVE_JAR")


def working_folder() -> str | None:
    """That of this process; ``None`` where it is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        return None


@contextlib.contextmanager
def inside(folder: str | None, what: str) -> Iterator[None]:
    """Work in the folder in which ``what`` began, and return to that of this process afterwards.
    Older runs do not say theirs: they go on where this process is.

    Raises:
        HostError: it is gone, or cannot be entered.
    """
    if folder is None:
        yield
        return
    there = KNOWN.reveal(folder)
    if there == working_folder():
        yield
        return
    before = os.open(".", os.O_PATH)
    named = {name: os.environ[name] for name in _PATHS if os.environ.get(name)}
    try:
        os.environ.update({name: str(Path(path).absolute()) for name, path in named.items()})
        try:
            os.chdir(there)
        except OSError as error:
            raise HostError(
                f"{what} began in the folder {folder}, which cannot be entered: {error.strerror}",
                f"make it again, with the files that the run reads there: mkdir -p "
                f"{shlex.quote(folder)}; or a new run",
            ) from error
        yield
    finally:
        os.environ.update(named)
        os.fchdir(before)
        os.close(before)
