"""Causes: how often `concurve explain` names the right cause for programs of known behaviour."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from measuring.figures import Bound, Figure
from measuring.running import output_of, scratch, target
from measuring.showing import alone

import concurve
from concurve.api import Run
from concurve.errors import ConcurveError
from concurve.estimate import Estimate
from concurve.findings.explanation import CellExplanation, Explanation
from concurve.terms import Level

RUNS = 20
RIGHT_MIN = 0.95
"""19 of 20."""

TRIAL_S = 0.25
REPEATS = "4..4"
PROGRAMS = Path(__file__).resolve().parent / "causes_programs"
CAUSES = ("cpu", "lock", "coherency", "io", "client", "contamination", "none")


class Case(NamedTuple):
    """Programs of one kind: ``expected`` gives the right cause of cells by their level."""

    name: str
    expected: dict[Level, str]
    measure: Callable[[Path, int], Run]
    factor: str = "threads"


class MissingError(Exception):
    """A case cannot be run on this machine."""


def figures(quick: bool) -> Iterator[Figure]:
    """Measure one case after the other; then print the causes that were found for each."""
    table: dict[str, Counter[str]] = {}
    with scratch() as folder:
        # A smoke run has no time for them all.
        for case in islice(cases(folder), 2 if quick else None):
            try:
                said, wrong = judged(case, folder, 1 if quick else RUNS)
            except (MissingError, ConcurveError) as problem:
                yield Figure(case.name, "", missing=" ".join(str(problem).split()))
                continue
            for level, cause in case.expected.items():
                row = f"{case.name}, {case.factor}={level}"
                table[f"{row} ({cause})"] = said[level]
                yield _figure(row, cause, said[level], wrong[level])
    print(confusion(table), flush=True)


def judged(
    case: Case, folder: Path, runs: int
) -> tuple[dict[Level, Counter[str]], dict[Level, str]]:
    """The cause that each run names for each level, and the evidence of the last wrong answer."""
    said: dict[Level, Counter[str]] = {level: Counter() for level in case.expected}
    wrong = dict.fromkeys(case.expected, "")
    for seed in range(runs):
        found = case.measure(folder / "causes.db", seed).explain()
        for level, expected in case.expected.items():
            cell = _cell(found, case.factor, level)
            said[level][cell.cause] += 1
            if cell.cause != expected:
                wrong[level] = f"{cell.cause}: {cell.evidence}"
    return said, wrong


def _cell(found: Explanation, factor: str, level: Level) -> CellExplanation:
    return next(cell for cell in found.cells if cell.parameters[factor] == level)


def _figure(name: str, cause: str, said: Counter[str], wrong: str) -> Figure:
    n = said.total()
    # A program without a bottleneck is not to be accused; the machine may well be.
    right = said[cause] + (said["contamination"] if cause == "none" else 0)
    counts = ", ".join(f"{count} {answer}" for answer, count in said.most_common())
    how = f"expected: {cause}; said in {n} runs: {counts}" + (f"; last: {wrong}" if wrong else "")
    return Figure(
        name,
        how,
        Estimate(value=right / n, n=n, unit=f"[{right} of {n}]"),
        Bound(low=RIGHT_MIN),
    )


def confusion(table: dict[str, Counter[str]]) -> str:
    """Rows: the program and its true cause; columns: the cause that was named."""
    size = max(map(len, table), default=0)
    rows = [" " * (size + 2) + "".join(f"{cause[:10]:>11}" for cause in CAUSES)]
    rows += [
        f"  {name:<{size}}" + "".join(f"{said[cause] or '.':>11}" for cause in CAUSES)
        for name, said in table.items()
    ]
    return "\n".join(rows)


# -- the programs -----------------------------------------------------------------------------


def cases(folder: Path) -> Iterator[Case]:
    """Each of known cause; a trial takes some 0.2 s."""
    yield Case("no bottleneck", {1: "none", 2: "none"}, _swept(_busy(), (1, 2)))
    yield Case("spin beyond the CPUs", {8: "cpu"}, _swept(_busy(), (1, 8)))
    for percent in (20, 50):
        yield Case(f"mutex {percent} %", {2: "lock"}, _swept(_mutex(percent), (1, 2)))
    yield Case("mutex 80 %", {2: "lock", 8: "lock"}, _swept(_mutex(80), (1, 2, 8)))
    counter = ["shared-counter", "--threads", "{threads}", "--operations", "100000000"]
    yield Case("shared counter", {2: "coherency"}, _swept(target(*counter), (1, 2)))
    padded = target(*counter, "--padded")
    yield Case("padded counters", {1: "none", 2: "none"}, _swept(padded, (1, 2)))
    yield Case("fdatasync", {1: "io", 2: "io"}, _swept(_writer(folder), (1, 2)))
    pool = ["many-locks", "--threads", "{threads}", "--operations", "40", "--every-ms", "5"]
    yield Case("idle pool", {1: "none", 16: "none"}, _swept(target(*pool), (1, 16)))
    throttled = target("busy", "--total-iterations", "4000000")
    yield Case("nice 19 beside two", {19: "cpu"}, _nice(throttled), "nice")
    for name, thinking in (
        ("slow", '"--think-us", "2000"'),
        ("busy", '"--think-us", "2000", "--busy"'),
    ):
        yield Case(f"{name} client", {1: "client", 4: "client"}, _served(folder, thinking))
    yield Case("Mandelbrot", {1: "none", 2: "none"}, _mandelbrot)
    yield Case("Java, synchronized", {2: "lock"}, _java(folder))


def _busy() -> list[str]:
    return target("busy", "--threads", "{threads}", "--total-iterations", "200000000")


def _mutex(percent: int) -> list[str]:
    """Operations of unequal lengths: equal ones synchronise, and hardly any thread waits."""
    return target(
        "mutex", "--vary", "--threads", "{threads}", "--hold-percent", str(percent),
        "--operations", "2000", "--operation-iterations", "100000",
    )  # fmt: skip


def _writer(folder: Path) -> list[str]:
    """The number of operations that this disk does in the time of a trial."""
    writer = target("fsync", "--directory", str(folder), "--threads")
    outputs = [output_of([*writer, "1", "--operations", "200"]) for _ in range(3)]
    seconds = min(
        float(dict(line.split() for line in output.splitlines())["compute_seconds"])
        for output in outputs
    )
    return [*writer, "{threads}", "--operations", str(max(20, round(200 * TRIAL_S / seconds)))]


def _swept(command: Sequence[str], threads: tuple[Level, ...]) -> Callable[[Path, int], Run]:
    """Use two CPUs, however many the machine has."""
    return lambda db, seed: concurve.sweep(
        command, {"threads": threads}, cpus=2, repeats=REPEATS, seed=seed, db=str(db)
    )


def _nice(command: Sequence[str]) -> Callable[[Path, int], Run]:
    """Two competitors on the one CPU of the program."""
    return lambda db, seed: concurve.sweep(
        command, {"nice": (0, 19)}, cpus=1, nice="{nice}", background=["2@nice=0,cpus=1"],
        repeats=REPEATS, seed=seed, db=str(db),
    )  # fmt: skip


def _mandelbrot(db: Path, seed: int) -> Run:
    from concurve.host import native

    command = [str(native.binary("concurve-mandelbrot")), "bench", "--sync", "none"]
    command += ["--depth", "quick", "--width", "320", "--height", "240"]
    return concurve.sweep(
        [*command, "--threads", "{threads}"], {"threads": (1, 2)}, cpus=2, repeats=REPEATS,
        seed=seed, db=str(db),
    )  # fmt: skip


def _served(folder: Path, thinking: str) -> Callable[[Path, int], Run]:
    """A server whose client takes 2 ms between requests, asleep or computing."""
    study = f"""
