"""The checks before the first change of the machine."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks, file_systems, mapping
from concurve.attendants.volumes.blocks import Device
from concurve.attendants.volumes.file_systems import LABEL, FileSystem
from concurve.attendants.volumes.options import VolumeOptions
from concurve.attendants.volumes.steps import call
from concurve.errors import HostError
from concurve.host.mounts import mounts

#: Space that must stay free in the file system of the loop device's file, for the machine itself.
_SPARE_BYTES = 256 << 20


def check(options: VolumeOptions) -> None:
    """
    Raises:
        AttendantError: the volume cannot be made; nothing was changed.
    """
    if os.geteuid() != 0:
        raise AttendantError("only root may mount a volume and set its I/O scheduler: run as root")
    _check_mount(options.mount)
    if not options.in_place:
        _check_file_system(options.file_system)
    if options.layout is not None:
        _check_layout(options)
    kind = _kind(options.on)
    if kind == "folder" and options.in_place:
        _check_disk(Device.beneath(options.on).disk)
        _check_scheduler(options, Device.beneath(options.on))
    elif kind == "folder":
        _check_scheduler(options, None)
        _check_space(options)
    else:
        _check_devices(options)


def _check_layout(options: VolumeOptions) -> None:
    """Refuse what is not several devices, or a folder to make them in."""
    try:
        mapping.check(f"--layout {options.layout}")
    except HostError as error:
        raise AttendantError(f"{error.what}: {error.remedy}") from error
    kinds = {path: _kind(path) for path in (options.on, *options.others)}
    folders = [path for path, kind in kinds.items() if kind == "folder"]
    if folders and options.others:
        raise AttendantError(
            f"--on {folders[0]} is a folder: name devices alone, or one folder, in which loop "
            "devices are made"
        )
    if not folders and not options.others:
        raise AttendantError(
            f"--layout {options.layout} joins several devices, and {options.on} is one: name more "
            "with --on, or a folder, in which loop devices are made"
        )


def _check_devices(options: VolumeOptions) -> None:
    devices = [Device.at(path) for path in (options.on, *options.others)]
    for device in devices:
        _check_disk(device.disk)
        _check_scheduler(options, device)
        _check_unused(device, options.erase)
    names = " and ".join(str(device.node) for device in devices)
    has = "has" if len(devices) == 1 else "have"
    _check_size(sum(device.bytes for device in devices), f"{names} {has}", options.file_system)


def _kind(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise AttendantError(f"--on {path}: {error.strerror}") from error
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISBLK(mode):
        return "device"
    raise AttendantError(f"--on {path} is neither a folder nor a block device")


def _check_mount(mount: Path) -> None:
    if any(other.where == mount for other in mounts()):
        raise AttendantError(f"--mount {mount}: something is mounted there: name another folder")
    if mount.exists() and (not mount.is_dir() or any(mount.iterdir())):
        raise AttendantError(f"--mount {mount} is no empty folder: name another one")


def _check_disk(disk: Device) -> None:
    """Refuse a disk that carries the root file system."""
    below = disk.beneath_it() & blocks.root_disks()
    if below:
        raise AttendantError(
            f"{disk.name} carries the root file system: name another device, or a folder, in "
            "which a loop device is made"
        )


def _check_scheduler(options: VolumeOptions, device: Device | None) -> None:
    """Refuse an unknown scheduler; a device that is not made yet offers those of any device."""
    known = blocks.known_schedulers()
    if device is not None:
        file = device.queue / "scheduler"
        text = file.read_text(encoding="ascii") if file.exists() else ""
        known = tuple(text.replace("[", "").replace("]", "").split())
    if options.scheduler not in known:
        of = "the kernel" if device is None else device.disk.name
        raise AttendantError(
            f"{of} has no I/O scheduler {options.scheduler!r}, but {', '.join(known) or 'none'}"
        )


def _check_file_system(kind: FileSystem) -> None:
    try:
        file_systems.check(kind, f"--file-system {kind.name}")
    except HostError as error:
        raise AttendantError(f"{error.what}: {error.remedy}") from error


def _check_size(bytes_: int, what: str, kind: FileSystem) -> None:
    if bytes_ < kind.bytes_min:
        raise AttendantError(
            f"{what} {bytes_ >> 20} MiB: too small for {kind.name}, which takes "
            f"{kind.bytes_min >> 20} at least"
        )


def _check_space(options: VolumeOptions) -> None:
    _check_size(options.bytes_of_member * options.members, "--size-mib gives", options.file_system)
    free = shutil.disk_usage(options.on).free
    if free < options.bytes + _SPARE_BYTES:
        raise AttendantError(
            f"{options.on} has {free >> 20} MiB left, and {options.bytes >> 20} MiB are wanted "
            f"beside {_SPARE_BYTES >> 20} to spare: a smaller --size-mib, or another folder"
        )


def _check_unused(device: Device, erase: bool) -> None:
    users = device.users()
    if users:
        raise AttendantError(f"{device.node} is in use: {'; '.join(users)}")
    holds = _contents(device)
    if holds and not erase and f"LABEL={LABEL}" not in holds:
        what = [line for line in holds if line.startswith(("TYPE=", "PTTYPE="))] or holds
        raise AttendantError(f"there is something on {device.node} ({what[0]}): --erase formats it")


def _contents(device: Device) -> list[str]:
    """The content of a device, as lines ``NAME=value``."""
    query = ("--probe", "--output", "export", str(device.node))
    nothing = call("blkid", *query, check=False)
    return [] if nothing else call("blkid", *query).splitlines()
