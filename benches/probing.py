"""Probing: what it costs to watch a process of 1 … 512 busy threads.

With --write the curve goes into docs/method/overhead.md and its chart.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Iterator
from typing import NamedTuple

from measuring.estimates import median, ratio_of_medians
from measuring.figures import Bound, Figure
from measuring.running import NO_SAMPLING, ROOT, busy_iterations, interleaved, target, trial
from measuring.showing import estimate_text, exit_code, number, quiet_warning, show

from concurve.estimate import Estimate
from concurve.host.machine import allowed_cpus, describe_machine

THREADS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
PERCENT_MAX = {64: 1.0, 512: 3.0}
SLOWED = 64
"""Threads of the program whose slow-down by sampling is measured."""

PAGE = ROOT / "docs" / "method" / "overhead.md"
CHART = PAGE.with_suffix(".svg")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


class Point(NamedTuple):
    """The cost at one number of threads; percentages are of one CPU."""

    threads: int
    runner: Estimate
    sampling: Estimate
    interval_ms: float | None


def figures(quick: bool) -> Iterator[Figure]:
    """The curve, then the slow-down that sampling causes."""
    for point in curve(quick):
        yield figure_of(point)
    yield slowdown(quick)


def curve(quick: bool) -> Iterator[Point]:
    """One point a number of threads, each from trials of equal wall time."""
    wall_ms, rounds = (60, 2) if quick else (3000, 5)
    iterations = busy_iterations(20 if quick else 200) * wall_ms // (20 if quick else 200)
    for threads in (1, 64) if quick else THREADS:
        total = iterations * min(threads, len(allowed_cpus()))
        yield measure_point(threads, total, rounds)


def measure_point(threads: int, total_iterations: int, rounds: int) -> Point:
    """CPU time of the runner, and of its sampler, for each second of wall time."""
    command = target("busy", "--threads", str(threads), "--iterations", str(total_iterations))
    records = [trial(command) for _ in range(rounds)]
    walls = [record.wall_ns for record in records]
    costs = [record.instrument for record in records]
    intervals = [cost.sample_interval_ns for cost in costs if cost.sample_interval_ns]
    return Point(
        threads,
        median([100 * c.runner_cpu_ns / w for c, w in zip(costs, walls, strict=True)], "%"),
        median([100 * c.sampling_cpu_ns / w for c, w in zip(costs, walls, strict=True)], "%"),
        median(intervals).value / 1e6 if intervals else None,
    )


def figure_of(point: Point) -> Figure:
    """The point as a line of the table."""
    limit = PERCENT_MAX.get(point.threads)
    every = f"{number(point.interval_ms)} ms" if point.interval_ms else "no interval: too short"
    return Figure(
        f"probing {point.threads} busy threads, of one CPU",
        f"runner_cpu_ns over wall_ns, median of {point.runner.n} trials; sampling alone "
        f"{number(point.sampling.value)} %, a sample every {every}",
        point.runner,
        None if limit is None else Bound(high=limit),
    )


def slowdown(quick: bool) -> Figure:
    """The same program with the sampler as usual and with it asleep."""
    wall_ms, rounds = (40, 2) if quick else (1000, 30)
    total = busy_iterations(20) * wall_ms // 20 * len(allowed_cpus())
    command = target("busy", "--threads", str(SLOWED), "--iterations", str(total))
    found = interleaved(
        rounds,
        {
            "sampled": lambda: {"wall": trial(command).wall_ns},
            "alone": lambda: {"wall": trial(command, NO_SAMPLING).wall_ns},
        },
    )
    return Figure(
        f"slow-down of {SLOWED} busy threads by sampling",
        f"ratio of median wall times, sampler at its default over asleep, {rounds} rounds",
        ratio_of_medians(found["sampled wall"], found["alone wall"]),
    )


# -- the page ---------------------------------------------------------------------------------


def write_page(points: list[Point], slowed: Figure, warning: str) -> None:
    """Put the measured part into the page, and draw the chart."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{measured(points, slowed, warning)}\n{END}{after}")
    draw(points)


def measured(points: list[Point], slowed: Figure, warning: str) -> str:
    """The measured part: machine, table, chart."""
    machine = describe_machine()
    rows = "\n".join(
        f"| {point.threads} | {estimate_text(point.runner)} | {estimate_text(point.sampling)} "
        f"| {number(point.interval_ms) if point.interval_ms else '–'} ms |"
        for point in points
    )
    slow = estimate_text(slowed.estimate) if slowed.estimate else slowed.missing
    return f"""\
Measured on {datetime.date.today():%Y-%m-%d}: {machine["cpu_model"]}, {len(allowed_cpus())} CPUs, \
Linux {machine["kernel"]}, {machine["virtualisation"]}.
Medians of {points[0].runner.n} trials of about three seconds, with 95 % bootstrap intervals, in \
percent of one CPU.
{warning}

| threads | runner, all its work | sampling alone | mean time between samples |
|--:|:--|:--|--:|
{rows}

![Cost of probing against the number of busy threads]({CHART.name})

A program of {SLOWED} busy threads takes {slow} times as long with
the sampler as without it."""


def draw(points: list[Point]) -> None:
    """The curve with its intervals and its bounds, as SVG."""
    import altair as alt
    import pandas as pd

    rows = [
        {"threads": p.threads, "of": what, "percent": e.value, "low": e.low, "high": e.high}
        for p in points
        for what, e in (("runner, all its work", p.runner), ("sampling alone", p.sampling))
    ]
    bounds = [{"threads": n, "percent": limit} for n, limit in PERCENT_MAX.items()]
    x = alt.X("threads:Q").scale(type="log", base=2).title("busy threads")
    base = alt.Chart(pd.DataFrame(rows)).encode(x=x, color=alt.Color("of:N").title(None))
    line = base.mark_line(point=True).encode(y=alt.Y("percent:Q").title("% of one CPU"))
    band = base.mark_rule().encode(y=alt.Y("low:Q").title("% of one CPU"), y2="high:Q")
    bound = (
        alt.Chart(pd.DataFrame(bounds))
        .mark_tick(orient="horizontal", thickness=2, color="black")
        .encode(x=x, y="percent:Q")
    )
    (line + band + bound).properties(width=480, height=240).save(str(CHART))


def main() -> int:
    """The command line of this bench alone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run; judges no bound")
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    points: list[Point] = []
    warning = quiet_warning()  # now: the bench itself makes the load rise

    def kept(quick: bool) -> Iterator[Figure]:
        for point in curve(quick):
            points.append(point)
            yield figure_of(point)
        yield slowdown(quick)

    found = show([kept], options.quick)
    if options.write:
        write_page(points, found[-1], warning)
    return exit_code(found, options.quick)


if __name__ == "__main__":
    sys.exit(main())
