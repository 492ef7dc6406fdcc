"""The JVM kernel: its loop beside the native one, and what its threads cost and bring."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

from measuring import Bound, Figure, alone, interleaved, median, trial

from concurve import native
from concurve.errors import ConcurveError
from concurve.machine import allowed_cpus

VERSIONS = ("17", "25")
"""The Java versions that the bounds are promised for."""

RATIO_MAX = 1.15
MANY_COST_MAX = 1.03
FACTOR_MIN = 1.95
CAS_FACTOR_MIN = 1.9

Side = Callable[[], Mapping[str, float]]


def figures(quick: bool) -> Iterator[Figure]:
    """Ratios within interleaved rounds, on each Java that is there."""
    rounds, depth = (2, 100) if quick else (9, 2500)
    for version in VERSIONS:
        yield from of_version(version, rounds, depth)


def of_version(version: str, rounds: int, depth: int) -> Iterator[Figure]:
    """The figures on one version of Java."""
    how = f"{rounds} interleaved rounds, depth {depth}, the second computation of a process"
    name = f"JVM {version}"
    ratio = Figure(
        f"{name}, one thread / native scalar",
        f"median of ratios of CPU times of the phase measure, {how}",
        bound=Bound(high=RATIO_MAX),
    )
    many = Figure(
        f"{name}, CPU time of 512 threads / 2",
        f"median of ratios, no synchronisation, {how}",
        bound=Bound(high=MANY_COST_MAX),
    )
    factor = Figure(
        f"{name}, factor of two threads on two CPUs",
        f"median of ratios of computation times, no synchronisation, {how}",
        bound=Bound(low=FACTOR_MIN),
    )
    cas = Figure(
        f"{name}, factor of 512 threads with CAS",
        f"median of ratios of computation times, two CPUs, {how}",
        bound=Bound(low=CAS_FACTOR_MIN),
    )
    try:
        found = interleaved(rounds, sides(version, depth))
    except ConcurveError as error:
        for figure in (ratio, many, factor, cas):
            yield figure._replace(missing=error.what)
        return

    def over(above: str, below: str) -> list[float]:
        return [a / b for a, b in zip(found[above], found[below], strict=True)]

    yield ratio._replace(estimate=median(over("one cpu", "native cpu")))
    yield many._replace(estimate=median(over("many cpu", "two cpu")))
    if len(allowed_cpus()) < 2:
        missing = "fewer than two CPUs"
        yield factor._replace(missing=missing)
        yield cas._replace(missing=missing)
        return
    yield factor._replace(estimate=median(over("one wall", "two wall"), "×"))
    yield cas._replace(estimate=median(over("one wall", "cas wall"), "×"))


def sides(version: str, depth: int) -> dict[str, Side]:
    """What is compared: each gives CPU and wall seconds of one computation."""
    common = ["--iterations", str(depth)]
    java = [*native.command("mandelbrot-java", "bench", version), *common, "--computations", "2"]
    ours = [*native.command("mandelbrot", "bench"), *common]
    return {
        "native": lambda: measured(ours),
        "one": lambda: measured([*java, "--threads", "1"]),
        "two": lambda: measured([*java, "--threads", "2"]),
        "many": lambda: measured([*java, "--threads", "512"]),
        "cas": lambda: measured([*java, "--threads", "512", "--sync", "cas"]),
    }


def measured(argv: list[str]) -> dict[str, float]:
    """CPU and wall seconds of the phase measure."""
    phase = next(p for p in trial(argv).roles[0].phases if p.name == "measure")
    if phase.usage.cpu_ns is None:
        raise SystemExit(f"no CPU time: {phase.usage.absent}")
    return {"cpu": phase.usage.cpu_ns / 1e9, "wall": phase.wall_ns / 1e9}


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
