"""The mounted file systems that this process sees."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_MOUNTS = Path("/proc/self/mountinfo")


class Mount(NamedTuple):
    """A line of ``mountinfo``: its number, the device as ``major:minor``, the mount point, the file
    system type, and the source."""

    number: str
    device: str
    where: Path
    kind: str
    source: str


def parse_mounts(text: str) -> list[Mount]:
    """``/proc/PID/mountinfo`` (proc(5)): the separator `` - `` stands before type and source."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        where, source = Path(_unescaped(fields[4])), _unescaped(rest[1])
        found.append(Mount(fields[0], fields[2], where, rest[0], source))
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text)


def mounts() -> list[Mount]:
    """All mounts that this process sees."""
    return parse_mounts(_MOUNTS.read_text(encoding="utf-8", errors="replace"))


def mount_of(folder: Path) -> Mount | None:
    """The mount that a folder is in, by the number that the kernel gives for an open file."""
    opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        info = Path(f"/proc/self/fdinfo/{opened}").read_text(encoding="utf-8")
    finally:
        os.close(opened)
    found = re.search(r"^mnt_id:\s*(\d+)$", info, re.MULTILINE)
    return next((it for it in mounts() if found and it.number == found[1]), None)
