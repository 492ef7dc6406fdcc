"""What the tests look at on a host, and do to it: ``list MARK``, ``used MARK``, ``strike MARK
NUMBER WORDS``, ``signal MARK NUMBER PID``.

The text of this file is given to the Python of a host, as OpenSSH passes commands on, so it needs
nothing but Python there. It answers with JSON, and speaks of the processes of one Ray and of trials
alone: those with the mark of that Ray and what they started, those of a trial, and trial runners.
Hosts that are namespaces of one machine see each other's processes, so only those with the network
of this one count.
"""

from __future__ import annotations

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


def used(pids: dict[int, str]) -> dict[str, int]:
    """The CPU time of processes so far, and their memory: shared pages are shared out."""
    ticks = size = 0
    for pid in pids:
        if found := fields(pid):
            ticks += int(found[11]) + int(found[12])
        for row in read(pid, "smaps_rollup").splitlines():
            if row.startswith(b"Pss:"):
                size += int(row.split()[1]) * 1024
    return {"cpu_ns": ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK"), "bytes": size}


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
    if verb == "used":
        said = used(pids)
    elif verb == "strike":
        said = strike(pids, int(more[0]), more[1])
    elif verb == "signal" and int(more[1]) in pids:
        signal(int(more[1]), int(more[0]))
    print(json.dumps(said))


if __name__ == "__main__":
    main()
