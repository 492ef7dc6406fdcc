"""File systems that a volume may have, and what makes them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from concurve.attendants.volumes.modules import would_load
from concurve.errors import HostError

_KNOWN = Path("/proc/filesystems")

#: The label of our file systems: a device with it may be formatted again. XFS allows 12 characters.
LABEL = "concurve"


class FileSystem(NamedTuple):
    """A file system: the tool that makes it with its options, Debian's package of the tool, and the
    least size.

    The options make the tool write all tables at once, which the file system would otherwise write
    during the load, and discard nothing.
    """

    name: str
    maker: tuple[str, ...]
    package: str
    bytes_min: int

    def command(self, node: Path) -> tuple[str, ...]:
        """The command that makes it on a device."""
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

#: The default file system.
USUAL = FILE_SYSTEMS["ext4"]


def check(kind: FileSystem, where: str) -> None:
    """
    Raises:
        HostError: the tool is missing, or the kernel cannot mount the file system.
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
    """Does the kernel have the file system, or a module that mounting would load?"""
    return name in _KNOWN.read_text(encoding="ascii").split() or would_load(name)
