"""The only module that knows where the compiled programs are."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from concurve.errors import HostError

#: Packaged programs that a study may name with ``program = "…"``.
PROGRAMS = {
    "mandelbrot": "concurve-mandelbrot",
    "targets": "concurve-targets",
}

RUNNER = "concurve-trial"


def binary(name: str) -> Path:
    """Path of one of our compiled programs.

    Looked for in ``CONCURVE_NATIVE`` (a folder), then in this environment's scripts folder, then
    on ``PATH``.

    Raises:
        HostError: found nowhere; the message lists the places.
    """
    folders = [
        *filter(None, [os.environ.get("CONCURVE_NATIVE")]),
        sysconfig.get_path("scripts"),
    ]
    for folder in folders:
        candidate = Path(folder) / name
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    raise HostError(
        f"the program {name} is not installed (looked in {', '.join(folders)} and on PATH)",
        "make build in a checkout, or pip install concurve-native",
    )


def runner() -> Path:
    """The trial runner."""
    return binary(RUNNER)


def program(name: str, where: str) -> Path:
    """A packaged program by the name that studies use.

    Raises:
        HostError: unknown or not installed.
    """
    if name not in PROGRAMS:
        raise HostError(
            f"{where}: no packaged program {name!r}", f"one of {', '.join(sorted(PROGRAMS))}"
        )
    return binary(PROGRAMS[name])
