"""Making a volume, one journalled change after the other."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

from concurve.volumes import blocks
from concurve.volumes.blocks import Device
from concurve.volumes.errors import VolumeError
from concurve.volumes.file_systems import FileSystem
from concurve.volumes.journal import Journal
from concurve.volumes.limits import limit
from concurve.volumes.settings import Settings
from concurve.volumes.steps import Detach, Remove, RemoveEmpty, Unmount, Write, call

_PREFIX = "concurve-volume-"


class Volume(NamedTuple):
    """A volume that is mounted; ``limited`` says whether it has the limits asked for."""

    device: Device
    file_system: str
    limited: bool


def make(settings: Settings, journal: Journal) -> Volume:
    """The table of contents of a volume. What it does is taken back by the journal.

    Raises:
        VolumeError: something failed.
    """
    if settings.in_place:
        return _in_place(settings, journal)
    if settings.on.is_dir():
        return _on_loops(settings, journal)
    device = Device.at(settings.on)
    _schedule(device, settings, journal)
    _format(device, settings.file_system)
    _mount(settings.mount, journal, str(device.node))
    return Volume(device, f"{settings.file_system.name}, new", False)


def _on_loops(settings: Settings, journal: Journal) -> Volume:
    """Two loop devices, one over the other: a limit holds above the scheduler of its own device, so
    that of the lower one is beneath the scheduler of the upper one."""
    file = _file(settings, journal)
    lower = _attach(file, journal)
    upper = _attach(lower.node, journal)
    _schedule(upper, settings, journal)
    _format(upper, settings.file_system)
    _mount(settings.mount, journal, str(upper.node))
    limited = limit(lower, settings, journal)
    return Volume(upper, f"{settings.file_system.name}, new", limited)


def _in_place(settings: Settings, journal: Journal) -> Volume:
    device = Device.beneath(settings.on)
    _schedule(device, settings, journal)
    own = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=settings.on))
    journal.intend(Remove(str(own)))
    _mount(settings.mount, journal, "--bind", str(own))
    return Volume(device, "as it was found", False)


def _file(settings: Settings, journal: Journal) -> Path:
    """The file beneath, with all its space: else writing to it would make its file system look for
    some."""
    # Named by the process and removed by it: nobody else makes one of this name.
    path = settings.on / f"{_PREFIX}{os.getpid()}"
    journal.intend(Remove(str(path)))
    try:
        with path.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, settings.bytes)
    except OSError as error:
        raise VolumeError(f"{path} cannot be made: {error.strerror}") from error
    return path


def _attach(over: Path, journal: Journal) -> Device:
    journal.intend(Detach(str(over)))
    node = call("losetup", "--find", "--show", "--direct-io=on", str(over))
    return Device(Path(node).name)


def _schedule(device: Device, settings: Settings, journal: Journal) -> None:
    """Sets the scheduler and its tunables, and reads them back.

    A change of the scheduler changes other settings, too: those of the one that goes are lost, and
    the queue's length is set anew. So all are noted first, and restored behind the scheduler.
    """
    for name in ("nr_requests", "wbt_lat_usec"):
        _note(device.queue / name, journal)
    for path in sorted((device.queue / "iosched").glob("*")):
        _note(path, journal)
    _set(device.queue / "scheduler", settings.scheduler, journal)
    for name, value in settings.tunables:
        places = [device.queue / "iosched" / name, device.queue / name]
        place = next((path for path in places if path.is_file()), None)
        if place is None:
            own = sorted(path.name for path in (device.queue / "iosched").glob("*"))
            raise VolumeError(
                f"--tunable {name}: neither {settings.scheduler} nor the queue of {device.name} "
                f"has it; the scheduler has {', '.join(own) or 'none'}"
            )
        _set(place, value, journal)


def _note(path: Path, journal: Journal) -> None:
    """Have a setting restored, if there is such a one that can be written."""
    if path.is_file() and path.stat().st_mode & stat.S_IWUSR:
        with contextlib.suppress(OSError):  # not for this device
            journal.intend(Write(str(path), blocks.chosen(path.read_text(encoding="ascii"))))


def _set(path: Path, value: str, journal: Journal) -> None:
    _note(path, journal)
    try:
        path.write_text(value, encoding="ascii")
    except OSError as error:
        raise VolumeError(f"{path} does not take {value!r}: {error.strerror}") from error
    after = blocks.chosen(path.read_text(encoding="ascii"))
    if after != value:
        raise VolumeError(
            f"{path} is {after!r} after {value!r} was written to it: "
            "give what the kernel makes of it"
        )


def _format(device: Device, kind: FileSystem) -> None:
    call(*kind.command(device.node))
    # Nothing of it stays in the page cache.
    call("blockdev", "--flushbufs", str(device.node))


def _mount(where: Path, journal: Journal, *arguments: str) -> None:
    missing = [path for path in (where, *where.parents) if not path.exists()]
    for path in reversed(missing):
        journal.intend(RemoveEmpty(str(path)))
        path.mkdir()
    journal.intend(Unmount(str(where)))
    call("mount", *arguments, str(where))
    # Servers run as users of their own.
    where.chmod(0o1777)
