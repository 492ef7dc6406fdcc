"""A device over several others, by the kernel's device mapper, as LVM makes them: one after the
other (``linear``), or in turns (``striped``).

Such a device passes requests on as they come; it has no scheduler. Those of its members have, each
its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks
from concurve.attendants.volumes.blocks import Device
from concurve.attendants.volumes.journal import Journal
from concurve.attendants.volumes.modules import would_load
from concurve.attendants.volumes.steps import PREFIX, Unmap, call
from concurve.errors import HostError

Layout = Literal["linear", "striped"]

LAYOUTS: tuple[Layout, ...] = ("linear", "striped")

#: Of loop devices; document 003 had a volume group of three disks.
MEMBERS = 3
MEMBERS_MAX = 16

_DEVICES = Path("/proc/devices")

#: 64 KiB, the stripes of LVM where nobody says otherwise; in sectors of 512 bytes.
_STRIPE = 128


class Member(NamedTuple):
    """A member of a volume: its number as ``major:minor``, and its size in sectors of 512 bytes."""

    number: str
    sectors: int


def check(where: str) -> None:
    """
    Raises:
        HostError: the kernel has no device mapper, or its tool is missing.
    """
    if shutil.which("dmsetup") is None:
        raise HostError(f"{where}: dmsetup is not installed", "apt-get install dmsetup")
    text = _DEVICES.read_text(encoding="ascii")
    if not any(line.endswith(" device-mapper") for line in text.splitlines()) and not would_load(
        "dm_mod"
    ):
        raise HostError(
            f"{where}: the kernel has no device mapper (dm-mod)",
            "a volume on one device, or a kernel that has it",
        )


def table(layout: Layout, members: Sequence[Member]) -> str:
    """The table of the device mapper, a line a target: first sector, length, kind, and its members
    (the kernel's ``admin-guide/device-mapper``: linear.rst, striped.rst). Of stripes, all members
    give as many as the smallest one has."""
    if layout == "striped":
        stripes = min(member.sectors for member in members) // _STRIPE
        places = " ".join(f"{member.number} 0" for member in members)
        return f"0 {stripes * _STRIPE * len(members)} striped {len(members)} {_STRIPE} {places}\n"
    lines, start = [], 0
    for member in members:
        lines.append(f"{start} {member.sectors} linear {member.number} 0\n")
        start += member.sectors
    return "".join(lines)


def join(layout: Layout, devices: Sequence[Device], journal: Journal) -> Device:
    """Make one device over several.

    Raises:
        AttendantError: the device mapper refused.
    """
    # The name contains the process id, and the process removes the device: the name is unique.
    name = f"{PREFIX}{os.getpid()}"
    members = [Member(device.number, device.bytes // 512) for device in devices]
    journal.intend(Unmap(name))
    # Without waiting for udev, which containers lack: the node is the kernel's own.
    call("dmsetup", "create", name, "--noudevsync", given=table(layout, members))
    device = blocks.mapped(name)
    if device is None:
        raise AttendantError(f"dmsetup has made no device of the name {name}")
    return device
