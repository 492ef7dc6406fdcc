#!/usr/bin/env python3
"""Compare the kernel with the best plain C loop, and its SIMD path with its scalar path.

Runs are interleaved: each round runs every program once in a new order, and ratios are taken
within a round, so that a slow spell of the machine meets all of them. Times are the CPU times of
whole processes (all have one thread), so that what else runs on the machine counts little. Exits
with 1 if a bound is missed or a pixel sum is wrong.

    python3 benches/mandelbrot/compare.py --kernel target/release/concurve-mandelbrot
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "subjects" / "mandelbrot" / "data"

FORMULATIONS = ("squares", "factors", "fused", "carried", "carried_unrolled", "carried_by_two")
"""Names of the loops in loops.c."""

SAME_ARITHMETIC = ("fused", "carried", "carried_unrolled", "carried_by_two")
"""Those that must give the kernel's pixel sum."""

SCALAR_RATIO_MAX = 1.00
SIMD_SPEEDUP_MIN = 3.0


def main() -> int:
    """Run the comparison; return the exit code."""
    options = parse_options()
    location = read_numbers(DATA / "benchmark-location.toml")
    sums = read_numbers(DATA / "benchmark-sums.toml")
    expected = sums.get(f"sum_{options.iterations}")
    with tempfile.TemporaryDirectory() as directory:
        loops = compile_loops(options.cc, Path(directory))
        commands = all_commands(options.kernel, loops, location, options.iterations)
        seconds, wrong = run_rounds(commands, options.rounds, options.seed, expected)
    for name, found in wrong.items():
        print(f"FAIL  pixel sum of {name} is {found}, not {expected}")
    print_times(seconds)
    best_c = min(FORMULATIONS, key=lambda name: median(seconds[f"c {name}"]))
    scalar = ratios(seconds["kernel scalar"], seconds[f"c {best_c}"])
    simd = ratios(seconds["kernel scalar"], seconds["kernel simd"])
    low, high = median_interval(scalar, options.seed)
    scalar_holds = low <= SCALAR_RATIO_MAX
    print_bound(
        f"kernel scalar / c {best_c}",
        f"{median(scalar):.3f} [{low:.3f}, {high:.3f}]",
        f"at most {SCALAR_RATIO_MAX:.2f}",
        scalar_holds,
    )
    low, high = median_interval(simd, options.seed)
    simd_holds = low >= SIMD_SPEEDUP_MIN
    print_bound(
        "speed-up of --simd",
        f"{median(simd):.2f} [{low:.2f}, {high:.2f}]",
        f"at least {SIMD_SPEEDUP_MIN:.1f}",
        simd_holds,
    )
    return 0 if scalar_holds and simd_holds and not wrong else 1


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kernel", required=True, help="the concurve-mandelbrot to measure")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"), help="the C compiler")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--iterations", type=int, default=1000, help="depth of the picture")
    parser.add_argument("--seed", type=int, default=1, help="of the order and the intervals")
    options = parser.parse_args()
    if options.rounds < 1 or options.iterations < 1:
        parser.error("--rounds and --iterations must be at least 1")
    for program in (options.kernel, options.cc):
        if shutil.which(program) is None:
            parser.error(f"{program} cannot be executed: build it, or name another")
    return options


def read_numbers(path: Path) -> dict[str, str]:
    """Read `key = value` lines; the values stay text, so that no digit is lost."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {key.strip(): value.strip() for key, value in (line.split("=") for line in lines)}


def compile_loops(cc: str, directory: Path) -> Path:
    """Compile loops.c for this very processor."""
    binary = directory / "loops"
    source = str(HERE / "loops.c")
    subprocess.run([cc, "-O3", "-march=native", "-o", str(binary), source, "-lm"], check=True)
    return binary


def all_commands(
    kernel: str, loops: Path, location: dict[str, str], iterations: int
) -> dict[str, list[str]]:
    """Name the command lines to compare."""
    keys = ("x_min", "x_max", "y_min", "y_max", "width", "height")
    region = [location[key] for key in keys] + [str(iterations)]
    commands = {f"c {name}": [str(loops), name, *region] for name in FORMULATIONS}
    commands["kernel scalar"] = [kernel, "--iterations", str(iterations)]
    commands["kernel simd"] = [kernel, "--iterations", str(iterations), "--simd"]
    return commands


def run_rounds(
    commands: dict[str, list[str]], rounds: int, seed: int, expected: str | None
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Run everything `rounds` times; return seconds by name, and the wrong pixel sums."""
    order = list(commands)
    shuffle = random.Random(seed).shuffle
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    wrong: dict[str, str] = {}
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            cpu_seconds, figures = run(commands[name])
            seconds[name].append(cpu_seconds)
            same = not name.startswith("c ") or name.removeprefix("c ") in SAME_ARITHMETIC
            if same and figures["pixel_sum"] != (expected or figures["pixel_sum"]):
                wrong[name] = figures["pixel_sum"]
    return seconds, wrong


def run(command: list[str]) -> tuple[float, dict[str, str]]:
    """Run one program; return its CPU seconds and its `key value` lines."""
    environment = {key: value for key, value in os.environ.items() if key != "CONCURVE_REPORT"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, dict(line.split(maxsplit=1) for line in lines)


def ratios(above: list[float], below: list[float]) -> list[float]:
    """Divide within each round."""
    return [a / b for a, b in zip(above, below, strict=True)]


def median_interval(values: list[float], seed: int) -> tuple[float, float]:
    """95 % bootstrap interval of the median."""
    draw = random.Random(seed)
    medians = sorted(median(draw.choices(values, k=len(values))) for _ in range(4000))
    return medians[100], medians[3899]


def print_times(seconds: dict[str, list[float]]) -> None:
    """Print one line a program, the fastest first."""
    print(f"{'program':<22}{'CPU median s':>14}{'least s':>10}{'most s':>10}")
    for name in sorted(seconds, key=lambda name: median(seconds[name])):
        times = seconds[name]
        print(f"{name:<22}{median(times):>14.4f}{min(times):>10.4f}{max(times):>10.4f}")


def print_bound(what: str, found: str, bound: str, holds: bool) -> None:
    """Print whether a bound holds."""
    print(f"{'ok' if holds else 'FAIL':<6}{what}: {found}, bound {bound}")


if __name__ == "__main__":
    sys.exit(main())
