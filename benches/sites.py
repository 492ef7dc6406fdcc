"""Sites: how often a sampled wait for a lock is named by the right function and line.

The programs in ``sites_programs`` say themselves at which of their sites each thread waits. The
judge (an example of the crate ``concurve-sites``) samples them, and compares. Then, what sampling
costs the programs (``--only cost``): busy threads, threads at a lock, and threads that change their
address space. What the runner adds to a trial is a figure of ``light``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measuring.estimates import median_of_ratios
from measuring.figures import Bound, Figure, MissingToolError, unless_missing
from measuring.running import NO_SAMPLING, interleaved, scratch, target, trial
from measuring.showing import exit_code, show

from concurve.estimate import Estimate
from concurve.wire.record import SitesRecord, TrialRecord

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(__file__).resolve().parent / "sites_programs"

SAMPLES = 300
"""Of each program; at least 200 are promised to be judged."""

JUDGED_MIN = 200
LIMIT_S = 60
THREADS = 4
FUNCTION_MIN, LINE_MIN, WITHOUT_LINES_MIN = 0.99, 0.98, 0.98
PYTHON_MIN, GO_MIN = 0.98, 0.97
WRONG_MAX = 0.005
HOLDER_MIN = 0.99
SAMPLE_CPU_US_MAX = 60.0

COST = "cost"
"""The name of the figures on what sampling costs the programs, beside those of the plants."""

BUSY_MIN, LOCK_MIN = 0.98, 0.95
"""Throughput with all samples over that without any: of busy threads, and of a lock."""

COPIES_MIN = 10
"""Waits whose place was read a second, while a lock saturates two CPUs: else the throughput says
nothing of copying."""

ROUNDS = 21
ITERATIONS = 1_500_000_000
OPERATIONS = 240_000
MAPPED = 24_000

CRATE = "parking_lot"
"""The plant that is a package, because it needs one."""


class Plant(NamedTuple):
    """A program: how it is built, and whether it has debug information (``lines``). ``least`` is
    the share of samples whose function and line must be right, where it is not that of compiled
    programs. ``holder``: its lock says who has it, and so does the program."""

    name: str
    source: str
    build: tuple[str, ...]
    lines: bool = True
    least: float | None = None
    holder: bool = False


_C = ("gcc", "-O2", "-pthread")
_CPP = ("g++", "-O2", "-pthread")
_RUST = ("rustc", "-O", "--edition", "2021")
_PYTHON = ("python3",)
_GO = ("go", "build", "-buildvcs=false")


def _mutex(name: str, *options: str, lines: bool = True, holder: bool = True) -> Plant:
    build = (*_C, *options)
    return Plant(f"pthread mutex{name}", "c/mutex.c", build, lines=lines, holder=holder)


PLANTS = (
    _mutex("", "-g"),
    _mutex(", no debug information", lines=False),
    _mutex(", frame pointers", "-g", "-fno-omit-frame-pointer"),
    _mutex(", not optimised", "-g", "-O0"),
    _mutex(", no linkage table", "-g", "-fno-plt", "-Wl,-z,now"),
    # The lock is in no library of the system there.
    _mutex(", statically linked", "-g", "-static", holder=False),
    Plant("reader-writer lock", "c/rwlock.c", (*_C, "-g")),
    Plant("condition variable", "c/condition.c", (*_C, "-g")),
    Plant("semaphore", "c/semaphore.c", (*_C, "-g")),
    Plant("barrier of a condition", "c/rounds.c", (*_C, "-g")),
    Plant("lock of a condition", "c/permit.c", (*_C, "-g")),
    Plant("file lock", "c/file_lock.c", (*_C, "-g")),
    Plant("std::mutex", "cpp/std_mutex.cpp", (*_CPP, "-g"), holder=True),
    Plant("std::mutex, no debug information", "cpp/std_mutex.cpp", _CPP, lines=False, holder=True),
    Plant("Rust Mutex", "rust/std_mutex.rs", (*_RUST, "-g")),
    Plant("Rust Mutex, no debug information", "rust/std_mutex.rs", _RUST, lines=False),
    Plant("parking_lot Mutex", f"{CRATE}/src/main.rs", ("cargo",)),
    Plant("CPython's GIL", "python/gil.py", _PYTHON, least=PYTHON_MIN),
    Plant("threading.Lock", "python/lock.py", _PYTHON, least=PYTHON_MIN),
    Plant("queue.Queue, threading.Condition", "python/queue_of_one.py", _PYTHON, least=PYTHON_MIN),
    Plant("Go sync.Mutex", "go/mutex.go", _GO, least=GO_MIN),
    Plant("Go sync.RWMutex", "go/rwmutex.go", _GO, least=GO_MIN),
)


def figures(quick: bool, only: Collection[str] = ()) -> Iterator[Figure]:
    """Judge one program after the other."""
    yield from _of_plants(quick, only)
    if not only or COST in only:
        yield from costs(quick)


def costs(quick: bool) -> Iterator[Figure]:
    """What sampling costs the sampled programs."""
    part = 20 if quick else 1
    for threads in (64, 512):
        work = ("--threads", str(threads), "--total-iterations", str(ITERATIONS // part))
        busy, _ = _throughput(f"{threads} busy threads", target("busy", *work), BUSY_MIN, quick)
        yield busy
    lock = ("--threads", "4", "--hold-percent", "50", "--vary", "--operation-iterations", "5000")
    command = target("mutex", *lock, "--operations", str(OPERATIONS // part))
    figure, records = _throughput("a lock on two CPUs", command, LOCK_MIN, quick)
    yield figure
    yield copies(f"{COST}: a lock on two CPUs, sites read", records)
    with scratch() as folder:
        for compiler, source in ((_C, "c/mappers.c"), (_GO, "go/mappers.go")):
            yield from _changing(compiler, source, folder, quick)
        how = "a thread of the program reads the tracer and the state of all others meanwhile"
        figure = Figure(f"{COST}: threads seen traced or stopped", how, bound=Bound(high=0))
        yield unless_missing(figure, lambda: _traced(folder, "0.2" if quick else "5"))


def _changing(
    compiler: tuple[str, ...], source: str, folder: Path, quick: bool
) -> Iterator[Figure]:
    """Programs whose threads change the address space against each other: who reads their memory
    takes the lock that they need for it."""
    program = folder / source.replace("/", "-").replace(".", "-")
    what = f"mmap against mmap, {compiler[0]}"
    try:
        _output([*compiler, "-o", str(program), str(PROGRAMS / source)])
    except MissingToolError as problem:
        yield Figure(f"{COST}: {what}", "", missing=str(problem))
        return
    rounds = str(MAPPED // (20 if quick else 1))
    figure, records = _throughput(what, [str(program), str(THREADS), rounds], LOCK_MIN, quick)
    yield figure
    yield changes(f"{COST}: {what}, changes seen", records)


def copies(name: str, records: Sequence[TrialRecord]) -> Figure:
    """How many waits had their place read, a second: without any, nothing was copied."""
    subjects = [record.roles[0] for record in records]
    sites = [role.sites or SitesRecord() for role in subjects]
    seconds = sum(record.wall_ns for record in records) / 1e9
    took = sum(record.instrument.sites_cpu_ns or 0 for record in records) / 1e9
    refusals = [why for role in subjects if (why := role.absent.get("sites"))]
    read = sum(one.readings for one in sites)
    if refusals and not read:
        return Figure(name, "", missing=refusals[0])
    torn, skipped = sum(one.torn for one in sites), sum(one.skipped for one in sites)
    return Figure(
        name,
        f"waits whose place was read, of a trial's second; {torn / seconds:.1f} torn, "
        f"{skipped / seconds:.1f} left out; copying took {100 * took / seconds:.2f} % of a CPU",
        Estimate(value=read / seconds, n=len(sites), unit="/s"),
        Bound(low=COPIES_MIN, counted=True),
    )


def changes(name: str, records: Sequence[TrialRecord]) -> Figure:
    """In how many readings threads were seen changing the address space: without any, nothing had
    to be left alone."""
    subjects = [record.roles[0] for record in records]
    seen = sum(role.waits.memory or 0 for role in subjects if role.waits)
    left = sum(role.sites.skipped for role in subjects if role.sites)
    read = sum(role.sites.readings for role in subjects if role.sites)
    return Figure(
        name,
        f"readings of threads that changed the address space, in {len(subjects)} trials; of waits "
        f"for locks {left} were left alone and {read} had their place read",
        Estimate(value=seen, n=len(subjects), unit="readings"),
        Bound(low=1, counted=True),
    )


def _throughput(
    what: str, command: list[str], least: float, quick: bool
) -> tuple[Figure, list[TrialRecord]]:
    """The same work with the sampler as usual and with it asleep, in turns; also the records of
    the trials with it."""
    rounds = 3 if quick else ROUNDS
    records: list[TrialRecord] = []

    def usual() -> dict[str, float]:
        records.append(trial(command))
        return {"wall": records[-1].wall_ns}

    def asleep() -> dict[str, float]:
        return {"wall": trial(command, NO_SAMPLING).wall_ns}

    found = interleaved(rounds, {"usual": usual, "asleep": asleep})
    samples = sorted(record.instrument.samples for record in records)[rounds // 2]
    figure = Figure(
        f"{COST}: {what}",
        f"throughput with all samples (about {samples} a trial) over that "
        f"without, median of the ratios of {rounds} rounds",
        median_of_ratios(found["asleep wall"], found["usual wall"]),
        Bound(low=least),
    )
    return figure, records


def _traced(folder: Path, seconds: str) -> Estimate:
    """How often a thread of a sampled program was seen traced, or stopped by a tracer."""
    program = folder / "traced"
    _output([*_C, "-o", str(program), str(PROGRAMS / "c" / "traced.c")])
    record = trial([str(program), seconds, str(THREADS)])
    said = {line.indicator: line.value for line in record.roles[0].indicators}
    sites = record.roles[0].sites
    if sites is None or not sites.readings:
        raise MissingToolError("no wait of the program was sampled")
    unit = f"[of {said['looks']:.0f} looks]"
    return Estimate(value=said["traced"], n=int(said["looks"]), unit=unit)


def _of_plants(quick: bool, only: Collection[str]) -> Iterator[Figure]:
    chosen = [plant for plant in PLANTS if not only or plant.name in only]
    if not chosen:
        return
    with scratch() as folder:
        try:
            judge = _judge()
        except MissingToolError as problem:
            yield Figure("sites", "", missing=str(problem))
            return
        for plant in chosen[:2] if quick and not only else chosen:
            try:
                said = _judged(judge, plant, folder, 20 if quick else SAMPLES)
            except MissingToolError as problem:
                yield Figure(plant.name, "", missing=str(problem))
                continue
            yield from of_plant(plant, said)


def of_plant(plant: Plant, said: dict[str, Any]) -> Iterator[Figure]:
    """What the judge's verdict on a program comes to."""
    judged, torn = said["judged"], said["torn"]
    last = f"; {said['shown'][0]}" if said["shown"] else ""
    how = f"{judged} samples judged, {torn} torn, {said['unknown']} unknown"
    yield Figure(
        f"{plant.name}: judged",
        "samples whose true site is known",
        Estimate(value=judged, n=judged, unit="samples"),
        Bound(low=JUDGED_MIN, counted=True),
    )
    function_min = plant.least or (FUNCTION_MIN if plant.lines else WITHOUT_LINES_MIN)
    yield _share(f"{plant.name}: function", how + last, said["function"], judged, function_min)
    if plant.lines:
        line_min = plant.least or LINE_MIN
        yield _share(f"{plant.name}: line", how + last, said["line"], judged, line_min)
    yield Figure(
        f"{plant.name}: wrong site",
        f"another function or another line is named; of {judged}",
        Estimate(value=said["wrong"], n=judged, unit=f"[{said['wrong']} of {judged}]"),
        Bound(high=WRONG_MAX * judged, counted=True),
    )
    if plant.holder:
        how = "the thread that has the lock, where the program says it"
        yield _share(f"{plant.name}: holder", how, said["holder"], said["held"], HOLDER_MIN)
    yield Figure(
        f"{plant.name}: misread holder",
        f"a thread is said to have what does not say who has it; of {judged}",
        Estimate(value=said["misread"], n=judged, unit=f"[{said['misread']} of {judged}]"),
        Bound(high=0, counted=True),
    )
    taken = said["capture_cpu_ns"] / max(said["taken"], 1)
    taken += said["resolve_cpu_ns"] / max(judged, 1)
    yield Figure(
        f"{plant.name}: CPU time",
        f"of each of {said['taken']} samples, with attempts that were torn and its naming",
        Estimate(value=taken / 1000, n=said["taken"], unit="µs"),
        Bound(high=SAMPLE_CPU_US_MAX),
    )


