"""Programs, and a study file, that are no longer those with which a run began."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from concurve.host.machine import describe_file
from concurve.store.run_head import RunHead


def changed_programs(head: RunHead) -> Iterator[str]:
    """What to say of each file that a role of the run executed and that has another content now, or
    is gone, so that the trials of two programs would stand in one run. Of a script only its
    interpreter is known, and of a role whose command is a parameter nothing is."""
    for role, facts in head.programs.items():
        if "attached" in facts or "host" in facts:
            continue  # the process is the same, whatever became of its file; a host has its own
        for known in (facts, facts.get("java", {})):
            if "sha256" not in known:
                continue
            now = describe_file(Path(known["path"]))
            if now.get("sha256") == known["sha256"]:
                continue
            became = "has changed" if "sha256" in now else "is gone"
            yield (
                f"{known['path']} (role {role}) {became} since the run began: its trials before "
                f"and after are of different programs; to measure one alone: {head.again}"
            )


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
