"""What is refused before anything is touched."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from concurve.errors import HostError
from concurve.volumes import blocks, file_systems
from concurve.volumes.blocks import Device
from concurve.volumes.errors import VolumeError
from concurve.volumes.file_systems import LABEL, FileSystem
from concurve.volumes.settings import Settings
from concurve.volumes.steps import call

#: What is left free of the file system in which a file is made: the machine goes on living.
_SPARE_BYTES = 256 << 20


def check(settings: Settings) -> None:
    """
    Raises:
        VolumeError: the volume cannot be had; nothing has been done.
    """
    if os.geteuid() != 0:
        raise VolumeError("only root may mount a volume and set its I/O scheduler: run as root")
    _check_mount(settings.mount)
    if not settings.in_place:
        _check_file_system(settings.file_system)
    kind = _kind(settings.on)
    if kind == "folder" and settings.in_place:
        _check_disk(Device.beneath(settings.on).disk)
        _check_scheduler(settings, Device.beneath(settings.on))
    elif kind == "folder":
        _check_scheduler(settings, None)
        _check_space(settings)
    else:
        device = Device.at(settings.on)
        _check_disk(device.disk)
        _check_scheduler(settings, device)
        _check_unused(device, settings.erase)
        _check_size(device.bytes, f"{device.node} has", settings.file_system)


def _kind(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise VolumeError(f"--on {path}: {error.strerror}") from error
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISBLK(mode):
        return "device"
    raise VolumeError(f"--on {path} is neither a folder nor a block device")


def _check_mount(mount: Path) -> None:
    if any(other.where == mount for other in blocks.mounts()):
        raise VolumeError(f"--mount {mount}: something is mounted there: name another folder")
    if mount.exists() and (not mount.is_dir() or any(mount.iterdir())):
        raise VolumeError(f"--mount {mount} is no empty folder: name another one")


def _check_disk(disk: Device) -> None:
    """Never the root file system's."""
    below = disk.beneath_it() & blocks.root_disks()
    if below:
        raise VolumeError(
            f"{disk.name} carries the root file system: name another device, or a folder, in "
            "which a loop device is made"
        )


def _check_scheduler(settings: Settings, device: Device | None) -> None:
    """Of a device that is still to be made, what any offers."""
    known = blocks.known_schedulers()
    if device is not None:
        file = device.queue / "scheduler"
        text = file.read_text(encoding="ascii") if file.exists() else ""
        known = tuple(text.replace("[", "").replace("]", "").split())
    if settings.scheduler not in known:
        of = "the kernel" if device is None else device.disk.name
        raise VolumeError(
            f"{of} has no I/O scheduler {settings.scheduler!r}, but {', '.join(known) or 'none'}"
        )


def _check_file_system(kind: FileSystem) -> None:
    try:
        file_systems.check(kind, f"--file-system {kind.name}")
    except HostError as error:
        raise VolumeError(f"{error.what}: {error.remedy}") from error


def _check_size(bytes_: int, what: str, kind: FileSystem) -> None:
    if bytes_ < kind.bytes_min:
        raise VolumeError(
            f"{what} {bytes_ >> 20} MiB: too small for {kind.name}, which takes "
            f"{kind.bytes_min >> 20} at least"
        )


def _check_space(settings: Settings) -> None:
    _check_size(settings.bytes, "--size-mib gives", settings.file_system)
    free = shutil.disk_usage(settings.on).free
    if free < settings.bytes + _SPARE_BYTES:
        raise VolumeError(
            f"{settings.on} has {free >> 20} MiB left, and {settings.bytes >> 20} MiB are wanted "
            f"beside {_SPARE_BYTES >> 20} to spare: a smaller --size-mib, or another folder"
        )


def _check_unused(device: Device, erase: bool) -> None:
    users = device.users()
    if users:
        raise VolumeError(f"{device.node} is in use: {'; '.join(users)}")
    holds = _contents(device)
    if holds and not erase and f"LABEL={LABEL}" not in holds:
        what = [line for line in holds if line.startswith(("TYPE=", "PTTYPE="))] or holds
        raise VolumeError(f"there is something on {device.node} ({what[0]}): --erase formats it")


def _contents(device: Device) -> list[str]:
    """What is on it, as lines ``NAME=value``."""
    query = ("--probe", "--output", "export", str(device.node))
    nothing = call("blkid", *query, check=False)
    return [] if nothing else call("blkid", *query).splitlines()
