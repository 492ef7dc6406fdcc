"""What it costs to read the server's counters, and whether they agree with the kernel's."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from measuring.estimates import SEED, median
from measuring.figures import Bound, Figure
from measuring.running import cpu_seconds
from measuring.showing import alone
from server import Running, placed, serving

from concurve.host import native
from concurve.monitor.asking import Watched, watching
from concurve.monitor.reading import Reading

READINGS_PER_SECOND = 10
"""As often as sp_sysmon samples."""

FASTER = 10
"""So many times as often is read where throughput is compared: what a reading costs does not depend
on how often it is done, and ten times the loss stands out from noise ten times as clearly."""

WINDOW_SECONDS = 0.05

READ_FIRST = (True, False, False, True)
"""Four windows of a round, or their opposites: a drift of the machine meets both kinds alike."""

SESSIONS = 16

MODES = {
    "threads": ("--engines", "threads", "--execution", "worker", "--io-threads", "1"),
    "processes": ("--engines", "processes"),
}


def figures(quick: bool) -> Iterator[Figure]:
    """The cost of reading, as throughput and as CPU time, then agreement, in both modes."""
    cpus = sorted(os.sched_getaffinity(0))
    for mode in MODES:
        with contextlib.ExitStack() as stack:
            with placed(cpus[-1]):
                server = stack.enter_context(serving(*ours(mode)))
            make(server)
            with placed(cpus[0]):
                yield throughput(server, mode, 2 if quick else 300)
            yield cpu_time(server, mode, *((2, 10) if quick else (21, 500)))
            yield agreement(server, mode, *((2, 0.2) if quick else (7, 4.0)))


def ours(mode: str) -> tuple[str, ...]:
    program = str(native.binary("concurve-server"))
    data = ("--service", "statements", "--folder", "data", "--durability", "none")
    return (program, *data, "--latching", "record", *MODES[mode], "--engine-count", "2")


# -- what reading costs -----------------------------------------------------------------------


def throughput(server: Running, mode: str, rounds: int) -> Figure:
    """Throughput with a reader over throughput without one, in adjacent windows of one load.

    Loads of their own differ by 10 % from run to run, windows side by side by far less. Server and
    load have a CPU each, since where the kernel places them, it changes its mind.
    """
    draw, read, not_read = random.Random(SEED), list[float](), list[float]()
    with watching("127.0.0.1", server.port) as watched, under_load(server, watched):
        for _ in range(rounds):
            is_read = READ_FIRST if draw.random() < 0.5 else tuple(not it for it in READ_FIRST)
            rates = windows(watched, is_read)
            for side, kind in ((read, True), (not_read, False)):
                side.append(sum(r for r, it in zip(rates, is_read, strict=True) if it is kind))
    return Figure(
        f"{mode}: throughput, read / not read",
        f"read {READINGS_PER_SECOND} times a second: 1/{FASTER} of the loss by {FASTER} times as "
        f"many; {SESSIONS} sessions, {rounds} rounds of 4 windows of {WINDOW_SECONDS} s",
        median([1 - (1 - a / b) / FASTER for a, b in zip(read, not_read, strict=True)]),
        Bound(low=0.99),
    )


def windows(watched: Watched, is_read: Sequence[bool]) -> list[float]:
    """Transactions a second of adjacent windows, by the server's own clock and counts. Their edges
    are read, too, the same for all."""
    readings = round(WINDOW_SECONDS * READINGS_PER_SECOND * FASTER)
    pause = WINDOW_SECONDS / (readings + 1)
    rates, before = [], watched.read()
    for reads in is_read:
        for _ in range(readings):
            time.sleep(pause)
            if reads:
                watched.read()
        time.sleep(pause)
        after = watched.read()
        done = after.work["transactions"] - before.work["transactions"]
        rates.append(done / (after.at_us - before.at_us) * 1e6)
        before = after
    return rates


@contextlib.contextmanager
def under_load(server: Running, watched: Watched) -> Iterator[None]:
    """All sessions execute their loop at the same time.

    Raises:
        SystemExit: a statement failed, or nothing was done.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(loops(server, 3600), stdout=pipe, stderr=pipe) as process:
        try:
            wait_until_busy(watched, process)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            said, why = process.communicate()
    if process.returncode != 128 + signal.SIGINT:
        raise SystemExit(f"benches: the load generator failed: {why.decode().strip()}")
    without_errors(said)


def wait_until_busy(watched: Watched, process: subprocess.Popen[bytes]) -> None:
    """A second after the first thousand transactions, or until the load has ended."""
    first = watched.read().work["transactions"]
    while process.poll() is None and watched.read().work["transactions"] < first + 1000:
        time.sleep(0.05)
    time.sleep(1)


def cpu_time(server: Running, mode: str, rounds: int, readings: int) -> Figure:
    """CPU time of the server for so many readings a second, from readings as fast as it answers.

    The server is otherwise idle, so each reading also costs its wake-up.
    """
    shares = []
    with watching("127.0.0.1", server.port) as watched:
        for _ in range(rounds):
            taken: list[Reading] = [watched.read() for _ in range(readings + 1)]
            used_us = taken[-1].cpu_us - taken[0].cpu_us
            shares.append(used_us / readings * READINGS_PER_SECOND / 1e6)
    return Figure(
        f"{mode}: {READINGS_PER_SECOND} readings a second",
        f"CPU time of the server, as a share of one CPU; {rounds} rounds of {readings} readings",
        median([100 * share for share in shares], "%"),
        Bound(high=1.0),
    )


# -- whether they agree -----------------------------------------------------------------------


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


def make(server: Running) -> None:
    subprocess.check_call([*driver(server), "--init-only"], stdout=subprocess.DEVNULL)


def load(server: Running, seconds: float) -> None:
    """All sessions do their loop for so long.

    Raises:
        SystemExit: a statement failed.
    """
    without_errors(subprocess.check_output(loops(server, seconds)))


def loops(server: Running, seconds: float) -> list[str]:
    return [*driver(server), "--sessions", str(SESSIONS), "--duration", f"{seconds}s", "--json"]


def without_errors(said: bytes) -> None:
    found = json.loads(said)
    if found["errors"]:
        raise SystemExit(f"benches: the load generator met errors: {found['errors_by_kind']}")


def driver(server: Running) -> list[str]:
    address = f"statements://127.0.0.1:{server.port}"
    data = ["--workload", "loop", "--scale", "8", "--accounts", "1000"]
    return [str(native.binary("concurve-load")), address, *data]


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
