"""Where an ordinary user keeps files: by the variables of the XDG Base Directory Specification,
else in the home folder, which a user of a container or of a service may lack."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path | None:
    """``XDG_DATA_HOME``, else ``~/.local/share``; ``None`` without a home folder."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path | None:
    """``XDG_CACHE_HOME``, else ``~/.cache``; ``None`` without a home folder."""
    return _folder("XDG_CACHE_HOME", ".cache")


def no_home() -> str:
    """Says that there is no home folder."""
    return f"the user with the number {os.getuid()} has no home folder"


def _folder(variable: str, beneath_home: str) -> Path | None:
    named = os.environ.get(variable)
    if named:
        return Path(named)
    try:
        return Path.home() / beneath_home
    except RuntimeError:
        return None
