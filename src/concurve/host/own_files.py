"""The files of this laboratory: two hosts measure alike only if they have the same ones. Versions
do not tell: a checkout has the same before a change and after it."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

from concurve.errors import HostError
from concurve.host import native

#: What to do where hosts have unequal ones.
SAME_WHEELS = (
    "the same wheels of concurve and concurve-native on all hosts (docs/install.md), or the same "
    "checkout, with the programs of one build"
)

#: What the digest of the package's files is called.
PACKAGE = "the package of concurve"

_PACKAGE = Path(__file__).resolve().parents[1]

#: Compiled from sources that are files themselves.
_MADE = "__pycache__"


def own_files(package: Path = _PACKAGE, programs: Iterable[Path] | None = None) -> dict[str, str]:
    """A digest of the package's files, and one of the programs that are installed beside the trial
    runner, by what they are. Programs of another architecture are something else.

    Raises:
        HostError: the runner is not installed, or a file cannot be read.
    """
    beside = _programs() if programs is None else programs
    try:
        return {
            PACKAGE: _digest(_files(package), package),
            f"concurve-native for {platform.machine()}": _digest(sorted(beside), None),
        }
    except OSError as error:
        raise HostError(
            f"{error.filename}: {error.strerror}: it is compared with that of the other hosts",
            "read permission for it, as pip gives it",
        ) from error


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """What two hosts do not have alike: the package, or programs of one architecture."""
    if other.get(PACKAGE) != one[PACKAGE]:
        return PACKAGE
    return next((what for what in one if other.get(what, one[what]) != one[what]), None)


def _programs() -> list[Path]:
    runner = native.runner()
    # Beside programs that were just compiled the compiler leaves files of its own.
    return [
        path
        for path in runner.parent.glob("concurve-*")
        if path.is_file() and os.access(path, os.X_OK)
    ]


def _files(package: Path) -> list[Path]:
    found = []
    for folder, folders, names in os.walk(package):
        folders[:] = [name for name in folders if name != _MADE]
        found += [Path(folder) / name for name in names]
    return sorted(found)


def _digest(files: Iterable[Path], root: Path | None) -> str:
    """Of the names of files and what is in them."""
    digest = hashlib.sha256()
    for path in files:
        name = path.name if root is None else path.relative_to(root).as_posix()
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode(errors="surrogatepass"))
        digest.update(content)
    return digest.hexdigest()
