"""The packaged studies."""

from __future__ import annotations

import difflib
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from concurve.errors import StudyError
from concurve.study import Study
from concurve.study_file import load_study


class Entry(NamedTuple):
    """A packaged study and its folder."""

    name: str
    folder: Path


def entries() -> list[Entry]:
    """All packaged studies, by name."""
    root = Path(str(resources.files("concurve") / "studies"))
    return [
        Entry(folder.name, folder)
        for folder in sorted(root.iterdir())
        if (folder / "study.toml").is_file()
    ]


def find_study(name: str, cpus: int) -> Study:
    """A packaged study by name, or one from a ``.toml`` file.

    Raises:
        StudyError: no such study, or one that cannot be run.
    """
    if name.endswith(".toml") or "/" in name:
        return load_study(Path(name), cpus)
    known = {entry.name: entry.folder for entry in entries()}
    if name not in known:
        near = difflib.get_close_matches(name, list(known), n=1)
        raise StudyError(
            f"no packaged study {name!r}",
            f"did you mean {near[0]!r}?"
            if near
            else f"one of {', '.join(known)}, or the path of a .toml file",
        )
    return load_study(known[name] / "study.toml", cpus)
