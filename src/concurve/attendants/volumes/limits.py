"""Limits of what a device reads and writes a second, by cgroups: ``blkio.throttle`` of version 1,
``io.max`` of version 2 (the kernel's ``admin-guide/cgroup-v1/blkio-controller.rst`` and
``admin-guide/cgroup-v2.rst``).

In version 1 the root group has limits, which apply to all processes. In version 2 it has none;
there the limits are set on the outermost group of this process, and so on all roles of the trial.
Loop devices pass a request on in the group of the process that made it (since Linux 5.14).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from concurve.attendants.volumes.blocks import Device
from concurve.attendants.volumes.journal import Journal
from concurve.attendants.volumes.options import VolumeOptions
from concurve.attendants.volumes.steps import Write
from concurve.host.mounts import mounts

_OWN_GROUPS = Path("/proc/self/cgroup")


def limit(device: Device, options: VolumeOptions, journal: Journal) -> bool:
    """Set the requested limits; ``False`` if there are none, or if the kernel cannot set them."""
    limits = {"w": options.write_bytes_per_second, "r": options.read_bytes_per_second}
    wanted = {direction: bytes_ for direction, bytes_ in limits.items() if bytes_}
    if not wanted:
        return False
    for mount in mounts():
        if mount.kind == "cgroup" and _is_limited_by_files(device, mount.where, wanted, journal):
            return True
        if mount.kind == "cgroup2" and _is_limited_by_group(device, mount.where, wanted, journal):
            return True
    return False


def _is_limited_by_files(
    device: Device, root: Path, wanted: dict[str, int], journal: Journal
) -> bool:
    """Version 1: a file for each direction."""
    names = {"w": "write", "r": "read"}
    for direction, bytes_ in wanted.items():
        file = root / f"blkio.throttle.{names[direction]}_bps_device"
        if not file.exists():
            return False
        journal.intend(Write(str(file), f"{device.number} 0"))
        file.write_text(f"{device.number} {bytes_}", encoding="ascii")
    return True


def _is_limited_by_group(
    device: Device, root: Path, wanted: dict[str, int], journal: Journal
) -> bool:
    """Version 2: the outermost group that has limits, or may get them."""
    for group in own_groups(_OWN_GROUPS.read_text(encoding="utf-8"), root):
        file = group / "io.max"
        if not file.exists():
            _have_controlled(group.parent, journal)
        if file.exists():
            journal.intend(Write(str(file), _line(device, dict.fromkeys(wanted, "max"))))
            file.write_text(_line(device, wanted), encoding="ascii")
            return True
    return False


def _line(device: Device, limits: Mapping[str, object]) -> str:
    return " ".join([device.number, *(f"{name}bps={value}" for name, value in limits.items())])


def own_groups(text: str, root: Path) -> Iterator[Path]:
    """By ``/proc/self/cgroup`` (cgroups(7)): the folders of the groups of version 2 that a process
    is in, from the outermost on. The root is among them where it is that of a container only,
    which is a group like any other."""
    path = next((line[3:] for line in text.splitlines() if line.startswith("0::")), "/")
    group = root
    for name in ("", *filter(None, path.split("/"))):
        group = group / name
        yield group


def _have_controlled(group: Path, journal: Journal) -> None:
    """Enable limits of devices for the groups inside of a group, if it supports them."""
    file = group / "cgroup.subtree_control"
    with contextlib.suppress(OSError):
        controllers = (group / "cgroup.controllers").read_text(encoding="ascii").split()
        if "io" in controllers and "io" not in file.read_text(encoding="ascii").split():
            journal.intend(Write(str(file), "-io"))
            file.write_text("+io", encoding="ascii")
