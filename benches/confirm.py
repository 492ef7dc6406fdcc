"""Confirm: how often ``concurve explain --confirm`` is right, and whether its gain is true.

Each program of ``confirm_programs`` is measured over 1 and 2 threads, its cause is confirmed, and
where its lock can truly be held half as long, that is measured as well, side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
from measuring.estimates import SEED
from measuring.figures import Bound, Figure, MissingToolError
from measuring.running import interleaved, scratch, wall_seconds
from measuring.showing import exit_code, show

from concurve.estimate import Estimate
from concurve.stats.moments import median

PROGRAMS = Path(__file__).resolve().parent / "confirm_programs"
CONCURVE = str(Path(sys.executable).parent / "concurve")
RUNS = 4
BUDGET = "3m"
TRUTH_ROUNDS = 11
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
    held: int = 0

    def line(self, program: Path, threads: str, held: int) -> list[str]:
        """The command of a trial."""
        words = [word.replace("{held}", str(held)) for word in self.command]
        return [str(program), *(word.replace("{threads}", threads) for word in words)]


def plants() -> list[Plant]:
    """The programs of the table."""
    text = (PROGRAMS / "plants.toml").read_text(encoding="utf-8")
    return [msgspec.convert(entry, Plant) for entry in tomllib.loads(text)["plant"]]


def figures(quick: bool, only: Collection[str] = (), runs: int = RUNS) -> Iterator[Figure]:
    """Confirm the cause of one program after the other."""
    chosen = [plant for plant in plants() if not only or plant.name in only]
    held, of, promised, harmless = 0, 0, 0, 0
    with scratch() as folder:
        for plant in chosen[:1] if quick and not only else chosen:
            try:
                program = _built(plant, folder)
                said = [
                    _confirmed(plant, program, folder, SEED + run, quick)
                    for run in range(1 if quick else runs)
                ]
            except MissingToolError as problem:
                yield Figure(plant.name, "", missing=str(problem))
                continue
            right = sum(it["result"] == plant.verdict for it in said)
            wrong = next((it for it in said if it["result"] != plant.verdict), said[-1])
            yield Figure(
                f"{plant.name}: {plant.verdict}",
                f"runs that say so; {wrong['result']}: {wrong['evidence']}",
                Estimate(value=right, n=len(said), unit=f"[{right} of {len(said)}]"),
                Bound(low=0.95 * len(said), counted=True),
            )
            gains = [it["gain"]["times"] for it in said if it.get("gain")]
            if plant.gain:
                true = _true_gain(plant, program, 3 if quick else TRUTH_ROUNDS)
                inside = sum(it["low"] <= true <= it["high"] for it in gains)
                held, of = held + inside, of + len(said)
                shown = ", ".join(
                    f"{g['value']:.2f} [{g['low']:.2f}, {g['high']:.2f}]" for g in gains
                )
                yield Figure(
                    f"{plant.name}: gain",
                    f"truly measured; predicted {shown}",
                    Estimate(value=true, n=TRUTH_ROUNDS, unit="×"),
                )
            elif plant.verdict == NO_CAUSE:
                promised += sum(it["result"] == "confirmed" for it in said)
                harmless += len(said)
    if of:
        yield _share("predicted gains", "intervals that hold the true gain", held, of, HELD_MIN)
    if harmless:
        none = harmless - promised
        yield _share("harmless", "runs that promise no gain", none, harmless, HARMLESS_MIN)


def _share(name: str, how: str, right: int, of: int, low: float) -> Figure:
    unit = f"[{right} of {of}]"
    return Figure(
        name, how, Estimate(value=right, n=of, unit=unit), Bound(low=low * of, counted=True)
    )


def _confirmed(plant: Plant, program: Path, folder: Path, seed: int, quick: bool) -> dict[str, Any]:
    """What the experiments on a new run say."""
    store = ("--db", str(folder / "confirm.db"))
    line = plant.line(program, "{threads}", plant.held)
    effort = ["--repeats", "3"] if quick else ["--effort", "quick"]
    done = _concurve(
        "sweep", *effort, "--seed", str(seed), *store, "-P", "threads", "1,2", "--work", "fixed",
        "--", *line,
    )  # fmt: skip
    if done.returncode:
        raise MissingToolError(f"the program could not be measured: {done.stderr[-300:]}")
    budget = "20s" if quick else BUDGET
    done = _concurve(
        "explain", "last", "--confirm", "--budget", budget, "--at", "threads=2", "--json",
        "--seed", str(seed), *store,
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


def _true_gain(plant: Plant, program: Path, rounds: int) -> float:
    """How many times as much two threads do if the lock is truly held half as long."""
    sides = {
        name: lambda held=held: {"s": wall_seconds(plant.line(program, "2", held))}
        for name, held in (("now", plant.held), ("half", plant.held // 2))
    }
    found = interleaved(rounds, sides)
    ratios = [now / half for now, half in zip(found["now s"], found["half s"], strict=True)]
    return median(ratios)


def _built(plant: Plant, folder: Path) -> Path:
    if shutil.which("gcc") is None:
        raise MissingToolError("no gcc here: apt-get install gcc")
    program = folder / f"plant-{'-'.join(plant.name.replace(',', '').split())}"
    source = PROGRAMS / "c" / plant.source
    command = ["gcc", "-O2", "-g", "-pthread", *plant.flags, "-o", str(program), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingToolError(f"gcc: {done.stderr[-300:]}")
    return program


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
