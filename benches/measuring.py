"""What the benches share: the type of a figure, interleaved runs, intervals, and the other tools.

Estimates here are medians, because hyperfine and perf are compared by medians; their 95 %
intervals come from the bootstrap. Runs that are compared are interleaved round by round in a
random order, and the bootstrap draws whole rounds, so that a slow spell of the machine meets all
sides alike.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from concurve.errors import ConcurveError
from concurve.estimate import Estimate
from concurve.host import native
from concurve.host.lock import measurement_lock
from concurve.wire import decode_record, encode_spec
from concurve.wire.record import TrialRecord
from concurve.wire.spec import RoleSpec, Sampling, TrialSpec

ROOT = Path(__file__).resolve().parents[1]
SCRATCH = ROOT / ".concurve"
"""On the real disk, as the store is in use; /tmp may be in memory."""

RESAMPLES = 4000
SEED = 1

Samples = Mapping[str, Sequence[float]]


class MissingToolError(Exception):
    """A figure cannot be measured on this machine; the message says what to install."""


class Bound(NamedTuple):
    """What is promised of a figure. ``parity`` bounds hold as long as the interval touches them:
    two equally fast programs can never be told to be on the right side. ``counted`` bounds are
    on a count out of a number that the promise names ("at most 10 of 200"): the count itself is
    judged, and its interval stands beside it."""

    low: float | None = None
    high: float | None = None
    parity: bool = False
    counted: bool = False

    def holds(self, estimate: Estimate) -> bool:
        """Is the whole interval inside (for parity: any part of it; counted: the value)?"""
        if self.counted:
            estimate = Estimate(value=estimate.value)
        low = estimate.value if estimate.low is None else estimate.low
        high = estimate.value if estimate.high is None else estimate.high
        if self.parity:
            low, high = high, low
        return (self.low is None or low >= self.low) and (self.high is None or high <= self.high)

    def text(self) -> str:
        """The bound in a few characters."""
        if self.low is None:
            return f"≤ {self.high:g}"
        return f"≥ {self.low:g}" if self.high is None else f"{self.low:g} … {self.high:g}"


class Figure(NamedTuple):
    """One line of the table: a promised figure, or (without a bound) one to see it beside.

    ``missing`` says why it could not be measured.
    """

    name: str
    how: str
    estimate: Estimate | None = None
    bound: Bound | None = None
    missing: str = ""

    @property
    def held(self) -> bool | None:
        """``None``: nothing is promised, or nothing was measured."""
        if self.bound is None or self.estimate is None:
            return None
        return self.bound.holds(self.estimate)


Bench = Callable[[bool], Iterator[Figure]]
"""Yields its figures one by one; the argument asks for a quick smoke run."""


# -- running ----------------------------------------------------------------------------------


def interleaved(
    rounds: int, sides: Mapping[str, Callable[[], Mapping[str, float]]]
) -> dict[str, list[float]]:
    """Call every side once a round, each round in a new order; figures by name, a value a round."""
    order, shuffle = list(sides), random.Random(SEED).shuffle
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        shuffle(order)
        for side in order:
            for name, value in sides[side]().items():
                found.setdefault(f"{side} {name}", []).append(value)
    return found


def wall_seconds(argv: Sequence[str], stdin: str = os.devnull) -> float:
    """Wall time from before the spawn until the end was noticed; output is dropped.

    ``posix_spawn`` and ``waitpid`` alone, so that differences of two such times hold nothing of
    this harness.

    Raises:
        SystemExit: the command failed.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(argv[0], list(argv), os.environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    taken = time.perf_counter_ns() - begin
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{shlex.join(argv)} failed: run it by hand to see why")
    return taken / 1e9


def output_of(argv: Sequence[str]) -> str:
    """Standard output of a command.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(argv)} exited with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def spec_of(argv: Sequence[str], sampling: Sampling | None = None) -> bytes:
    """The runner's input for a trial of one command."""
    role = RoleSpec(name="target", argv=tuple(argv))
    return encode_spec(TrialSpec(trial="bench", roles=(role,), sampling=sampling or Sampling()))


def trial(argv: Sequence[str], sampling: Sampling | None = None) -> TrialRecord:
    """The record of one trial of a command, straight from the runner.

    Raises:
        SystemExit: the trial failed.
    """
    done = subprocess.run(
        [native.runner()], input=spec_of(argv, sampling), capture_output=True, check=True
    )
    record = decode_record(done.stdout)
    if record.outcome.kind != "ok":
        raise SystemExit(f"trial of {shlex.join(argv)}: {record.outcome.message}")
    return record


def target(*arguments: str) -> list[str]:
    """Command line of one of our programs of known behaviour."""
    return [str(native.binary("concurve-targets")), *arguments]


def busy_iterations(cpu_ms: int) -> int:
    """Iterations of ``concurve-targets busy`` that take one thread about so long here.

    Fixed work is compared below, not a fixed CPU time, which would be met whatever is measured.
    """
    texts = [output_of(target("busy", "--cpu-ms", str(cpu_ms))) for _ in range(5)]
    # The most of several: what disturbs can only slow down.
    return max(
        int(dict(line.split() for line in text.splitlines())["operations"]) for text in texts
    )


def require(tool: str, package: str) -> str:
    """Path of a tool.

    Raises:
        MissingToolError: it is not installed.
    """
    path = shutil.which(tool)
    if path is None:
        raise MissingToolError(f"{tool} is missing (apt-get install {package})")
    return path


def hyperfine(argv: Sequence[str], runs: int = 1, stdin: str | None = None) -> dict[str, float]:
    """``wall`` and ``user`` seconds of ``hyperfine -N``: the median and (user) the mean of its
    runs. ``stdin`` is a file that each run reads.

    Raises:
        MissingToolError: hyperfine is not installed, or has no ``--input``.
    """
    tool = require("hyperfine", "hyperfine")
    if stdin and "--input" not in output_of([tool, "--help"]):
        raise MissingToolError("this hyperfine has no --input (1.16 or newer has)")
    fed = ["--input", stdin] if stdin else []
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        output_of(
            [tool, "-N", "--style", "none", "--warmup", "0", "--runs", str(runs),
             *fed, "--export-json", file.name, shlex.join(argv)]
        )  # fmt: skip
        result = json.loads(Path(file.name).read_text())["results"][0]
    return {"wall": result["median"], "user": result["user"]}


def perf_stat(argv: Sequence[str]) -> dict[str, float]:
    """``wall`` and ``user`` seconds of one run under ``perf stat``, no counters asked for.

    Raises:
        MissingToolError: perf is not installed, or does not know these events.
    """
    tool = require("perf", "linux-perf")
    with tempfile.NamedTemporaryFile() as file:
        output_of(
            [tool, "stat", "-x,", "-o", file.name, "-e", "duration_time,user_time", "--", *argv]
        )
        text = Path(file.name).read_text()
    return parse_perf_stat(text)


def parse_perf_stat(text: str) -> dict[str, float]:
    """The two times in the output of ``perf stat -x,``: value, unit, event, …

    Raises:
        MissingToolError: this perf gives no such times.
    """
    rows = [line.split(",") for line in text.splitlines() if line and not line.startswith("#")]
    times = {row[2]: row[0] for row in rows if len(row) > 2}
    try:
        return {"wall": int(times["duration_time"]) / 1e9, "user": int(times["user_time"]) / 1e9}
    except (KeyError, ValueError):
        raise MissingToolError("this perf has no event user_time (5.19 or newer has)") from None


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the real disk that goes away again."""
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH, prefix="bench-") as folder:
        yield Path(folder)


# -- computing --------------------------------------------------------------------------------


def _estimate(
    statistic: Callable[[list[np.ndarray]], np.ndarray], sides: Sequence[Sequence[float]], unit: str
) -> Estimate:
    """A statistic of paired samples; ``statistic`` works along the last axis of each."""
    arrays = [np.asarray(side, dtype=float) for side in sides]
    n = len(arrays[0])
    value = float(statistic(arrays))
    if n < 2:
        return Estimate(value=value, n=n, unit=unit)
    draws = np.random.default_rng(SEED).integers(n, size=(RESAMPLES, n))
    low, high = np.percentile(statistic([array[draws] for array in arrays]), [2.5, 97.5])
    return Estimate(value=value, low=float(low), high=float(high), n=n, unit=unit)


def median(values: Sequence[float], unit: str = "") -> Estimate:
    """Median with its bootstrap interval."""
    return _estimate(lambda a: np.median(a[0], axis=-1), [values], unit)


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """Ratio of the medians of two interleaved series."""
    return _estimate(
        lambda a: np.median(a[0], axis=-1) / np.median(a[1], axis=-1), [above, below], ""
    )


def median_of_ratios(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """Median of the ratios of each round, which what slows a round down hardly changes."""
    return median([a / b for a, b in zip(above, below, strict=True)])


def difference_of_medians(
    above: Sequence[float], below: Sequence[float], factor: float = 1.0, unit: str = ""
) -> Estimate:
    """Difference of the medians of two interleaved series, times a factor."""
    return _estimate(
        lambda a: factor * (np.median(a[0], axis=-1) - np.median(a[1], axis=-1)),
        [above, below],
        unit,
    )


# -- showing ----------------------------------------------------------------------------------


def number(value: float) -> str:
    """Four significant digits, never an exponent for what people read."""
    return f"{value:.4f}" if 0.1 <= abs(value) < 10 else f"{value:.4g}"


def estimate_text(estimate: Estimate) -> str:
    """``1.002 [0.998, 1.006] ms``."""
    text = number(estimate.value)
    if estimate.low is not None and estimate.high is not None:
        text += f" [{number(estimate.low)}, {number(estimate.high)}]"
    return f"{text} {estimate.unit}".rstrip()


HEADING = f"{'figure':<46}{'value [95 % interval]':<32}{'bound':<14}held"


def lines(figure: Figure, judged: bool = True) -> str:
    """A figure as a line of the table and one on how it was measured."""
    if figure.estimate is None:
        return f"{figure.name:<46}not measured: {figure.missing}\n    {figure.how}"
    bound = figure.bound.text() if figure.bound else ""
    held = {None: "–", True: "yes", False: "NO"}[figure.held if judged else None]
    shown = estimate_text(figure.estimate)
    return f"{figure.name:<46}{shown:<32}{bound:<14}{held}\n    {figure.how}"


def show(subjects: Iterable[Bench], quick: bool) -> list[Figure]:
    """Measure and print; figures appear as they come."""
    print(HEADING, flush=True)
    found = []
    try:
        with machine_to_ourselves():
            for subject in subjects:
                for figure in subject(quick):
                    print(lines(figure, judged=not quick), flush=True)
                    found.append(figure)
    except ConcurveError as error:
        raise SystemExit(f"benches: {error}") from error
    return found


@contextmanager
def machine_to_ourselves() -> Iterator[None]:
    """Hold the measurement lock; the sweeps that are measured take one of their own.

    Raises:
        HostError: another measurement runs.
    """
    kept = os.environ.get("CONCURVE_LOCK")
    with measurement_lock("concurve's benches"), tempfile.TemporaryDirectory() as folder:
        os.environ["CONCURVE_LOCK"] = str(Path(folder) / "lock")
        try:
            yield
        finally:
            del os.environ["CONCURVE_LOCK"]
            if kept is not None:
                os.environ["CONCURVE_LOCK"] = kept


def exit_code(figures: Iterable[Figure], quick: bool) -> int:
    """1 if a bound was missed; a quick run judges nothing."""
    return 0 if quick else int(any(figure.held is False for figure in figures))


def alone(subject: Bench, description: str | None) -> int:
    """The command line of a bench that is run by itself."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run; judges no bound")
    quick = parser.parse_args().quick
    return exit_code(show([subject], quick), quick)


def quiet_warning() -> str:
    """What to say first when the machine is not quiet; empty if it is."""
    load = os.getloadavg()[0]
    if load < 0.5:
        return ""
    return f"The load average is {load:.1f}: the figures are those of a disturbed machine."


def unless_missing(figure: Figure, measure: Callable[[], Estimate]) -> Figure:
    """The figure with its estimate, or with the tool that is missing."""
    try:
        return figure._replace(estimate=measure())
    except MissingToolError as error:
        return figure._replace(missing=str(error))


if __name__ == "__main__":
    sys.exit("nothing to run here: make bench, or python benches/run_all.py --help")
