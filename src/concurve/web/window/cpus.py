"""How busy each CPU is, over time: the curves of document 002, figures 14 to 17."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

#: Places in a line of ``/proc/stat`` behind the name of the CPU. Guests' time is in user time, too.
_IDLE, _IOWAIT, _COUNTED = 3, 4, 8

#: So many readings are kept: 20 minutes.
KEPT_MAX = 2400


class Utilisation(msgspec.Struct, frozen=True):
    """The readings from the number ``first`` on: when each was taken, in seconds since the
    beginning, and for each of ``cpus`` the share of the time since the reading before in which it
    was busy, with whatever program; ``None`` where it is not known."""

    first: int
    cpus: tuple[int, ...]
    seconds: tuple[float, ...]
    busy: tuple[tuple[float | None, ...], ...]


class _Reading(NamedTuple):
    number: int
    seconds: float
    busy: tuple[float | None, ...]


class CpusOverTime:
    """Reads how busy some CPUs are, again and again."""

    def __init__(
        self,
        cpus: tuple[int, ...],
        stat: Path = Path("/proc/stat"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cpus = cpus
        self._stat = stat
        self._clock = clock
        self._begun = clock()
        self._before = self._ticks()
        self._taken = 0
        self._kept: deque[_Reading] = deque(maxlen=KEPT_MAX)

    def look(self) -> None:
        """Take a reading."""
        now = self._ticks()
        busy = tuple(_busy(self._before.get(cpu), now.get(cpu)) for cpu in self._cpus)
        self._before = now
        self._kept.append(_Reading(self._taken, self._clock() - self._begun, busy))
        self._taken += 1

    def since(self, number: int) -> Utilisation:
        """The readings from this number on, as far as they are kept."""
        found = [reading for reading in list(self._kept) if reading.number >= number]
        return Utilisation(
            first=found[0].number if found else number,
            cpus=self._cpus,
            seconds=tuple(reading.seconds for reading in found),
            busy=tuple(reading.busy for reading in found),
        )

    def _ticks(self) -> Mapping[int, tuple[int, int]]:
        try:
            return parse(self._stat.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return {}


def parse(text: str) -> dict[int, tuple[int, int]]:
    """The ticks since the start of each CPU of ``/proc/stat``: idle ones, and all.

    Raises:
        ValueError: it is not of that form.
    """
    found = {}
    for line in text.splitlines():
        name, *numbers = line.split()
        if name.startswith("cpu") and name != "cpu":
            ticks = [int(number) for number in numbers[:_COUNTED]]
            ticks += [0] * (_COUNTED - len(ticks))
            found[int(name[3:])] = (ticks[_IDLE] + ticks[_IOWAIT], sum(ticks))
    return found


def _busy(before: tuple[int, int] | None, now: tuple[int, int] | None) -> float | None:
    if before is None or now is None:
        return None
    idle, whole = now[0] - before[0], now[1] - before[1]
    # Counters of a virtual machine may go back a little.
    return None if whole <= 0 else min(max(1 - idle / whole, 0.0), 1.0)
