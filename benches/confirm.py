"""Confirm: how often ``concurve explain --confirm`` is right, and whether its gain is true.

Each program of ``confirm_programs`` is measured over 1 and 2 threads, its cause is confirmed, and
where its lock can truly be held half as long, that is measured as well, side by side. All of it
takes half an hour on a quiet machine.
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
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from measuring.estimates import SEED
from measuring.figures import Bound, Figure, MissingToolError
from measuring.running import interleaved, scratch, wall_seconds
from measuring.showing import exit_code, show

from concurve.estimate import Estimate
from concurve.stats.moments import median

PROGRAMS = Path(__file__).resolve().parent / "confirm_programs"
CONCURVE = str(Path(sys.executable).parent / "concurve")
RUNS = 1
HARMLESS_RUNS = 2
"""Times as many, of programs that nothing limits: a run of theirs is short."""
BUDGET = "20s"
TRUTH_ROUNDS = 7
SAID_MIN = 0.95
"""Share of the runs that say of a cause what is to be said."""
HELD_MIN = 0.9
"""Share of the predicted intervals that hold the true gain."""
HARMLESS_MIN = 0.95
"""Share of the runs on programs that nothing limits, of which none is promised a gain."""
NO_CAUSE = "no cause"


class Plant(msgspec.Struct, frozen=True):
    """A program, with ``{threads}`` and ``{held}`` in its command, and what must be said of it."""

    name: str
    source: str
    command: tuple[str, ...]
    verdict: str
    gain: bool
    flags: tuple[str, ...] = ()
    library: str = ""
    held: int = 0
    most: int = 2

    def line(self, built: Built, threads: str, held: int) -> list[str]:
        """The command of a trial."""
        meant = {"{held}": str(held), "{threads}": threads, "{library}": str(built.library)}
        words = list(self.command)
        for name, value in meant.items():
            words = [word.replace(name, value) for word in words]
        return [str(built.program), *words]


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

    def figures(self) -> Iterator[Figure]:
        """The shares that are promised."""
        if self.runs:
            how = "runs that say what is to be said, of programs that something limits"
            yield _share("verdicts", how, self.said, self.runs, SAID_MIN)
        if self.gains:
            how = "intervals that hold the true gain"
            yield _share("predicted gains", how, self.held, self.gains, HELD_MIN)
        if self.harmless:
            how = "runs that promise no gain"
            yield _share("harmless", how, self.quiet, self.harmless, HARMLESS_MIN)


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
    if is_harmless:
        counts.quiet += sum(it["result"] != "confirmed" for it in said)
        counts.harmless += len(said)
        return
    counts.said, counts.runs = counts.said + right, counts.runs + len(said)
    if plant.gain:
        rounds = 3 if quick else TRUTH_ROUNDS
        true = _true_gain(plant, built, rounds)
        gains = [it["gain"]["times"] for it in said if it.get("gain")]
        counts.held += sum(it["low"] <= true <= it["high"] for it in gains)
        counts.gains += len(said)
        texts = [f"{it['value']:.2f} [{it['low']:.2f}, {it['high']:.2f}]" for it in gains]
        yield Figure(
            f"{plant.name}: gain",
            f"truly measured; predicted {', '.join(texts) or 'nothing'}",
            Estimate(value=true, n=rounds, unit="×"),
        )


def _share(name: str, how: str, right: int, of: int, low: float) -> Figure:
    unit = f"[{right} of {of}]"
    return Figure(
        name, how, Estimate(value=right, n=of, unit=unit), Bound(low=low * of, counted=True)
    )


def _confirmed(plant: Plant, built: Built, folder: Path, seed: int, quick: bool) -> dict[str, Any]:
    """What the experiments on a new run say."""
    store = ("--db", str(folder / "confirm.db"))
    line = plant.line(built, "{threads}", plant.held)
    effort = ["--repeats", "3"] if quick else ["--effort", "quick"]
    done = _concurve(
        "sweep", *effort, "--seed", str(seed), *store, "-P", "threads", f"1,{plant.most}",
        "--work", "fixed", "--", *line,
    )  # fmt: skip
    if done.returncode:
        raise MissingToolError(f"the program could not be measured: {done.stderr[-300:]}")
    budget = "20s" if quick else BUDGET
    done = _concurve(
        "explain", "last", "--confirm", "--budget", budget, "--at", f"threads={plant.most}",
        "--json", "--seed", str(seed), *store,
    )  # fmt: skip
    if done.returncode:
        said = " ".join(done.stderr.split())
        refused = "has a cause that an experiment can confirm" in said
        return {"result": NO_CAUSE if refused else "failed", "evidence": said[-300:]}
    found: dict[str, Any] = json.loads(done.stdout)["confirmations"][0]
    return found


def _concurve(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        [CONCURVE, *arguments], capture_output=True, text=True, check=False, env=environment
    )


def _true_gain(plant: Plant, built: Built, rounds: int) -> float:
    """How many times as much the threads do if the lock is truly held half as long."""
    threads = str(plant.most)
    sides = {
        name: lambda held=held: {"s": wall_seconds(plant.line(built, threads, held))}
        for name, held in (("now", plant.held), ("half", plant.held // 2))
    }
    found = interleaved(rounds, sides)
    ratios = [now / half for now, half in zip(found["now s"], found["half s"], strict=True)]
    return median(ratios)


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
