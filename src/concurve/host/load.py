"""What uses this machine's CPUs now: two readings of ``/proc`` and their difference."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from concurve import words
from concurve.terms import ANOTHER_RUN
from concurve.wire.spec import Attach

#: Places in the line ``cpu`` of ``/proc/stat``, which begins with user, nice and system.
_IDLE, _IOWAIT, _STEAL = 3, 4, 7

#: What makes the threads of the kernel, under this number.
_KERNEL, _KERNEL_PID = "kthreadd", 2
#: The program that runs a trial: all others of the trial are below it.
_RUNNER = "concurve-trial"
#: The programs of a run. The first one does more than measure, so without the second it is no run.
_RUNS = ("concurve", _RUNNER)

#: Whether the scheduler shares the CPUs among sessions first, under ``/proc``.
_AUTOGROUPS = "sys/kernel/sched_autogroup_enabled"

#: So many processes are named.
NAMED_MAX = 3
#: What they leave of the CPU time of all others is told from this share of the machine's on.
REST_MIN = 0.01


def is_seen(share: float) -> bool:
    """Is a share more than 0 % as it is printed? Shares are counts of ticks, so one of exactly half
    a percent is common, and is rounded to 0 %."""
    return float(f"{share * 100:.0f}") > 0


class Process(NamedTuple):
    """A process that used CPU time: its ``share`` of the machine's. ``run`` is the process of
    another run of concurve that it belongs to, if there is one."""

    name: str
    pid: int
    nice: int
    share: float
    run: int | None = None

    @property
    def whose(self) -> str:
        """Its name, or that it is of another run of concurve."""
        return self.name if self.run is None else ANOTHER_RUN

    def __str__(self) -> str:
        said = f"pid {self.pid}, nice {self.nice}"
        if self.run is not None:
            said = f"{said}, of a concurve command, pid {self.run}"
        return f"{self.name} ({said}) {self.share * 100:.0f} %"


class Load(NamedTuple):
    """Shares of the machine's CPU time: ``foreign`` of processes that are not ours, ``steal`` of
    the hypervisor; and the processes that used most, the first one most."""

    foreign: float
    steal: float
    processes: tuple[Process, ...] = ()

    @property
    def seen(self) -> tuple[Process, ...]:
        """The processes whose share is not 0 % once it is rounded."""
        return tuple(process for process in self.processes if is_seen(process.share))

    @property
    def rest(self) -> float:
        """The share of the others, and of those that have ended since. A process is read at other
        moments than the machine, so those that are seen may seem to have taken more than all."""
        return max(0.0, self.foreign - sum(process.share for process in self.seen))

    @property
    def named(self) -> str:
        """The processes in words, and what they leave of the CPU time of all others."""
        named = [*map(str, self.seen)]
        if not named:
            return "short-lived processes, or many small ones"
        if self.rest >= REST_MIN:
            named.append(f"others or short-lived ones {self.rest * 100:.0f} %")
        return ", ".join(named)


class Reading(NamedTuple):
    """Ticks since the start: of the whole machine, of its idle time, of steal, and by process."""

    total: int
    idle: int
    steal: int
    processes: Mapping[tuple[int, int], _Used]


class _Used(NamedTuple):
    name: str
    nice: int
    ticks: int
    parent: int


def read(root: Path = Path("/")) -> Reading:
    """The counters now. Processes that end meanwhile are left out.

    Raises:
        OSError: there is no ``/proc/stat``.
    """
    with (root / "proc/stat").open(encoding="utf-8") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    fields += [0] * (8 - len(fields))
    processes = {}
    has_groups = has_autogroups(root / "proc" / _AUTOGROUPS)
    for folder in (root / "proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
                key, used = _process(text)
            except (OSError, ValueError, IndexError):
                continue
            if has_groups:
                of_session = autogroup_nice(key[0], root / "proc")
                used = used._replace(nice=max(used.nice, of_session))
            processes[key] = used
    return Reading(sum(fields), fields[_IDLE] + fields[_IOWAIT], fields[_STEAL], processes)


def between(
    before: Reading, after: Reading, own: int | None = None, attached: Sequence[Attach] = ()
) -> Load:
    """The load between two readings, without the process ``own`` (this one if not given), without
    threads of the kernel, and without the processes that are attached. Threads of the kernel are no
    strangers in a trial either: they write what its programs wrote, also after these have ended."""
    total = after.total - before.total
    if total <= 0:
        return Load(0.0, 0.0)
    own = os.getpid() if own is None else own
    ours = {own, *_of_kernel(after)} | {pid for each in attached for pid in _attached(each, after)}
    used = {
        key: now.ticks - (before.processes[key].ticks if key in before.processes else 0)
        for key, now in after.processes.items()
    }
    our_ticks = sum(ticks for (pid, _), ticks in used.items() if pid in ours)
    steal = after.steal - before.steal
    busy = total - (after.idle - before.idle) - steal
    run_of = _other_runs(after, own)
    most = sorted((item for item in used.items() if item[0][0] not in ours), key=lambda it: -it[1])
    return Load(
        foreign=max(0.0, (busy - our_ticks) / total),
        steal=max(0.0, steal / total),
        processes=tuple(
            Process(
                after.processes[key].name,
                key[0],
                after.processes[key].nice,
                ticks / total,
                run_of(key[0]),
            )
            for key, ticks in most[:NAMED_MAX]
            if ticks > 0
        ),
    )


def load_over(
    seconds: float,
    sleep: Callable[[float], None],
    root: Path = Path("/"),
    attached: Sequence[Attach] = (),
) -> Load:
    """The load over the next seconds, without the processes that are attached."""
    before = read(root)
    sleep(seconds)
    return between(before, read(root), attached=attached)


def loads_over(
    seconds: float, count: int, sleep: Callable[[float], None], root: Path = Path("/")
) -> tuple[Load, list[Load]]:
    """The load over the next seconds, and that of each of so many equal parts of them."""
    readings = [read(root)]
    for _ in range(count):
        sleep(seconds / count)
        readings.append(read(root))
    return between(readings[0], readings[-1]), [*map(between, readings, readings[1:])]


def _of_kernel(now: Reading) -> set[int]:
    """The numbers of the threads of the kernel, where they are seen: not in a container."""
    found = {
        pid
        for (pid, _), process in now.processes.items()
        if process.parent == _KERNEL_PID or (pid, process.name) == (_KERNEL_PID, _KERNEL)
    }
    return found if _KERNEL_PID in found else set()


def _other_runs(now: Reading, own: int) -> Callable[[int], int | None]:
    """Says of a process to which run of concurve it belongs, other than that of the process
    ``own``: the number of the first process of that run."""
    known = {pid: process for (pid, _), process in now.processes.items()}

    def line_of(pid: int) -> list[int]:
        """A process and those above it; a number may come again while the tree changes."""
        line: list[int] = []
        while pid in known and pid not in line:
            line.append(pid)
            pid = known[pid].parent
        return line

    mine = {own, *line_of(own)}

    runs: set[int] = set()
    for pid, process in known.items():
        if process.name == _RUNNER:
            found = [it for it in line_of(pid) if known[it].name in _RUNS and it not in mine]
            runs.update(found[-1:])

    def run_of(pid: int) -> int | None:
        # The first process of a run is of it as well.
        return next((one for one in reversed(line_of(pid)) if one in runs), None)

    return run_of


def _attached(attach: Attach, now: Reading) -> set[int]:
    """The numbers of the processes that are attached: of a cgroup and those below it, or a process
    and its descendants."""
    if attach.cgroup is not None:
        return _in_cgroup(Path(attach.cgroup))
    children: dict[int, list[int]] = {}
    for (pid, _), process in now.processes.items():
        children.setdefault(process.parent, []).append(pid)
    first = attach.process
    found = [first.pid] if first and (first.pid, first.started_ticks) in now.processes else []
    for pid in found:
        found += children.pop(pid, [])  # once: a number may come again as a descendant
    return set(found)


def _in_cgroup(folder: Path) -> set[int]:
    found: set[int] = set()
    for path, _, _ in os.walk(folder):
        with contextlib.suppress(OSError, ValueError):
            text = Path(path, "cgroup.procs").read_text(encoding="ascii")
            found.update(map(int, text.split()))
    return found


def autogroup_nice(pid: int, proc: Path = Path("/proc")) -> int:
    """The nice value of the session of a process; 0, the usual one, where it is not told."""
    try:
        said = (proc / str(pid) / "autogroup").read_text(encoding="ascii")
        return int(said.rpartition(" ")[2])  # /autogroup-123 nice 0
    except (OSError, ValueError):
        return 0


def has_autogroups(path: Path = Path("/proc") / _AUTOGROUPS) -> bool:
    """Does the kernel share the CPUs among sessions first, as desktops have it (sched(7))?"""
    try:
        return path.read_text(encoding="ascii").strip() == "1"
    except (OSError, ValueError):
        return False


def _process(text: str) -> tuple[tuple[int, int], _Used]:
    """A line of ``/proc/PID/stat``; the name may hold blanks, parentheses and line ends."""
    head, _, tail = text.rpartition(")")
    pid, _, name = head.partition(" (")
    fields = tail.split()
    ticks, nice, started = int(fields[11]) + int(fields[12]), int(fields[16]), int(fields[19])
    return (int(pid), started), _Used(words.clean(name), nice, ticks, parent=int(fields[1]))
