"""What it costs to read the server's counters, and whether they agree with the kernel's."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from measuring import Bound, Figure, interleaved, median, median_of_ratios
from server import Running, serving

from concurve.host import native
from concurve.monitor.asking import watching

#: As often as sp_sysmon samples.
READ_EVERY_SECONDS = 0.1

SESSIONS = 16

MODES = {
    "threads": ("--engines", "threads", "--execution", "worker", "--io-threads", "1"),
    "processes": ("--engines", "processes"),
}


def figures(quick: bool) -> Iterator[Figure]:
    """The cost of reading, then agreement, in both modes."""
    rounds, seconds = (2, 0.3) if quick else (41, 1.0)
    for mode in MODES:
        with serving(*ours(mode)) as server:
            make(server)
            yield cost(server, mode, rounds, seconds)
            yield agreement(server, mode, 2 if quick else 9, 0.5 if quick else 4.0)


def ours(mode: str) -> tuple[str, ...]:
    program = str(native.binary("concurve-server"))
    data = ("--service", "statements", "--folder", "data", "--durability", "none")
    return (program, *data, "--latching", "record", *MODES[mode], "--engine-count", "2")


def cost(server: Running, mode: str, rounds: int, seconds: float) -> Figure:
    """Throughput with a reader over throughput without one."""
    sides: dict[str, Callable[[], Mapping[str, float]]] = {
        "alone": lambda: {"rate": load(server, seconds)},
        "read": lambda: {"rate": read_meanwhile(server, lambda: load(server, seconds))},
    }
    found = interleaved(rounds, sides)
    return Figure(
        f"{mode}: throughput, read / not read",
        f"read every 100 ms; {SESSIONS} sessions of the loop, {rounds} rounds of {seconds} s",
        median_of_ratios(found["read rate"], found["alone rate"]),
        Bound(low=0.99, parity=True),
    )


def read_meanwhile(server: Running, work: Callable[[], float]) -> float:
    """Does something while the counters are read again and again."""
    stop = threading.Event()

    def read() -> None:
        with watching("127.0.0.1", server.port) as watched:
            while not stop.wait(READ_EVERY_SECONDS):
                watched.read()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        return work()
    finally:
        stop.set()
        reader.join()


def agreement(server: Running, mode: str, rounds: int, seconds: float) -> Figure:
    """CPU time of the server by its own counters over that of /proc, under load."""
    ratios = []
    with watching("127.0.0.1", server.port) as watched:
        for _ in range(rounds):
            before = watched.read().cpu_us / 1e6, cpu_seconds(server.pid)
            load(server, seconds)
            after = watched.read().cpu_us / 1e6, cpu_seconds(server.pid)
            ratios.append((after[0] - before[0]) / (after[1] - before[1]))
    return Figure(
        f"{mode}: CPU time, the monitor / /proc",
        f"of the server and its children, over {seconds} s of load, {rounds} rounds",
        median(ratios),
        Bound(low=0.99, high=1.01),
    )


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and all below it (proc_pid_stat(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            children += map(int, (task / "children").read_text().split())
    return own + sum(cpu_seconds(child) for child in children)


def make(server: Running) -> None:
    subprocess.check_call([*driver(server), "--init-only"], stdout=subprocess.DEVNULL)


def load(server: Running, seconds: float) -> float:
    """Loops a second.

    Raises:
        SystemExit: a statement failed.
    """
    line = [*driver(server), "--sessions", str(SESSIONS), "--duration", str(seconds), "--json"]
    said = json.loads(subprocess.check_output(line))
    if said["errors"]:
        raise SystemExit(f"benches: the load generator met errors: {said['errors_by_kind']}")
    return float(said["rate_per_second"])


def driver(server: Running) -> list[str]:
    address = f"statements://127.0.0.1:{server.port}"
    data = ["--workload", "loop", "--scale", "8", "--accounts", "1000"]
    return [str(native.binary("concurve-load")), address, *data]