[study]
name = "slow-client"
question = "Who waits for whom?"
[factors]
threads = [1, 4]
[[roles]]
name = "target"
program = "targets"
arguments = ["request-server", "--threads", "{{threads}}", "--port-file", "{folder}/port"]
end = "serve"
ready = "report"
[[roles]]
name = "load"
program = "targets"
arguments = ["slow-client", "--operations", "100", "--port-file", "{folder}/port", {thinking}]
[[indicators]]
name = "wall_seconds"
better = "lower"
"""

    def measure(db: Path, seed: int) -> Run:
        file = folder / "slow-client.toml"
        file.write_text(study)
        return concurve.run(file, repeats=REPEATS, seed=seed, db=str(db))

    return measure


def _java(folder: Path) -> Callable[[Path, int], Run]:
    """Compiled once."""

    def measure(db: Path, seed: int) -> Run:
        java, javac = shutil.which("java"), shutil.which("javac")
        if java is None or javac is None:
            raise MissingError("no JDK here (apt-get install openjdk-17-jdk-headless)")
        if not (folder / "Contended.class").exists():
            source = PROGRAMS / "Contended.java"
            subprocess.run([javac, "-d", folder, source], check=True, capture_output=True)
        command = [java, "-XX:+UseSerialGC", "-cp", str(folder), "Contended"]
        return concurve.sweep(
            [*command, "{threads}", "3000", "100000"], {"threads": (1, 2)}, cpus=2,
            repeats=REPEATS, seed=seed, db=str(db),
        )  # fmt: skip

    return measure


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
