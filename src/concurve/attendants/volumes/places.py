"""Where volumes are made whose studies do not say it."""

from __future__ import annotations

import os
from pathlib import Path

from concurve.errors import HostError

#: Names a folder, a device, or several devices with commas between them.
VARIABLE = "CONCURVE_VOLUME_ON"
_USUAL = "/var/tmp"


def usual(are_several: bool) -> list[Path]:
    """The folder, or the devices; for a volume that is not over several, the first of them."""
    named = os.environ.get(VARIABLE) or _USUAL
    parts = named.split(",")
    if not all(part.startswith("/dev/") for part in parts):
        return [Path(named)]
    return [Path(part) for part in (parts if are_several else parts[:1])]


def check_several(where: str) -> None:
    """
    Raises:
        HostError: the variable names one device, on which no volume over several can be made.
    """
    places = usual(are_several=True)
    if len(places) == 1 and places[0].is_block_device():
        raise HostError(
            f"{where}: {VARIABLE} names one device, {places[0]}",
            f"{VARIABLE}=/dev/ONE,/dev/OTHER for volumes over several",
        )
