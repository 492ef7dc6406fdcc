"""Block devices as the kernel shows them in ``/sys`` and ``/proc``: read only."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

from concurve.attendants.attendant import AttendantError
from concurve.host.mounts import mount_of, mounts

_BLOCK = Path("/sys/class/block")
_SWAPS = Path("/proc/swaps")
_PROC = Path("/proc")


def known_schedulers() -> tuple[str, ...]:
    """The I/O schedulers that the kernel offers for any device; sorted."""
    names: set[str] = set()
    for file in _BLOCK.glob("*/queue/scheduler"):
        names.update(file.read_text(encoding="ascii").replace("[", "").replace("]", "").split())
    return tuple(sorted(names))


def chosen(text: str) -> str:
    """The chosen one of ``none [mq-deadline] bfq``; the text itself if it is a single word."""
    match = re.search(r"\[(.+?)\]", text)
    return match[1] if match else text.strip()


class Device:
    """A block device by its name in ``/sys/class/block``: ``sda``, ``sda1``, ``loop0``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.node = Path("/dev") / name
        self._folder = _BLOCK / name

    @classmethod
    def at(cls, path: Path) -> Device:
        """The device of a device file.

        Raises:
            AttendantError: the path is no block device.
        """
        try:
            status = path.stat()
        except OSError as error:
            raise AttendantError(f"{path}: {error.strerror}") from error
        if not stat.S_ISBLK(status.st_mode):
            raise AttendantError(f"{path} is no block device")
        return cls.numbered(f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}")

    @classmethod
    def numbered(cls, number: str) -> Device:
        """The device of ``major:minor``.

        Raises:
            AttendantError: there is none, as for a file system on several devices or on none.
        """
        link = Path("/sys/dev/block") / number
        if not link.exists():
            raise AttendantError(f"there is no block device {number}")
        return cls(link.resolve().name)

    @classmethod
    def beneath(cls, folder: Path) -> Device:
        """The device that carries a folder's file system.

        Raises:
            AttendantError: no device does, or several do.
        """
        number = folder.stat().st_dev
        with contextlib.suppress(AttendantError):
            return cls.numbered(f"{os.major(number)}:{os.minor(number)}")
        # Btrfs and others have device numbers of their own; the source of the mount names the
        # device.
        own = mount_of(folder)
        if own is not None and own.source.startswith("/dev/"):
            return cls.at(Path(own.source))
        raise AttendantError(f"{folder} is on no block device of its own")

    @property
    def number(self) -> str:
        """``major:minor``."""
        return (self._folder / "dev").read_text(encoding="ascii").strip()

    @property
    def disk(self) -> Device:
        """The whole disk, which has the queue: the device itself unless it is a partition."""
        resolved = self._folder.resolve()
        return Device(resolved.parent.name) if (resolved / "partition").exists() else self

    @property
    def queue(self) -> Path:
        """The folder of the settings of its queue."""
        return self.disk._folder / "queue"

    @property
    def bytes(self) -> int:
        """Its size."""
        return int((self._folder / "size").read_text(encoding="ascii")) * 512

    @property
    def backing(self) -> Path | None:
        """What a loop device is attached to, a file or a device; ``None`` for other devices."""
        try:
            text = (self._folder / "loop/backing_file").read_text(encoding="utf-8")
        except OSError:  # another device, or detached
            return None
        return Path(text.rstrip("\n").removesuffix(" (deleted)"))

    def partitions(self) -> list[Device]:
        """The partitions of a whole disk."""
        return [Device(path.parent.name) for path in self._folder.glob("*/partition")]

    def beneath_it(self) -> set[str]:
        """Names of all disks below the device: several for a volume group or an array."""
        below = [path.name for path in (self._folder / "slaves").glob("*")]
        if not below:
            return {self.disk.name}
        return {self.disk.name} | set().union(*(Device(name).beneath_it() for name in below))

    def users(self) -> list[str]:
        """The uses of the device or a part of it, in words."""
        parts = [self, *self.partitions()]
        nodes = {str(part.node): part for part in parts}
        names = {**nodes, **{part.number: part for part in parts}}
        found = [
            f"{(names.get(mount.device) or names[mount.source]).name} is mounted on {mount.where}"
            for mount in mounts()
            if mount.device in names or mount.source in nodes
        ]
        for line in _SWAPS.read_text(encoding="utf-8").splitlines()[1:]:
            if line.split()[0] in nodes:
                found.append(f"{line.split()[0]} is swap space")
        for part in parts:
            for holder in (part._folder / "holders").glob("*"):
                found.append(f"{part.name} is part of {holder.name}")
        return found or self._held_exclusively()

    def _held_exclusively(self) -> list[str]:
        """Is the device opened exclusively, as by a mount or by another device built on it?"""
        try:
            os.close(os.open(self.node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            return [f"{self.name} cannot be opened exclusively: {error.strerror}"]
        return []


def root_disks() -> set[str]:
    """Names of the disks that carry the root file system.

    Raises:
        AttendantError: they are not known, so no disk is safe to format.
    """
    try:
        return Device.beneath(Path("/")).beneath_it()
    except AttendantError as error:
        raise AttendantError(
            f"the disk that carries the root file system is not known ({error}): "
            "use a folder instead, in which a loop device is made"
        ) from error


def loops() -> list[Device]:
    """Loop devices that are attached to something."""
    names = [file.parents[1].name for file in _BLOCK.glob("loop*/loop/backing_file")]
    return [Device(name) for name in sorted(names)]


def mapped_devices() -> dict[str, Device]:
    """The devices that the device mapper has made, by their names."""
    found = {}
    for file in sorted(_BLOCK.glob("dm-*/dm/name")):
        with contextlib.suppress(OSError):  # removed meanwhile
            name = file.read_text(encoding="utf-8").strip()
            found[name] = Device(file.parents[1].name)
    return found


def mapped(name: str) -> Device | None:
    """The device that the device mapper has made under a name."""
    return mapped_devices().get(name)


def loops_over(path: Path) -> list[Device]:
    """Loop devices that are attached to a file or a device."""
    return [device for device in loops() if device.backing == path]


def mounted_from(device: Device) -> list[Path]:
    """Where a device is mounted, the last mount first."""
    try:
        number = device.number
    except OSError:  # detached
        return []
    nodes = (number, str(device.node))
    return [it.where for it in reversed(mounts()) if it.device in nodes or it.source in nodes]


def users_below(folder: Path) -> list[str]:
    """The processes whose working folder or an open file is in a folder: ``process 4711 (bash)``.
    Those of other users are seen by root alone."""
    found = []
    for process in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or may not be looked at
            places = [process / "cwd", process / "root", *(process / "fd").iterdir()]
            if any(_is_below(place, folder) for place in places):
                name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                found.append(f"process {process.name} ({name})")
    return found


def _is_below(link: Path, folder: Path) -> bool:
    try:
        target = link.readlink()
    except OSError:  # closed meanwhile
        return False
    return target == folder or folder in target.parents
