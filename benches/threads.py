"""Both kernels of document 002: the JVM's loop beside the native one, and what threads cost and
bring on each."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping

from measuring.estimates import median
from measuring.figures import Bound, Figure
from measuring.running import interleaved, trial
from measuring.showing import alone

from concurve.errors import ConcurveError
from concurve.host.machine import allowed_cpus
from concurve.measuring import packaged

VERSIONS = ("17", "25")
"""The Java versions that the bounds are promised for."""

MANY = 512
WARM_UP, STEADY = 2, 3
"""Computations of a JVM. With many threads its compilers get few turns, and the first computation
(and sometimes the second) runs code that is not compiled yet; the median of the steady counts."""

RATIO_MAX = 1.15
MANY_COST_MAX = 1.03
FACTOR_MIN = 1.95
CAS_FACTOR_MIN = 1.9

Side = Callable[[], Mapping[str, float]]


def figures(quick: bool) -> Iterator[Figure]:
    """Ratios within interleaved rounds: the native kernel, then each Java that is there."""
    rounds, depth = (2, 100) if quick else (15, 5000)
    yield from of_kernel("native", ["mandelbrot"], rounds, depth)
    for version in VERSIONS:
        yield from of_kernel(f"JVM {version}", ["mandelbrot-java", version], rounds, depth)


def of_kernel(name: str, program: list[str], rounds: int, depth: int) -> Iterator[Figure]:
    """The figures of one kernel; ``program`` is its name and, for the JVM's, the Java."""
    figures = figures_of(name, f"{rounds} interleaved rounds, depth {depth}")
    try:
        found = interleaved(rounds, sides(program, depth))
    except ConcurveError as error:
        yield from (figure._replace(missing=error.what) for figure in figures.values())
        return

    def over(above: str, below: str) -> list[float]:
        return [a / b for a, b in zip(found[above], found[below], strict=True)]

    if len(program) > 1:
        yield figures["ratio"]._replace(estimate=median(over("one cpu", "native cpu")))
    yield figures["many"]._replace(estimate=median(over("many cpu", "two cpu")))
    for which, below in (("factor", "two wall"), ("cas", "cas wall")):
        if len(allowed_cpus()) < 2:
            yield figures[which]._replace(missing="fewer than two CPUs")
        else:
            yield figures[which]._replace(estimate=median(over("one wall", below), "×"))


def figures_of(name: str, how: str) -> dict[str, Figure]:
    """What is promised of a kernel, not measured yet."""
    if name != "native":
        how += f", median of computations {WARM_UP + 1} to {WARM_UP + STEADY} of a process"
    return {
        "ratio": Figure(
            f"{name}, one thread / native scalar",
            f"median of ratios of CPU times of a computation, {how}",
            bound=Bound(high=RATIO_MAX),
        ),
        "many": Figure(
            f"{name}, CPU time of {MANY} threads / 2",
            f"median of ratios, no synchronisation, {how}",
            bound=Bound(high=MANY_COST_MAX),
        ),
        "factor": Figure(
            f"{name}, factor of two threads on two CPUs",
            f"median of ratios of computation times, no synchronisation, {how}",
            bound=Bound(low=FACTOR_MIN),
        ),
        "cas": Figure(
            f"{name}, factor of {MANY} threads with CAS",
            f"median of ratios of computation times, two CPUs, {how}",
            bound=Bound(low=CAS_FACTOR_MIN),
        ),
    }


def sides(program: list[str], depth: int) -> dict[str, Side]:
    """What is compared: each gives CPU and wall seconds of one computation."""
    common = ["--iterations", str(depth)]
    kernel = [*packaged.command(program[0], "bench", *program[1:]), *common]
    found: dict[str, Side] = {}
    if len(program) > 1:
        kernel += ["--computations", str(WARM_UP + STEADY)]
        found["native"] = lambda: measured([*packaged.command("mandelbrot", "bench"), *common])
    return found | {
        "one": lambda: measured([*kernel, "--threads", "1"]),
        "two": lambda: measured([*kernel, "--threads", "2"]),
        "many": lambda: measured([*kernel, "--threads", str(MANY)]),
        "cas": lambda: measured([*kernel, "--threads", str(MANY), "--sync", "cas"]),
    }


def measured(argv: list[str]) -> dict[str, float]:
    """CPU and wall seconds of a steady computation."""
    steady = [p for p in trial(argv).roles[0].phases if p.name == "measure"][-STEADY:]
    cpu_ns = [phase.usage.cpu_ns for phase in steady if phase.usage.cpu_ns is not None]
    if len(cpu_ns) < len(steady):
        raise SystemExit(f"no CPU time: {steady[0].usage.absent}")
    return {
        "cpu": statistics.median(cpu_ns) / 1e9,
        "wall": statistics.median(phase.wall_ns for phase in steady) / 1e9,
    }


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
