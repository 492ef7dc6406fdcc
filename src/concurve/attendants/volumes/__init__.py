"""Volumes of block devices as roles of a trial: a new file system under an I/O scheduler.

Document 003 compares I/O schedulers. A study that does so has a role whose program is
``volume-none``, ``volume-mq-deadline``, ``volume-kyber`` or ``volume-bfq``; with a file system at
the end of the name, as in ``volume-bfq-xfs``, the volume has this file system, and with a layout
after that, as in ``volume-bfq-xfs-striped``, it is over several devices. The attendant
(:mod:`concurve.attendants.volumes.attend`) makes the volume, mounts it where the other roles expect
it, reports ``ready``, and undoes everything at SIGTERM. It writes each change of the machine to a
journal first (:mod:`concurve.attendants.volumes.journal`), so that the next start undoes the
changes of a killed attendant.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks, file_systems, journal, mapping, places
from concurve.attendants.volumes.file_systems import FILE_SYSTEMS, USUAL
from concurve.attendants.volumes.journal import DamagedError, Left
from concurve.attendants.volumes.mapping import LAYOUTS
from concurve.attendants.volumes.steps import Tell, silent
from concurve.errors import HostError
from concurve.host.own_python import module

_PREFIX = "volume-"

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")

#: The arguments of the attendant by the name that studies use, the I/O scheduler first.
VOLUMES = {
    **{f"{_PREFIX}{scheduler}": (scheduler,) for scheduler in SCHEDULERS},
    **{
        f"{_PREFIX}{scheduler}-{kind}": (scheduler, "--file-system", kind)
        for scheduler in SCHEDULERS
        for kind in FILE_SYSTEMS
    },
    **{
        f"{_PREFIX}{scheduler}-{kind}-{layout}": (
            scheduler,
            "--file-system",
            kind,
            "--layout",
            layout,
        )
        for scheduler in SCHEDULERS
        for kind in FILE_SYSTEMS
        for layout in LAYOUTS
    },
}

#: These names for people.
PATTERN = f"{_PREFIX}SCHEDULER[-FILESYSTEM[-LAYOUT]]"

#: Programs that an attendant calls, and Debian's packages of them.
TOOLS = {
    "losetup": "mount",
    "mount": "mount",
    "umount": "mount",
    "blkid": "util-linux",
    "blockdev": "util-linux",
}


def program(name: str, where: str) -> Path:
    """The file of the attendant that makes this volume.

    Raises:
        HostError: no privilege, no such scheduler, or a missing tool.
    """
    if os.geteuid() != 0:
        raise HostError(
            f"{where}: {name}: only root may mount a volume and set its I/O scheduler",
            "run as root",
        )
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            raise HostError(
                f"{where}: {name}: {tool} is not installed", f"apt-get install {package}"
            )
    scheduler, *options = VOLUMES[name]
    asked = dict(zip(options[::2], options[1::2], strict=True))
    file_systems.check(FILE_SYSTEMS.get(asked.get("--file-system", ""), USUAL), f"{where}: {name}")
    if "--layout" in asked:
        mapping.check(f"{where}: {name}")
        places.check_several(f"{where}: {name}")
    known = blocks.known_schedulers()
    if scheduler not in known:
        raise HostError(
            f"{where}: {name}: the kernel has no I/O scheduler {scheduler!r} "
            f"(it has {', '.join(known) or 'none at all'})",
            f"modprobe {scheduler}-iosched or modprobe {scheduler}, if it has modules",
        )
    return Path(__file__).with_name("attend.py")


def command(name: str, where: str) -> tuple[str, ...]:
    """How the command line of a volume's role begins.

    Raises:
        HostError: as :func:`program`.
    """
    program(name, where)
    return (*module("concurve.attendants.volumes.attend"), *VOLUMES[name])


def repair(tell: Tell = silent) -> None:
    """Undo the changes that killed attendants have left; ``tell`` says what is waited for.

    Raises:
        HostError: some changes could not be undone.
    """
    try:
        journal.repair(tell)
    except (AttendantError, OSError) as error:
        raise _left_for_good(error) from error


def left() -> list[Left]:
    """What killed attendants have left, without waiting and without undoing it: the volumes of
    journals, and those of lost journals."""
    return [*journal.left(), *journal.without_journal()]


def repair_all(tell: Tell) -> None:
    """Undo it all, what no journal mentions too.

    Raises:
        HostError: some changes could not be undone.
    """
    repair(tell)
    try:
        for item in journal.without_journal():
            for step in item.steps:
                step.do(tell)
    except (AttendantError, OSError, ValueError) as error:
        raise _left_for_good(error) from error


def _left_for_good(error: Exception) -> HostError:
    if isinstance(error, DamagedError):
        return HostError(f"a killed run has left a volume: {error}", error.remedy)
    return HostError(
        f"a killed run has left a volume: {error}",
        "end the processes that use it (fuser -vm its folder), then: concurve machine repair",
    )
