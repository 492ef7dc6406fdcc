"""What the scheduler says of the threads of a process."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

#: Threads that compute have names of their own; the carriers of virtual threads share one.
_WORKER = re.compile(r"Thread-[0-9]+")
_CARRIER = "ForkJoinPool-"

#: Places in ``/proc/PID/stat`` behind the name: priority and policy.
_PRIORITY, _POLICY = 15, 38
_SCHED_IDLE = 5

#: Nice 0 has priority 20 there, and 19 in ``ps``.
_PS_BASE = 39


class Scheduled(NamedTuple):
    """A thread until now: its CPU time, its switches, and its priority in the scale of PRI in
    ``ps``: 0 to 39 by the nice value (nice 0 is 19), above 40 for real-time policies, -1 for
    SCHED_IDLE. ``None`` where several threads are one."""

    cpu_seconds: float
    voluntary_switches: int
    involuntary_switches: int
    priority: int | None


class ThreadsOf:
    """The threads of a process, as they were seen last. Those that have ended are remembered."""

    def __init__(self, pid: int, root: Path = Path("/proc")) -> None:
        self._folder = root / str(pid) / "task"
        self._workers: dict[str, Scheduled] = {}
        self._others: dict[str, Scheduled] = {}

    @property
    def workers(self) -> Mapping[str, Scheduled]:
        """Those that compute, by name."""
        return self._workers

    @property
    def others(self) -> tuple[int, Scheduled] | None:
        """All others as one, and how many they are; ``None`` before the first look."""
        if not self._others:
            return None
        cpu, voluntary, involuntary, _ = zip(*self._others.values(), strict=True)
        return len(self._others), Scheduled(sum(cpu), sum(voluntary), sum(involuntary), None)

    def ids(self) -> list[int]:
        """The kernel's ids of the threads that live."""
        try:
            return [int(task.name) for task in self._folder.iterdir()]
        except OSError:
            return []

    def look(self) -> None:
        """Read what the scheduler says of each."""
        for number in self.ids():
            with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
                name, seen = _thread(self._folder / str(number))
                if _WORKER.fullmatch(name):
                    self._workers[name] = seen
                elif name.startswith(_CARRIER):
                    self._workers[f"carrier {number}"] = seen
                else:
                    self._others[str(number)] = seen


def _thread(task: Path) -> tuple[str, Scheduled]:
    """The name of a thread, and what the scheduler says of it."""
    _, _, rest = (task / "stat").read_text(errors="replace").partition("(")
    name, _, after = rest.rpartition(")")
    fields = after.split()
    is_idle = int(fields[_POLICY]) == _SCHED_IDLE
    ran = int((task / "schedstat").read_text().split()[0])
    status = dict(_pairs((task / "status").read_text(errors="replace")))
    return name, Scheduled(
        ran / 1e9,
        int(status["voluntary_ctxt_switches"]),
        int(status["nonvoluntary_ctxt_switches"]),
        -1 if is_idle else _PS_BASE - int(fields[_PRIORITY]),
    )


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name, value.strip()
