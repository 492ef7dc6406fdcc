"""The command line of a volume's attendant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from concurve.attendants.volumes import SCHEDULERS
from concurve.attendants.volumes.file_systems import FILE_SYSTEMS, USUAL, FileSystem
from concurve.attendants.volumes.mapping import LAYOUTS, MEMBERS, MEMBERS_MAX, Layout
from concurve.attendants.volumes.places import usual

#: The value that leaves a tunable as the kernel set it, for use as a level of a factor.
AS_IT_IS = "default"


class VolumeOptions(NamedTuple):
    """The requested volume. ``on`` is a folder (loop devices over new files are made in it) or a
    block device, to which ``others`` may be added; ``in_place`` uses a folder of the file system
    that is there. ``layout`` says how several devices are one; of loop devices, so many
    ``members``."""

    scheduler: str
    mount: Path
    on: Path
    in_place: bool
    file_system: FileSystem
    erase: bool
    bytes: int
    write_bytes_per_second: int
    read_bytes_per_second: int
    tunables: tuple[tuple[str, str], ...]
    layout: Layout | None = None
    members: int = 1
    others: tuple[Path, ...] = ()

    @property
    def bytes_of_member(self) -> int:
        """The size of each loop device, in whole MiB."""
        return (self.bytes >> 20) // self.members << 20


def parse(argv: Sequence[str]) -> VolumeOptions:
    """The options, with paths without symbolic links. Exits with 2 on wrong usage, as ``argparse``
    does."""
    parser = argparse.ArgumentParser(
        prog="python -m concurve.attendants.volumes.attend",
        description="Mount a new volume under an I/O scheduler until SIGTERM.",
    )
    parser.add_argument("scheduler", choices=sorted(SCHEDULERS))
    parser.add_argument(
        "--mount",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="where it is mounted; made if it is not there",
    )
    parser.add_argument(
        "--on",
        type=Path,
        action="append",
        metavar="FOLDER|DEVICE",
        help="a folder, in which loop devices over new files are made; or a block device, or "
        "several with --layout",
    )
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="use a folder in FOLDER's own file system, and the scheduler of its disk",
    )
    parser.add_argument(
        "--file-system",
        choices=sorted(FILE_SYSTEMS),
        help=f"of the new volume (default: {USUAL.name})",
    )
    parser.add_argument(
        "--layout", choices=LAYOUTS, help="one volume over several devices, as LVM makes them"
    )
    parser.add_argument(
        "--members",
        type=_members,
        metavar="N",
        help=f"so many loop devices, with --layout (default: {MEMBERS})",
    )
    parser.add_argument(
        "--erase", action="store_true", help="format DEVICE although there is something on it"
    )
    parser.add_argument(
        "--size-mib",
        type=_positive,
        default=1024,
        metavar="N",
        help="of the loop device, or of all of them together (default: 1024)",
    )
    parser.add_argument(
        "--write-mib",
        type=_positive,
        default=0,
        metavar="N",
        help="limit of writing a second, of each loop device",
    )
    parser.add_argument(
        "--read-mib",
        type=_positive,
        default=0,
        metavar="N",
        help="limit of reading a second, of each loop device",
    )
    parser.add_argument("--tunable", type=_assignment, action="append", default=[],
                        metavar="NAME=VALUE",
                        help=f"of the scheduler or the queue; {AS_IT_IS}: as it is")  # fmt: skip
    given = parser.parse_args(argv)

    def resolved(path: Path, option: str) -> Path:
        """The path without symbolic links, as the kernel names mount points and what loop devices
        are attached to: by another name they would not be found again."""
        try:
            return path.resolve()
        except (OSError, RuntimeError) as error:  # links in a circle
            parser.error(f"{option} {path}: {error}")

    if given.in_place and given.file_system:
        parser.error("--in-place formats nothing, so it does not go with --file-system")
    if given.in_place and given.layout:
        parser.error("--in-place makes no device, so it does not go with --layout")
    if given.members and not given.layout:
        parser.error("--members goes with --layout, which says how they are one volume")
    if given.on and len(given.on) > 1 and not given.layout:
        parser.error("several devices are one volume with --layout linear or --layout striped")
    places = [resolved(path, "--on") for path in given.on or usual(given.layout is not None)]
    if len(set(places)) < len(places):
        parser.error("--on names a device twice")
    on, *others = places
    if given.members and others:
        parser.error("--members counts loop devices in a folder; here --on names the devices")
    return VolumeOptions(
        scheduler=given.scheduler,
        mount=resolved(given.mount, "--mount"),
        on=on,
        in_place=given.in_place,
        file_system=FILE_SYSTEMS.get(given.file_system, USUAL),
        erase=given.erase,
        bytes=given.size_mib << 20,
        write_bytes_per_second=given.write_mib << 20,
        read_bytes_per_second=given.read_mib << 20,
        tunables=tuple(item for item in given.tunable if item[1] != AS_IT_IS),
        layout=given.layout,
        members=given.members or (MEMBERS if given.layout else 1),
        others=tuple(others),
    )


def _members(text: str) -> int:
    count = _positive(text)
    if not 2 <= count <= MEMBERS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number from 2 to {MEMBERS_MAX}")
    return count


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number above 0")
    return int(text)


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.replace("_", "").isalnum() or not value:
        raise argparse.ArgumentTypeError(f"{text!r}: give NAME=VALUE, such as fifo_batch=1")
    return name, value
