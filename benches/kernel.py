"""The kernel: its loop beside plain C, and its SIMD path beside its loop (see mandelbrot/)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median as middle

from mandelbrot import compare
from measuring.estimates import SEED, median
from measuring.figures import Bound, Figure, MissingToolError
from measuring.showing import alone
from measuring.tools import require

from concurve.host import native


def figures(quick: bool) -> Iterator[Figure]:
    """Ratios within interleaved rounds of single-threaded runs."""
    rounds, iterations = (2, 20) if quick else (15, 1000)
    how = (
        f"median of ratios of CPU times, {rounds} interleaved rounds, one thread, {iterations} deep"
    )
    scalar = Figure(
        "kernel, scalar / best plain C",
        f"{how}; best of the loops in mandelbrot/loops.c, cc -O3 -march=native",
        bound=Bound(high=compare.SCALAR_RATIO_MAX, parity=True),
    )
    simd = Figure("kernel, speed-up of --simd", how, bound=Bound(low=compare.SIMD_SPEEDUP_MIN))
    try:
        seconds = measure(rounds, iterations)
    except MissingToolError as error:
        yield scalar._replace(missing=str(error))
        yield simd._replace(missing=str(error))
        return
    best = min(compare.FORMULATIONS, key=lambda name: middle(seconds[f"c {name}"]))
    ours = seconds["kernel scalar"]
    yield scalar._replace(estimate=median(compare.ratios(ours, seconds[f"c {best}"])))
    yield simd._replace(estimate=median(compare.ratios(ours, seconds["kernel simd"]), "×"))


def measure(rounds: int, iterations: int) -> dict[str, list[float]]:
    """CPU seconds of each program, by round.

    Raises:
        MissingToolError: there is no C compiler.
        SystemExit: a pixel sum is wrong.
    """
    cc = require("cc", "gcc")
    location = compare.read_numbers(compare.DATA / "benchmark-location.toml")
    expected = compare.read_numbers(compare.DATA / "benchmark-sums.toml").get(f"sum_{iterations}")
    with tempfile.TemporaryDirectory() as folder:
        loops = compare.compile_loops(cc, Path(folder))
        kernel = str(native.binary("concurve-mandelbrot"))
        commands = compare.all_commands(kernel, loops, location, iterations)
        seconds, wrong = compare.run_rounds(commands, rounds, SEED, expected)
    if wrong:
        raise SystemExit(f"wrong pixel sums: {wrong}, not {expected}")
    return seconds


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
