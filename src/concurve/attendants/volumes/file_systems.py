"""File systems that a volume may have, and what makes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from concurve.errors import HostError

_KNOWN = Path("/proc/filesystems")

#: Of our file systems: a device that has it may be formatted again. XFS takes 12 letters.
LABEL = "concurve"


class FileSystem(NamedTuple):
    """The tool that makes it, with its options, and Debian's package of that; its least size.

    Options have everything written at once that a new file system would else write later, in the
    middle of the load, and nothing discarded.
    """

    name: str
    maker: tuple[str, ...]
    package: str
    bytes_min: int

    def command(self, node: Path) -> tuple[str, ...]:
        """What makes it on a device."""
        return (*self.maker, "-L", LABEL, str(node))


_EAGER = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"

FILE_SYSTEMS = {
    kind.name: kind
    for kind in (
        FileSystem("ext4", ("mkfs.ext4", "-q", "-F", "-E", _EAGER), "e2fsprogs", 16 << 20),
        FileSystem("xfs", ("mkfs.xfs", "-q", "-f", "-K"), "xfsprogs", 300 << 20),
        FileSystem("btrfs", ("mkfs.btrfs", "-q", "-f", "-K"), "btrfs-progs", 128 << 20),
    )
}

#: What a volume has, unless it is said.
USUAL = FILE_SYSTEMS["ext4"]


def check(kind: FileSystem, where: str) -> None:
    """
    Raises:
        HostError: it cannot be made here, or the kernel cannot mount it.
    """
    if shutil.which(kind.maker[0]) is None:
        raise HostError(
            f"{where}: {kind.maker[0]} is not installed", f"apt-get install {kind.package}"
        )
    if not _is_known(kind.name):
        raise HostError(
            f"{where}: the kernel has no file system {kind.name}",
            "another one, or a kernel that has it",
        )


def _is_known(name: str) -> bool:
    """Whether the kernel has it, or a module of it that mounting would load."""
    if name in _KNOWN.read_text(encoding="ascii").split():
        return True
    if shutil.which("modprobe") is None:
        return False
    tried = subprocess.run(
        ["modprobe", "--dry-run", "--quiet", name],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0
