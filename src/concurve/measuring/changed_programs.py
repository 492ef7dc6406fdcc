"""Programs, and a study file, that are no longer those with which a run began."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from concurve.host.machine import describe_file
from concurve.store.run_head import RunHead


class Changed(NamedTuple):
    """A file that a role of a run executed, and that has another content now, or is gone."""

    path: str
    role: str
    is_gone: bool

    @property
    def name(self) -> str:
        """The file, and whose it is: ``FILE (role NAME)``."""
        return f"{self.path} (role {self.role})"

    def says(self, again: str) -> str:
        """What to say of it; ``again`` is the command of the run."""
        became = "is gone" if self.is_gone else "has changed"
        return (
            f"{self.name} {became} since the run began: its trials before and after are of "
            f"different programs; to measure one alone: {again}"
        )


def changed_programs(head: RunHead) -> Iterator[Changed]:
    """Each file that a role of the run executed and that has another content now, or is gone, so
    that the trials of two programs would stand in one run. Of a script only its interpreter is
    known, and of a role whose command is a parameter nothing is."""
    for role, facts in head.programs.items():
        if "attached" in facts or "host" in facts:
            continue  # the process is the same, whatever became of its file; a host has its own
        for known in (facts, facts.get("java", {})):
            if "sha256" not in known:
                continue
            now = describe_file(Path(known["path"]))
            if now.get("sha256") != known["sha256"]:
                yield Changed(known["path"], role, "sha256" not in now)


def changed_study_file(head: RunHead) -> str:
    """What to say where the study file that the command of a run names was written after the run
    began: a run goes on with what is stored. Empty where it was not, or where no file is known; it
    is looked for in the working folder."""
    file = _study_file(head.again)
    try:
        written = Path(file).stat().st_mtime if file else 0.0
    except OSError:
        return ""
    if written <= datetime.datetime.fromisoformat(head.started).timestamp():
        return ""
    return (
        f"{file} was written after this run began, which goes on with the study as it is stored; "
        f"a new run takes the file: {head.again}"
    )


def _study_file(again: str) -> str:
    """The file that a command line of ``concurve run`` names; empty where it names none."""
    try:
        words = shlex.split(again)
    except ValueError:
        return ""
    if words[:2] != ["concurve", "run"]:
        return ""
    found = (
        word
        for before, word in pairwise(words)
        if word.endswith(".toml") and not word.startswith("-") and before != "--hosts"
    )
    return next(found, "")
