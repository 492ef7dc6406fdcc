"""What the tests look at on a host, and do to it: ``list MARK``, ``cpu MARK``, ``memory MARK
WORDS``, ``strike MARK NUMBER WORDS``, ``signal MARK NUMBER PID``.

The text of this file is given to the Python of a host, as OpenSSH passes commands on, so it needs
nothing but Python there. It answers with JSON, and speaks of the processes of one Ray and of trials
alone: those with the mark of that Ray and what they started, those of a trial, and trial runners.
Hosts that are namespaces of one machine see each other's processes, so only those with the network
of this one count.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import sys
from pathlib import Path

#: What Ray was started with, as ``concurve.hosts.commands`` has it; and what roles are given.
MARK = b"CONCURVE_RAY="
TRIAL = b"CONCURVE_TRIAL="
RUNNER = "concurve-trial"

PROC = Path("/proc")

#: An entry of a page in /proc/PID/pagemap (proc_pid_pagemap(5)): is it in memory, in which frame?
_PRESENT, _FRAME = 1 << 63, (1 << 55) - 1
_ENTRY = 8


def processes(mark: str, here: str = "") -> dict[int, str]:
    """Command lines by the numbers of the processes; ``here`` is their network, or that of this
    process."""
    parents = {}
    for folder in PROC.glob("[0-9]*"):
        found = fields(int(folder.name))
        if found and found[0] not in ("Z", "X"):
            parents[int(folder.name)] = int(found[1])
    ours = {pid for pid in parents if is_ours(pid, mark)}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    pid = os.getpid()
    while pid in parents:  # who looks is not looked for
        ours.discard(pid)
        pid = parents[pid]
    here = here or network("self")
    return {pid: line(pid) for pid in sorted(ours) if network(str(pid)) == here}


def is_ours(pid: int, mark: str) -> bool:
    """Has it the mark, or is it of a trial?"""
    variables = read(pid, "environ").split(b"\0")
    if MARK + mark.encode() in variables or any(it.startswith(TRIAL) for it in variables):
        return True
    return line(pid).partition(" ")[0].rpartition("/")[2] == RUNNER


def read(pid: int, name: str) -> bytes:
    """A file of a process; empty if it has ended, or is another user's."""
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def fields(pid: int) -> list[str]:
    """Those of ``stat`` after the name: the state, the parent, …; none if it has ended."""
    return read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def line(pid: int) -> str:
    """The command line of a process."""
    return read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def network(pid: str) -> str:
    """Which network a process has."""
    try:
        return str((PROC / pid / "ns" / "net").readlink())
    except OSError:
        return ""


def cpu_ns(pids: dict[int, str]) -> int:
    """The CPU time of processes so far."""
    ticks = 0
    for pid in pids:
        if found := fields(pid):
            ticks += int(found[11]) + int(found[12])
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def memory(pids: dict[int, str], words: str) -> dict[str, int]:
    """The bytes in memory of the processes without words in their command lines, ``others``, and
    those that the ones with them have besides, ``ours``. ``is_exact``: each page counts once, also
    one that a process elsewhere has too, on another host that is a namespace of this machine, say;
    only root may see that. Else each process counts by itself."""
    page = os.sysconf("SC_PAGE_SIZE")
    ours = [pid for pid, said in pids.items() if words in said]
    others = [pid for pid in pids if pid not in ours]
    of_others, of_all = frames(others, page), frames([*others, *ours], page)
    if of_all:
        own = len(of_all - of_others)
        return {"others": len(of_others) * page, "ours": own * page, "is_exact": True}
    rss = {pid: int((read(pid, "statm").split() or [b"0", b"0"])[1]) * page for pid in pids}
    return {
        "others": sum(rss[pid] for pid in others),
        "ours": sum(rss[pid] for pid in ours),
        "is_exact": False,
    }


def frames(pids: list[int], page: int) -> set[int]:
    """The frames of memory that processes have; none where they may not be seen."""
    found = set()
    for pid in pids:
        try:
            with (PROC / str(pid) / "pagemap").open("rb") as entries:
                for row in read(pid, "maps").splitlines():
                    begin, end = (int(it, 16) // page for it in row.split()[0].split(b"-"))
                    with contextlib.suppress(OSError, OverflowError):  # of the kernel
                        entries.seek(begin * _ENTRY)
                        data = entries.read((end - begin) * _ENTRY)
                        numbers = array.array("Q", data[: len(data) // _ENTRY * _ENTRY])
                        found |= {it & _FRAME for it in numbers if it & _PRESENT}
        except OSError:  # it has ended, or is another user's
            continue
    found.discard(0)  # what only root may see
    return found


def strike(pids: dict[int, str], number: int, words: str) -> list[int]:
    """Signal the first process with these words in its command line; its number, if there is
    one."""
    for pid, said in pids.items():
        if words in said:
            signal(pid, number)
            return [pid]
    return []


def signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def main() -> None:
    verb, mark, *more = sys.argv[1:]
    pids = processes(mark)
    said: object = pids
    if verb == "cpu":
        said = cpu_ns(pids)
    elif verb == "memory":
        said = memory(pids, more[0])
    elif verb == "strike":
        said = strike(pids, int(more[0]), more[1])
    elif verb == "signal" and int(more[1]) in pids:
        signal(int(more[1]), int(more[0]))
    print(json.dumps(said))


if __name__ == "__main__":
    main()
