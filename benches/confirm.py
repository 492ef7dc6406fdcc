"""Confirm: how often ``concurve explain --confirm`` is right, and whether its gain is true.

Each program of ``confirm_programs`` is measured over 1 and 2 threads, its cause is confirmed, and
where its lock can truly be held half as long, that is measured as well, side by side. Of a program
that nothing limits ``explain`` has nothing to confirm; its lock is held longer all the same, to see
what gain would be promised for it. All of it takes forty minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from measuring.estimates import SEED, median
from measuring.figures import Bound, Figure, MissingToolError
from measuring.running import interleaved, scratch, wall_seconds
from measuring.showing import exit_code, show

from concurve.engine.local import LocalEngine
from concurve.errors import ConcurveError
from concurve.estimate import Estimate
from concurve.explain import explain_run
from concurve.explain.confirmation import confirm_run
from concurve.explain.experiments import experiments, reach_of
from concurve.explain.predicted_gain import GAIN_MIN
from concurve.findings.confirmation import Confirmation, Confirmed
from concurve.findings.explanation import WaitSite
from concurve.host.machine import allowed_cpus
from concurve.host.preloading import why_not_preloaded
from concurve.measuring import packaged
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.stats.moments import mean
from concurve.store import Store
from concurve.store.run_head import decode_head

PROGRAMS = Path(__file__).resolve().parent / "confirm_programs"
CONCURVE = str(Path(sys.executable).parent / "concurve")
RUNS = 1
HARMLESS_RUNS = 2
"""Times as many, of programs that nothing limits: a run of theirs is short."""
BUDGET = "20s"
TRIED_SECONDS = 60.0
"""The same where nothing is accused: enough for all trials, however slow the machine is."""
TRUTH_ROUNDS = 7
SAID_MIN = 0.95
"""Share of the runs that say of a cause what is to be said."""
HELD_MIN = 0.9
"""Share of the predicted intervals that hold the true gain."""
HARMLESS_MIN = 0.95
"""Share of the runs on programs that nothing limits, of which none is promised a gain."""
NO_CAUSE = "no cause"
FAILED = "failed"
REFUSED = "cause that an experiment can confirm"
"""What ``explain --confirm`` says of a run with nothing to confirm, of one cell and of several."""
OUT_OF_REACH: Confirmed = "out of reach"


class Plant(msgspec.Struct, frozen=True):
    """A program, with ``{threads}`` and ``{held}`` in its command, and what must be said of it.
    ``function`` takes the lock by ``call``, where no sample names the place."""

    name: str
    source: str
    command: tuple[str, ...]
    verdict: str
    gain: bool
    flags: tuple[str, ...] = ()
    library: str = ""
    held: int = 0
    most: int = 2
    function: str = ""
    call: str = ""

    def line(self, built: Built, threads: str, held: int) -> list[str]:
        """The command of a trial."""
        meant = {"{held}": str(held), "{threads}": threads, "{library}": str(built.library)}
        words = list(self.command)
        for name, value in meant.items():
            words = [word.replace(name, value) for word in words]
        return [str(built.program), *words]


class UnmeasuredError(Exception):
    """A run of a program ended without a result."""


class Built(NamedTuple):
    """A program, and the library beside it."""

    program: Path
    library: Path | None


def plants() -> list[Plant]:
    """The programs of the table."""
    text = (PROGRAMS / "plants.toml").read_text(encoding="utf-8")
    return [msgspec.convert(entry, Plant) for entry in tomllib.loads(text)["plant"]]


class Counts:
    """What the runs of all programs said."""

    def __init__(self) -> None:
        self.said = self.runs = 0
        self.held = self.gains = 0
        self.quiet = self.harmless = 0
        self.modest = self.tried = 0
        self.failed = 0
        self.widths: list[float] = []

    def figures(self) -> Iterator[Figure]:
        """The shares that are promised."""
        if self.runs:
            how = "runs that say what is to be said, of programs that something limits"
            yield _share("verdicts", how, self.said, self.runs, SAID_MIN)
        if self.gains:
            how = "intervals that hold the true gain"
            yield _share("predicted gains", how, self.held, self.gains, HELD_MIN)
        if self.widths:
            how = "median of the widths of these intervals, as parts of the gain"
            yield Figure("predicted gains: width", how, median(self.widths))
        if self.harmless:
            how = "runs that promise no gain"
            yield _share("harmless", how, self.quiet, self.harmless, HARMLESS_MIN)
        if self.tried:
            how = "the same where their lock is held longer, or a gain that is truly there"
            yield _share("harmless, tried out", how, self.modest, self.tried, HARMLESS_MIN)
        how = "runs that ended without an answer"
        failed = Estimate(value=self.failed, n=self.failed, unit="runs")
        yield Figure("failed", how, failed, Bound(high=0, counted=True))

    def take_harmless(self, results: Sequence[str]) -> None:
        """What ``explain --confirm`` said of a program that nothing limits. Of a run that failed
        nothing is known."""
        ended = [result for result in results if result != FAILED]
        self.failed += len(results) - len(ended)
        self.quiet += sum(result != "confirmed" for result in ended)
        self.harmless += len(ended)

    def take_tried(self, found: Sequence[Confirmation], true: Estimate) -> None:
        """What holding its lock longer said, beside the gain that is truly there."""
        ended = [one for one in found if one.result != OUT_OF_REACH]
        self.failed += len(found) - len(ended)
        self.modest += sum(not promises_too_much(one, true) for one in ended)
        self.tried += len(ended)


def promises_too_much(found: Confirmation, true: Estimate) -> bool:
    """Is a gain promised where there is none, or a greater one than there is? Who holds a lock
    shorter has less work, so also a lock that nobody waits for may have a small one."""
    if found.result != "confirmed" or found.gain is None:
        return False
    most = true.value if true.high is None else true.high
    low = found.gain.times.low or 0.0
    return most < GAIN_MIN or low > most


def figures(quick: bool, only: Collection[str] = (), runs: int = RUNS) -> Iterator[Figure]:
    """Confirm the cause of one program after the other."""
    chosen = [plant for plant in plants() if not only or plant.name in only]
    counts = Counts()
    with scratch() as folder:
        for plant in chosen[:1] if quick and not only else chosen:
            try:
                yield from _of_plant(plant, folder, counts, quick, runs)
            except MissingToolError as problem:
                yield Figure(plant.name, "", missing=str(problem))
    yield from counts.figures()


def _of_plant(
    plant: Plant, folder: Path, counts: Counts, quick: bool, runs: int
) -> Iterator[Figure]:
    built = _built(plant, folder)
    is_harmless = plant.verdict == NO_CAUSE
    runs = 1 if quick else runs * (HARMLESS_RUNS if is_harmless else 1)
    said = [_confirmed(plant, built, folder, SEED + run, quick) for run in range(runs)]
    right = sum(it["result"] == plant.verdict for it in said)
    shown = next((it for it in said if it["result"] != plant.verdict), said[-1])
    yield Figure(
        f"{plant.name}: {plant.verdict}",
        f"runs that say so; {shown['result']}: {shown['evidence']}",
        Estimate(value=right, n=len(said), unit=f"[{right} of {len(said)}]"),
    )
    rounds = 3 if quick else TRUTH_ROUNDS
    if is_harmless:
        counts.take_harmless([it["result"] for it in said])
        if plant.function:
            tried = [_tried(plant, built, folder, SEED + run, quick) for run in range(runs)]
            true = _true_gain(plant, built, rounds)
            counts.take_tried(tried, true)
            yield Figure(
                f"{plant.name}: gain",
                "truly measured; of its lock, held longer: "
                + "; ".join(f"{it.result}: {it.evidence}" for it in tried),
                true,
            )
        return
    counts.failed += sum(it["result"] == FAILED for it in said)
    counts.said, counts.runs = counts.said + right, counts.runs + len(said)
    if plant.gain:
        true = _true_gain(plant, built, rounds)
        gains = [it["gain"]["times"] for it in said if it.get("gain")]
        counts.held += sum(it["low"] <= true.value <= it["high"] for it in gains)
        counts.gains += len(said)
        counts.widths += [(it["high"] - it["low"]) / it["value"] for it in gains]
        texts = [f"{it['value']:.2f} [{it['low']:.2f}, {it['high']:.2f}]" for it in gains]
        yield Figure(
            f"{plant.name}: gain",
            f"truly measured; predicted {', '.join(texts) or 'nothing'}",
            true,
        )


def _share(name: str, how: str, right: int, of: int, low: float) -> Figure:
    unit = f"[{right} of {of}]"
    return Figure(
        name, how, Estimate(value=right, n=of, unit=unit), Bound(low=low * of, counted=True)
    )


def _measured(plant: Plant, built: Built, folder: Path, seed: int, quick: bool) -> Path:
    """A new run of the program, the last one of a store."""
    store = folder / "confirm.db"
    line = plant.line(built, "{threads}", plant.held)
    effort = ["--repeats", "3"] if quick else ["--effort", "quick"]
    done = _concurve(
        "sweep", *effort, "--seed", str(seed), "--db", str(store),
        "-P", "threads", f"1,{plant.most}", "--work", "fixed", "--", *line,
    )  # fmt: skip
    if done.returncode:
        raise UnmeasuredError(f"the program could not be measured: {done.stderr[-300:]}")
    return store


def _confirmed(plant: Plant, built: Built, folder: Path, seed: int, quick: bool) -> dict[str, Any]:
    """What the experiments on a new run say."""
    try:
        store = _measured(plant, built, folder, seed, quick)
    except UnmeasuredError as problem:
        return {"result": FAILED, "evidence": str(problem)}
    done = _concurve(
        "explain", "last", "--confirm", "--budget", BUDGET, "--at", f"threads={plant.most}",
        "--json", "--seed", str(seed), "--db", str(store),
    )  # fmt: skip
    if done.returncode:
        said = " ".join(done.stderr.split())
        return {"result": NO_CAUSE if REFUSED in said else FAILED, "evidence": said[-300:]}
    found: dict[str, Any] = json.loads(done.stdout)["confirmations"][0]
    return found


def _tried(plant: Plant, built: Built, folder: Path, seed: int, quick: bool) -> Confirmation:
    """What holding the lock of a new run longer says, though it is accused of nothing."""
    try:
        return _held_longer(plant, built, folder, seed, quick)
    except (UnmeasuredError, ConcurveError) as problem:
        return Confirmation(
            run="",
            of="",
            study="",
            parameters={},
            cause="lock",
            result=OUT_OF_REACH,
            evidence=" ".join(str(problem).split()),
        )


def _held_longer(plant: Plant, built: Built, folder: Path, seed: int, quick: bool) -> Confirmation:
    store = Store(str(_measured(plant, built, folder, seed, quick)))
    row = store.find_run("last")
    cells = explain_run(store, row).cells
    cell = next(it for it in cells if it.parameters["threads"] == plant.most)
    accused = msgspec.structs.replace(cell, cause="lock", sites=(lock_of(plant, built.program),))
    head = decode_head(row)
    made = experiments(
        head,
        accused,
        reach_of(accused, why_not_preloaded),
        str(packaged.program("perturb", "experiments")),
        allowed_cpus(),
        mean(store.trials(row.id).outcomes.seconds),
        TRIED_SECONDS,
    )
    new = new_head(made.study, head.effort, seed, "python benches/confirm.py")
    new = msgspec.structs.replace(new, confirms=made.confirms)
    Runner(new, store, LocalEngine()).start()
    return confirm_run(store, store.find_run(new.id))


def lock_of(plant: Plant, program: Path) -> WaitSite:
    """The place that takes the lock of a program, as samples would name it.

    Raises:
        MissingToolError: it takes none there, or nothing lists its instructions.
    """
    if shutil.which("objdump") is None:
        raise MissingToolError("no objdump here")
    listing = ["objdump", "-d", "--demangle", "--no-show-raw-insn", str(program)]
    done = subprocess.run(listing, capture_output=True, text=True, check=True)
    places = call_places(done.stdout, plant.function, plant.call)
    if not places:
        raise MissingToolError(f"{plant.function} of {program} does not call {plant.call}")
    return WaitSite(
        name=plant.function,
        primitive="reader_writer_lock" if "rwlock" in plant.call else "mutex",
        module=str(program),
        readings=1,
        share=1.0,
        threads=plant.most,
        operation=plant.call,
        offsets=places,
    )


def call_places(listing: str, function: str, called: str) -> tuple[str, ...]:
    """Where a function calls another one, by addresses inside of the calls. ``listing`` is that of
    objdump."""
    places = []
    inside = after_call = False
    for line in listing.splitlines():
        if header := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            inside = re.search(rf"\b{re.escape(function)}\b", header[1]) is not None
        elif at := re.match(r"\s*([0-9a-f]+):", line):
            if after_call:
                places.append(hex(int(at[1], 16) - 1))
            call = re.search(rf"\bcallq?\b.*<{re.escape(called)}[@>]", line)
            after_call = inside and call is not None
    return tuple(places)


def _concurve(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [CONCURVE, *arguments], capture_output=True, text=True, check=False, env=environment
    )


def _true_gain(plant: Plant, built: Built, rounds: int) -> Estimate:
    """How many times as much the threads do if the lock is truly held half as long: the median of
    the rounds."""
    threads = str(plant.most)
    sides = {
        name: lambda held=held: {"s": wall_seconds(plant.line(built, threads, held))}
        for name, held in (("now", plant.held), ("half", plant.held // 2))
    }
    found = interleaved(rounds, sides)
    ratios = [now / half for now, half in zip(found["now s"], found["half s"], strict=True)]
    return median(ratios, "×")


COMPILERS = {
    ".c": ("gcc", "-O2", "-g", "-pthread"),
    ".cpp": ("g++", "-O2", "-g", "-pthread"),
    ".rs": ("rustc", "-O", "-g", "--edition", "2021"),
}


def _built(plant: Plant, folder: Path) -> Built:
    name = re.sub(r"\W+", "-", plant.name)
    library = folder / f"lib{name}.so" if plant.library else None
    if library is not None:
        _compile(plant.library, ("-shared", "-fPIC"), library)
    # A library that the program loads by its name alone is not linked.
    beside = () if library is None else ("-Wl,--as-needed", f"-Wl,-rpath,{folder}", str(library))
    program = folder / f"plant-{name}"
    _compile(plant.source, (*beside, *plant.flags), program)
    return Built(program, library)


def _compile(source: str, flags: tuple[str, ...], target: Path) -> None:
    command = COMPILERS[Path(source).suffix]
    if shutil.which(command[0]) is None:
        raise MissingToolError(f"no {command[0]} here")
    # Libraries stand behind what uses them.
    line = [*command, "-o", str(target), str(PROGRAMS / source), *flags]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingToolError(f"{command[0]}: {done.stderr[-300:]}")


def main() -> int:
    """The command line: all programs, or some of them by name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run; judges no bound")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a program")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each program")
    asked = parser.parse_args()

    def subject(quick: bool) -> Iterator[Figure]:
        return figures(quick, asked.only, asked.runs)

    return exit_code(show([subject], asked.quick), asked.quick)


if __name__ == "__main__":
    sys.exit(main())
