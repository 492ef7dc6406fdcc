"""The disk simulator under two schedulers: what the disk does, event by event."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from concurve.errors import HostError, StudyError
from concurve.measuring.packaged import command
from concurve.report import format as fmt

#: So many requests are simulated for a page; the command line takes more.
REQUESTS_MAX = 4_000
PROCESSES_MAX = 16

#: So long a simulation may take; these take milliseconds.
SIMULATION_SECONDS = 20.0

Scheduler = Literal["noop", "deadline", "as", "cfq2", "cfq", "mq-deadline", "bfq"]
SCHEDULERS: tuple[Scheduler, ...] = (
    "noop", "deadline", "as", "cfq2", "cfq", "mq-deadline", "bfq",
)  # fmt: skip


class DiskForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Processes on one disk, as ``concurve-disk streams`` takes them, and the two schedulers."""

    schedulers: tuple[Scheduler, Scheduler] = ("deadline", "cfq")
    sequential_readers: int = 2
    random_readers: int = 0
    writers: int = 1
    think_ms: float = 0.5
    depth: int = 1
    request_kib: int = 64
    requests: int = 60
    seed: int = 1


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a disk does: ``arrive``, ``merge``, ``serve``, ``cache`` or ``end``. Times in ns since
    the start, places as cylinders. A request that was ``reported`` as done is served out of the
    cache."""

    event: str
    at_ns: int = 0
    end_ns: int = 0
    ticket: int = 0
    into: int = 0
    process: int = 0
    direction: str = ""
    cylinder: int = 0
    from_: int = msgspec.field(default=0, name="from")
    to: int = 0
    reported: bool = False


class _Disks(msgspec.Struct, frozen=True):
    cylinders: int


class Simulated(msgspec.Struct, frozen=True):
    """A simulation: its scheduler, its command line, the figures that it printed, the number of
    cylinders, and all events in the order of time."""

    scheduler: str
    line: tuple[str, ...]
    figures: str
    cylinders: int
    events: tuple[Event, ...]


def simulate(form: DiskForm) -> list[Simulated]:
    """The same processes under both schedulers.

    Raises:
        StudyError: a value out of its range.
        HostError: the simulator is not built, or it refuses.
    """
    _check(form)
    program = command("disk", "the disk")
    return [_simulated(program, form, scheduler) for scheduler in form.schedulers]


def _check(form: DiskForm) -> None:
    processes = form.sequential_readers + form.random_readers + form.writers
    for name, value, least, most in (
        ("sequential readers", form.sequential_readers, 0, PROCESSES_MAX),
        ("random readers", form.random_readers, 0, PROCESSES_MAX),
        ("writers", form.writers, 0, PROCESSES_MAX),
        ("processes", processes, 1, PROCESSES_MAX),
        ("think time", form.think_ms, 0, 1000),
        ("depth", form.depth, 1, 128),
        ("KiB of a request", form.request_kib, 1, 512),
        ("requests", form.requests, 1, REQUESTS_MAX),
        ("requests of all processes", form.requests * processes, 1, REQUESTS_MAX),
        ("seed", form.seed, 0, 2**53),
    ):
        if not least <= value <= most:
            raise StudyError(f"{name}: {value} is out of range", f"a number from {least} to {most}")


def _words(form: DiskForm, scheduler: str) -> list[str]:
    return [
        "streams",
        f"--scheduler={scheduler}",
        "--disks=1",
        f"--sequential-readers={form.sequential_readers}",
        f"--random-readers={form.random_readers}",
        f"--writers={form.writers}",
        f"--think-ms={form.think_ms}",
        f"--depth={form.depth}",
        f"--request-kib={form.request_kib}",
        f"--requests={form.requests}",
        f"--seed={form.seed}",
    ]


def _simulated(program: tuple[str, ...], form: DiskForm, scheduler: str) -> Simulated:
    words = _words(form, scheduler)
    with tempfile.TemporaryDirectory(prefix="concurve-disk-") as folder:
        file = Path(folder, "events")
        figures = _run([*program, *words, f"--events={file}"])
        first, *lines = file.read_bytes().splitlines()
    return Simulated(
        scheduler=scheduler,
        line=("concurve-disk", *words),
        figures=figures,
        cylinders=msgspec.json.decode(first, type=_Disks).cylinders,
        events=tuple(msgspec.json.decode(line, type=Event) for line in lines),
    )


def _run(line: list[str]) -> str:
    """What the simulator prints."""
    environment = {name: value for name, value in os.environ.items() if name != "CONCURVE_REPORT"}
    try:
        done = subprocess.run(
            line,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SIMULATION_SECONDS,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"the simulation did not end within {SIMULATION_SECONDS:.0f} s", "fewer requests"
        ) from error
    if done.returncode != 0:
        said = fmt.clean(done.stderr.strip()[-400:])
        raise HostError(f"the simulator refuses: {said}", "another value of the form")
    return fmt.clean_lines(done.stdout)
