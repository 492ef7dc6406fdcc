"""The command line of a volume's attendant."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from concurve.attendants.volumes import SCHEDULERS
from concurve.attendants.volumes.file_systems import FILE_SYSTEMS, USUAL, FileSystem

#: The value that leaves a tunable as the kernel set it, for use as a level of a factor.
AS_IT_IS = "default"

#: Names the folder or device for volumes whose studies do not name one.
ON_VARIABLE = "CONCURVE_VOLUME_ON"
_ON = "/var/tmp"


class VolumeOptions(NamedTuple):
    """The requested volume. ``on`` is a folder (a loop device over a new file is made in it) or a
    block device; ``in_place`` uses a folder of the file system that is there."""

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
        default=Path(os.environ.get(ON_VARIABLE) or _ON),
        metavar="FOLDER|DEVICE",
        help="a folder, in which a loop device over a new file is made; or a block device",
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
        "--erase", action="store_true", help="format DEVICE although there is something on it"
    )
    parser.add_argument(
        "--size-mib",
        type=_positive,
        default=1024,
        metavar="N",
        help="of the loop device (default: 1024)",
    )
    parser.add_argument(
        "--write-mib",
        type=_positive,
        default=0,
        metavar="N",
        help="limit of writing a second, of a loop device",
    )
    parser.add_argument(
        "--read-mib",
        type=_positive,
        default=0,
        metavar="N",
        help="limit of reading a second, of a loop device",
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
    return VolumeOptions(
        scheduler=given.scheduler,
        mount=resolved(given.mount, "--mount"),
        on=resolved(given.on, "--on"),
        in_place=given.in_place,
        file_system=FILE_SYSTEMS.get(given.file_system, USUAL),
        erase=given.erase,
        bytes=given.size_mib << 20,
        write_bytes_per_second=given.write_mib << 20,
        read_bytes_per_second=given.read_mib << 20,
        tunables=tuple(item for item in given.tunable if item[1] != AS_IT_IS),
    )


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number above 0")
    return int(text)


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.replace("_", "").isalnum() or not value:
        raise argparse.ArgumentTypeError(f"{text!r}: give NAME=VALUE, such as fifo_batch=1")
    return name, value
