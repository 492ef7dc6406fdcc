"""Causes: how often `concurve explain` names the right cause for programs of known behaviour."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from measuring.beside import busy_processes
from measuring.figures import Bound, Figure, MissingToolError
from measuring.known_causes import CAUSES, PROGRAMS, TABLE, Program, command_of, read_table
from measuring.running import ROOT, output_of, scratch, target
from measuring.showing import exit_code, show

import concurve
from concurve.api import Run
from concurve.errors import ConcurveError
from concurve.estimate import Estimate
from concurve.findings.explanation import CellExplanation, Explanation
from concurve.terms import Level

RUNS = 20
BLAMELESS_TIMES = 2
"""So many times as many runs of programs that nothing limits."""

RIGHT_MIN = 0.95
"""19 of 20."""

WITHHELD_MAX = 0.1
"""Share of the answers on a program that may be withheld: with more of them, the machine was not
quiet, and the rest says little."""

TRIAL_S = 0.25
REPEATS = "4..4"


CONTAMINATION = "contamination"
IN_DOUBT = "in doubt"
"""No cause was named, because the machine was not quiet."""

OURS = "programs of ours"
BESIDE = "beside other work"


class Case(NamedTuple):
    """Programs of one kind: ``expected`` gives the right cause of cells by their level, ``also``
    further ones that are true there; ``never`` would be wrong anywhere. ``disturbed``: other work
    runs meanwhile. ``blameless``: nothing limits it at any level. ``catalogue`` names the programs
    that are counted together."""

    name: str
    expected: Mapping[Level, str]
    measure: Callable[[Path, int], Run]
    factor: str = "threads"
    also: Mapping[Level, tuple[str, ...]] = {}
    never: tuple[str, ...] = ()
    disturbed: bool = False
    blameless: bool = False
    catalogue: str = OURS

    def is_right(self, level: Level, cause: str) -> bool:
        """Is this what limits the program there?"""
        return cause == self.expected[level] or cause in self.also.get(level, ())

    def is_withheld(self, level: Level, cause: str) -> bool:
        """Does this answer name the machine in place of what limits the program?"""
        return cause in (CONTAMINATION, IN_DOUBT) and not self.is_right(level, cause)

    def is_wrong(self, level: Level, cause: str) -> bool:
        """Does this answer accuse something that is not so? One that is withheld accuses nothing,
        nor does ``none``; without a list of ``never``, every cause that is not right does."""
        accuses = cause not in ("none", CONTAMINATION, IN_DOUBT)
        is_wrong = not self.is_right(level, cause)
        return accuses and (is_wrong if self.blameless or not self.never else cause in self.never)


class Answers(NamedTuple):
    """What the runs of a case said at one level: the causes, the sentence of the last wrong one."""

    said: Counter[str]
    wrong: str = ""


class Tally:
    """The answers on the programs that are counted together."""

    def __init__(self) -> None:
        self.programs = self.levels = self.answers = 0
        self.right = self.withheld = self.accused = 0

    @property
    def wrong(self) -> int:
        """Neither right nor withheld."""
        return self.answers - self.right - self.withheld

    def add(self, case: Case, answers: Mapping[Level, Answers]) -> None:
        """Take in what was said of a program."""
        self.programs += 1
        self.levels += len(answers)
        for level, found in answers.items():
            self.answers += found.said.total()
            self.right += _count(found, partial(case.is_right, level))
            self.withheld += _count(found, partial(case.is_withheld, level))
            if case.blameless:
                self.accused += _count(found, partial(case.is_wrong, level))


def _count(answers: Answers, what: Callable[[str], bool]) -> int:
    return sum(count for cause, count in answers.said.items() if what(cause))


def figures(quick: bool, only: Collection[str] = (), runs: int = RUNS) -> Iterator[Figure]:
    """Measure one case after the other; then print the causes that were found for each, and the
    sums."""
    table: dict[str, Counter[str]] = {}
    catalogues: dict[str, Tally] = {}
    accused: dict[bool, list[int]] = {False: [0, 0], True: [0, 0]}
    with scratch() as folder:
        programs = read_table(TABLE.read_text(encoding="utf-8"))
        every = chain(cases(folder), planted(folder, programs))
        chosen = (case for case in every if not only or case.name in only)
        # A smoke run has no time for them all.
        for case in islice(chosen, 2 if quick and not only else None):
            try:
                times = BLAMELESS_TIMES if case.blameless else 1
                answers = judged(case, folder, 1 if quick else runs * times)
            except (MissingToolError, ConcurveError) as problem:
                yield Figure(case.name, "", missing=" ".join(str(problem).split()))
                continue
            catalogues.setdefault(case.catalogue, Tally()).add(case, answers)
            for level, found in answers.items():
                row = f"{case.name}, {case.factor}={level}"
                table[f"{row} ({case.expected[level]})"] = found.said
                counted = accused[case.blameless]
                counted[0] += _count(found, partial(case.is_wrong, level))
                counted[1] += found.said.total()
                counted[1] -= _count(found, partial(case.is_withheld, level))
                yield _figure(case, level, found)
            yield from _withheld(case, answers)
    for blameless, (wrong, of) in accused.items():
        if of:
            yield _accused(blameless, wrong, of)
    print(confusion(table), flush=True)
    print(f"\n{sums(catalogues, 1 if quick else runs)}", flush=True)


def _accused(blameless: bool, wrong: int, of: int) -> Figure:
    programs = "programs that nothing limits" if blameless else "other programs"
    return Figure(
        "accused without a cause" if blameless else "wrong causes",
        f"answers that name what is not so, of {of} that were given on {programs}",
        Estimate(value=wrong, n=of, unit=f"[{wrong} of {of}]"),
        Bound(high=0 if blameless else (1 - RIGHT_MIN) * of, counted=True),
    )


def _withheld(case: Case, answers: Mapping[Level, Answers]) -> Iterator[Figure]:
    """How many answers on a program were withheld, if any were and nothing else ran beside it."""
    tally = Tally()
    tally.add(case, answers)
    if tally.withheld and not case.disturbed:
        of = tally.answers
        yield Figure(
            f"{case.name}: withheld",
            f"answers that were withheld, of {of}: the machine was not quiet; measure again",
            Estimate(value=tally.withheld, n=of, unit=f"[{tally.withheld} of {of}]"),
            Bound(high=WITHHELD_MAX * of, counted=True),
        )


def judged(case: Case, folder: Path, runs: int) -> dict[Level, Answers]:
    """The cause that each run names for each level."""
    answers = {level: Answers(Counter()) for level in case.expected}
    for seed in range(runs):
        found = case.measure(folder / "causes.db", seed).explain()
        for level, so_far in answers.items():
            cell = _cell(found, case.factor, level)
            said = IN_DOUBT if cell.doubt and cell.cause == "none" else cell.cause
            so_far.said[said] += 1
            if not case.is_right(level, said):
                answers[level] = so_far._replace(wrong=f"{said}: {cell.evidence}")
    return answers


def _cell(found: Explanation, factor: str, level: Level) -> CellExplanation:
    return next(cell for cell in found.cells if cell.parameters[factor] == level)


def _figure(case: Case, level: Level, answers: Answers) -> Figure:
    n = answers.said.total()
    right, of = _right(case, level, answers)
    counts = ", ".join(f"{count} {answer}" for answer, count in answers.said.most_common())
    expected = " or ".join((case.expected[level], *case.also.get(level, ())))
    last = f"; last: {answers.wrong}" if answers.wrong else ""
    return Figure(
        f"{case.name}, {case.factor}={level}",
        f"expected: {expected}; said in {n} runs: {counts}{last}",
        Estimate(value=right / of if of else 0.0, n=of, unit=f"[{right} of {of}]"),
        Bound(low=RIGHT_MIN),
    )


def _right(case: Case, level: Level, answers: Answers) -> tuple[int, int]:
    """How many answers were right, and of how many. Beside other work it is right to withhold one.
    Where nothing limits the program, one that is withheld says nothing: it is counted apart.
    Elsewhere it fails to name the cause."""
    n = answers.said.total()
    right = _count(answers, partial(case.is_right, level))
    withheld = _count(answers, partial(case.is_withheld, level))
    if case.disturbed:
        return right + withheld, n
    return right, n - withheld if case.expected[level] == "none" else n


def sums(catalogues: Mapping[str, Tally], runs: int) -> str:
    """What was said of each catalogue, as a table for the documentation."""
    lines = [
        f"{datetime.now(UTC):%-d %B %Y}, commit {commit()}. Runs of each program: {runs}, "
        f"and {BLAMELESS_TIMES * runs} of those that nothing limits. *Withheld* are answers "
        "that name the machine, *accused* the wrong ones on programs that nothing limits.",
        "",
        "| catalogue | programs | levels | answers | right | withheld | wrong | accused |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, it in catalogues.items():
        numbers = (it.programs, it.levels, it.answers, it.right, it.withheld, it.wrong, it.accused)
        lines.append(f"| {name} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    return "\n".join(lines)


def confusion(table: dict[str, Counter[str]]) -> str:
    """Rows: the program and its true cause; columns: the cause that was named."""
    size = max(map(len, table), default=0)
    named = [cause for cause in (*CAUSES, IN_DOUBT) if any(said[cause] for said in table.values())]
    rows = [" " * (size + 2) + "".join(f"{cause[:10]:>11}" for cause in named)]
    rows += [
        f"  {name:<{size}}" + "".join(f"{said[cause] or '.':>11}" for cause in named)
        for name, said in table.items()
    ]
    return "\n".join(rows)


def commit() -> str:
    """What is measured, as git names it."""
    describe = ["git", "describe", "--always", "--exclude=*", "--dirty"]
    done = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


# -- programs that say nothing of themselves --------------------------------------------------


def planted(folder: Path, programs: Sequence[Program]) -> Iterator[Case]:
    """The programs of the table."""
    for program in programs:
        yield Case(
            program.name,
            {level: cause for level, cause in program.expected.items()},
            _planted(program, folder / "programs"),
            also={level: causes for level, causes in program.also.items()},
            disturbed=program.beside > 0,
            blameless=program.blameless,
            never=program.never,
            catalogue=BESIDE if program.beside else str(program.catalogue),
        )


def _planted(program: Program, folder: Path) -> Callable[[Path, int], Run]:
    """Built once, before its first run."""
    command: list[str] = []

    def measure(db: Path, seed: int) -> Run:
        if not command:
            folder.mkdir(exist_ok=True)
            command.extend(command_of(program, folder))
        with busy_processes(program.beside):
            return _swept(command, tuple(program.expected))(db, seed)

    return measure


# -- our own programs -------------------------------------------------------------------------


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

    command = [str(native.binary("concurve-mandelbrot")), "--sync", "none"]
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
            raise MissingToolError("no JDK here (apt-get install openjdk-17-jdk-headless)")
        if not (folder / "Contended.class").exists():
            source = PROGRAMS / "java" / "Contended.java"
            subprocess.run([javac, "-d", folder, source], check=True, capture_output=True)
        command = [java, "-XX:+UseSerialGC", "-cp", str(folder), "Contended"]
        return concurve.sweep(
            [*command, "{threads}", "3000", "100000"], {"threads": (1, 2)}, cpus=2,
            repeats=REPEATS, seed=seed, db=str(db),
        )  # fmt: skip

    return measure


def main() -> int:
    """The command line: all cases, or some of them by name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run; judges no bound")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a case")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each case")
    asked = parser.parse_args()
    if asked.runs < 1:
        parser.error("--runs must be at least 1")
    subject = partial(figures, only=asked.only, runs=asked.runs)
    return exit_code(show([subject], asked.quick), asked.quick)


if __name__ == "__main__":
    sys.exit(main())
