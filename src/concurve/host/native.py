"""The only module that knows where the compiled programs and the jars are."""

from __future__ import annotations

import functools
import os
import shutil
import sysconfig
from pathlib import Path

from concurve.errors import HostError

RUNNER = "concurve-trial"

_PACKAGE = Path(__file__).resolve().parents[1]

#: Where ``make build`` leaves the jars in a checkout; an installed package has no such place.
_BUILT_JARS = _PACKAGE.parents[1] / "subjects" / "mandelbrot-java" / "target"


def binary(name: str) -> Path:
    """Path of one of our compiled programs.

    Looked for in ``CONCURVE_NATIVE`` (a folder), then in this environment's scripts folder, then
    on ``PATH``.

    Raises:
        HostError: found nowhere; the message lists the places.
    """
    folders = [
        *filter(None, [os.environ.get("CONCURVE_NATIVE")]),
        _scripts(),
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
        "make build in a checkout, or pip install the wheel of concurve-native",
    )


@functools.cache
def _scripts() -> str:
    """The scripts folder of this environment, which takes Python long to say."""
    return sysconfig.get_path("scripts")


def runner() -> Path:
    """The trial runner."""
    return binary(RUNNER)


def jar(name: str) -> Path:
    """Path of one of our jars.

    ``CONCURVE_JAR`` is the file itself; else it is looked for in ``CONCURVE_NATIVE`` (a folder),
    beside the installed package, and where ``make build`` leaves it in a checkout.

    Raises:
        HostError: found nowhere; the message lists the places.
    """
    named, folder = os.environ.get("CONCURVE_JAR"), os.environ.get("CONCURVE_NATIVE")
    places = [
        *([Path(named)] if named else []),
        *([Path(folder) / name] if folder else []),
        _PACKAGE / "jars" / name,
        *([_BUILT_JARS / name] if _BUILT_JARS.parent.is_dir() else []),
    ]
    for place in places[:1] if named else places:
        if place.is_file():
            return place
    looked = ", ".join(map(str, places[:1] if named else places))
    raise HostError(
        f"the jar {name} is not built (looked for {looked})",
        "apt-get install default-jdk-headless maven, then make build in a checkout; or "
        "CONCURVE_JAR=FILE",
    )