def _share(name: str, how: str, right: int, of: int, low: float) -> Figure:
    value = right / of if of else 0.0
    return Figure(name, how, Estimate(value=value, n=of, unit=f"[{right} of {of}]"), Bound(low=low))


def _judged(judge: Path, plant: Plant, folder: Path, samples: int) -> dict[str, Any]:
    """What the judge says of a program."""
    source = PROGRAMS / plant.source
    program = _command(plant, source, folder)
    command = [str(judge), str(source), str(samples), str(LIMIT_S), *program, str(THREADS)]
    found: dict[str, Any] = json.loads(_output(command))
    return found


def _command(plant: Plant, source: Path, folder: Path) -> list[str]:
    """What starts a program, built where it needs that."""
    if plant.build[0] == "cargo":
        target = folder / "target"
        manifest = PROGRAMS / CRATE / "Cargo.toml"
        command = ["cargo", "build", "--release", "--manifest-path", str(manifest)]
        _output([*command, "--target-dir", str(target)])
        return [str(target / "release" / "parking-lot-plant")]
    compiler = plant.build[0]
    found = shutil.which(compiler)
    if found is None:
        raise MissingToolError(f"no {compiler} here")
    if plant.build == _PYTHON:
        return [found, str(source)]
    program = folder / f"plant-{PLANTS.index(plant)}"
    _output([*plant.build, "-o", str(program), str(source)])
    return [str(program)]


def _judge() -> Path:
    """The judge, built as the runner that users have is: a sample's time is promised of that."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    build = ["cargo", "build", "--release", "-p", "concurve-sites"]
    _output([*build, "--example", "judge", "--target-dir", str(target)])
    return target / "release" / "examples" / "judge"


def _output(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        raise MissingToolError(f"no {command[0]} here")
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        why = " ".join(done.stderr.split())[-300:]
        raise MissingToolError(f"{' '.join(command)} exited with {done.returncode}: {why}")
    return done.stdout


def main() -> int:
    """The command line: all programs, or some of them by name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run; judges no bound")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a program")
    asked = parser.parse_args()

    def subject(quick: bool) -> Iterator[Figure]:
        return figures(quick, asked.only)

    return exit_code(show([subject], asked.quick), asked.quick)


if __name__ == "__main__":
    sys.exit(main())
