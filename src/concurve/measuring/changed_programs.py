"""Programs that are no longer those with which a run began."""

from __future__ import annotations

from collections.abc import Iterator
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
