"""Where in a source file something stands, in short."""

from __future__ import annotations

from pathlib import PurePath

#: Folders of libraries: a file in one of them may be called as one of the program is.
_LIBRARIES = (
    "/lib/python", "/site-packages/", "/dist-packages/", "/go/src/", "/pkg/mod/", "/rustc/",
    "/registry/src/", "/node_modules/",
)  # fmt: skip


def place_of(file: str | None, line: int | None) -> str:
    """``pool.py:24`` of a file of the program; of a library with its folder, as in
    ``multiprocessing/pool.py:531``. Empty where the line is not known."""
    if not file or not line:
        return ""
    path = PurePath(file)
    is_of_library = any(folder in file for folder in _LIBRARIES)
    name = "/".join(path.parts[-2:]) if is_of_library else path.name
    return f"{name}:{line}"
