"""Making a volume, one journalled change after the other."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks
from concurve.attendants.volumes.blocks import Device
from concurve.attendants.volumes.file_systems import FileSystem
from concurve.attendants.volumes.journal import Journal
from concurve.attendants.volumes.limits import limit
from concurve.attendants.volumes.mapping import join
from concurve.attendants.volumes.options import VolumeOptions
from concurve.attendants.volumes.steps import (
    PREFIX,
    Detach,
    Remove,
    RemoveEmpty,
    Unmount,
    Write,
    call,
)
from concurve.permissions import file_mode


class Volume(NamedTuple):
    """A volume that is mounted, and the devices that have the scheduler: itself, or its members.
    ``limited`` says whether it has the limits asked for."""

    device: Device
    members: tuple[Device, ...]
    file_system: str
    limited: bool


class _Member(NamedTuple):
    """A device that gets the scheduler, and the loop device beneath it, if it is one itself: a
    limit holds above the scheduler of its own device, so that of the lower one is beneath the
    scheduler of the upper one."""

    device: Device
    lower: Device | None = None


def make(options: VolumeOptions, journal: Journal) -> Volume:
    """Make a volume, step by step. The journal undoes the changes.

    Raises:
        AttendantError: something failed.
    """
    if options.in_place:
        return _in_place(options, journal)
    members = _members(options, journal)
    devices = tuple(member.device for member in members)
    for device in devices:
        _schedule(device, options, journal)
    whole = devices[0] if options.layout is None else join(options.layout, devices, journal)
    _format(whole, options.file_system)
    _mount(options.mount, journal, str(whole.node))
    limited = [limit(it.lower, options, journal) for it in members if it.lower is not None]
    return Volume(whole, devices, f"{options.file_system.name}, new", all(limited) and any(limited))


def _members(options: VolumeOptions, journal: Journal) -> list[_Member]:
    """The devices of the volume: those named, or new loop devices in the folder."""
    if not options.on.is_dir():
        return [_Member(Device.at(path)) for path in (options.on, *options.others)]
    found = []
    for number in range(options.members):
        lower = _attach(_file(options, number, journal), journal)
        found.append(_Member(_attach(lower.node, journal), lower))
    return found


def _in_place(options: VolumeOptions, journal: Journal) -> Volume:
    device = Device.beneath(options.on)
    _schedule(device, options, journal)
    own = Path(tempfile.mkdtemp(prefix=PREFIX, dir=options.on))
    journal.intend(Remove(str(own)))
    _mount(options.mount, journal, "--bind", str(own))
    return Volume(device, (device,), "as it was found", False)


def _file(options: VolumeOptions, number: int, journal: Journal) -> Path:
    """The file below the loop devices of a member, with all its space allocated: otherwise writes
    to it would make its file system allocate space."""
    # The name contains the process id, and the process removes the file: the name is unique.
    path = options.on / f"{PREFIX}{os.getpid()}{f'-{number}' * bool(number)}"
    journal.intend(Remove(str(path)))
    try:
        # Its bytes are those of the databases in the volume.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, file_mode())
        try:
            os.posix_fallocate(file, 0, options.bytes_of_member)
        finally:
            os.close(file)
    except OSError as error:
        raise AttendantError(f"{path} cannot be made: {error.strerror}") from error
    return path


def _attach(over: Path, journal: Journal) -> Device:
    journal.intend(Detach(str(over)))
    node = call("losetup", "--find", "--show", "--direct-io=on", str(over))
    return Device(Path(node).name)


def _schedule(device: Device, options: VolumeOptions, journal: Journal) -> None:
    """Set the scheduler and its tunables, and read them back.

    A change of the scheduler also changes other settings: those of the old scheduler are lost, and
    the queue length is reset. So all are noted first, and restored after the scheduler.
    """
    for name in ("nr_requests", "wbt_lat_usec"):
        _note(device.queue / name, journal)
    for path in sorted((device.queue / "iosched").glob("*")):
        _note(path, journal)
    _set(device.queue / "scheduler", options.scheduler, journal)
    for name, value in options.tunables:
        places = [device.queue / "iosched" / name, device.queue / name]
        place = next((path for path in places if path.is_file()), None)
        if place is None:
            own = sorted(path.name for path in (device.queue / "iosched").glob("*"))
            raise AttendantError(
                f"--tunable {name}: neither {options.scheduler} nor the queue of {device.name} "
                f"has it; the scheduler has {', '.join(own) or 'none'}"
            )
        _set(place, value, journal)


def _note(path: Path, journal: Journal) -> None:
    """Note a setting to be restored, if it exists and can be written."""
    if path.is_file() and path.stat().st_mode & stat.S_IWUSR:
        with contextlib.suppress(OSError):  # not for this device
            journal.intend(Write(str(path), blocks.chosen(path.read_text(encoding="ascii"))))


def _set(path: Path, value: str, journal: Journal) -> None:
    _note(path, journal)
    try:
        path.write_text(value, encoding="ascii")
    except OSError as error:
        raise AttendantError(f"{path} does not take {value!r}: {error.strerror}") from error
    after = blocks.chosen(path.read_text(encoding="ascii"))
    if after != value:
        raise AttendantError(
            f"{path} is {after!r} after {value!r} was written to it: "
            "give the value that the kernel reports"
        )


def _format(device: Device, kind: FileSystem) -> None:
    call(*kind.command(device.node))
    # Drop the device's buffers from the page cache.
    call("blockdev", "--flushbufs", str(device.node))


def _mount(where: Path, journal: Journal, *arguments: str) -> None:
    missing = [path for path in (where, *where.parents) if not path.exists()]
    for path in reversed(missing):
        journal.intend(RemoveEmpty(str(path)))
        path.mkdir()
    journal.intend(Unmount(str(where)))
    call("mount", *arguments, str(where))
    # Servers run as other users and must have access.
    where.chmod(0o1777)
