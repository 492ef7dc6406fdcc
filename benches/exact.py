"""Exact: our times beside those of hyperfine, perf and the kernel, on the same command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

from measuring.estimates import median, median_of_ratios, ratio_of_medians
from measuring.figures import Bound, Figure, MissingToolError
from measuring.running import busy_iterations, interleaved, target, trial
from measuring.showing import alone
from measuring.tools import hyperfine, perf_stat

WITHIN_ONE_PERCENT = Bound(0.99, 1.01)
#: The end of a thread's exit is in no account of the thread (docs/method/accounting.md).
EXIT_US_MAX = 50.0
THREADS = (1, 2, 8, 64)


def figures(quick: bool) -> Iterator[Figure]:
    """Wall and user time against the other tools, then thread accounts against wait4."""
    yield from against_tools(cpu_ms=5 if quick else 200, rounds=2 if quick else 120)
    yield from against_wait4(cpu_ms=5 if quick else 200, rounds=2 if quick else 15)


def against_tools(cpu_ms: int, rounds: int) -> Iterator[Figure]:
    """Medians of interleaved single runs. Each tool's wall time runs from the release of the
    command (hyperfine: from before its fork) until its end was noticed."""
    command = target("busy", "--iterations", str(busy_iterations(cpu_ms)))
    for tool, measure in (("hyperfine -N", hyperfine), ("perf stat", perf_stat)):
        yield from against(tool, lambda measure=measure: measure(command), command, rounds)  # type: ignore[misc]


def against(
    tool: str, other: Callable[[], Mapping[str, float]], command: list[str], rounds: int
) -> Iterator[Figure]:
    """Wall and user time against one tool."""
    how = f"ratio of medians, {rounds} interleaved rounds of busy --iterations {command[-1]}"
    names = {time: f"{time} time, concurve-trial / {tool}" for time in ("wall", "user")}
    try:
        other()
        found = interleaved(rounds, {"ours": lambda: our_times(command), "other": other})
    except MissingToolError as error:
        for name in names.values():
            yield Figure(name, how, missing=str(error))
        return
    for time, name in names.items():
        ratio = ratio_of_medians(found[f"ours {time}"], found[f"other {time}"])
        yield Figure(name, how, ratio, WITHIN_ONE_PERCENT)


def our_times(command: list[str]) -> dict[str, float]:
    """Wall and user seconds of a trial, of the whole process."""
    role = trial(command).roles[0]
    if role.usage.user_ns is None:
        raise MissingToolError(role.usage.absent.get("user_ns", "no user time in the record"))
    return {"wall": role.wall_ns / 1e9, "user": role.usage.user_ns / 1e9}


def against_wait4(cpu_ms: int, rounds: int) -> Iterator[Figure]:
    """Sum of the threads' own accounts beside the kernel's account of the tree.

    Each exit has an end that only the tree's account holds, and it takes the same time however long
    the thread has run. So trials of two lengths are compared: what the longer one has more is CPU
    time of running threads; what is left over in the shorter one is that of their ends.
    """
    for threads in THREADS:
        short, long = (
            target("busy", "--threads", str(threads), "--iterations", str(busy_iterations(ms)))
            for ms in (cpu_ms, 4 * cpu_ms)
        )
        accounts = [(thread_accounts(short), thread_accounts(long)) for _ in range(rounds)]
        yield Figure(
            f"CPU of {threads} threads summed / wait4's",
            f"threads.cpu_ns over usage.cpu_ns, of what a trial of {4 * cpu_ms} ms has more than "
            f"one of {cpu_ms} ms; median of {rounds} rounds",
            median_of_ratios(
                [more[0] - less[0] for less, more in accounts],
                [more[1] - less[1] for less, more in accounts],
            ),
            WITHIN_ONE_PERCENT,
        )
    yield Figure(
        f"CPU of an exit's end, of each of {threads} threads",
        f"usage.cpu_ns less threads.cpu_ns, over the threads; median of {rounds} trials of "
        f"{cpu_ms} ms",
        median([(tree - own) / threads / 1e3 for (own, tree), _ in accounts], "µs"),
        Bound(high=EXIT_US_MAX),
    )


def thread_accounts(command: list[str]) -> tuple[float, float]:
    """CPU ns of a trial: the threads' sum, and wait4's."""
    role = trial(command).roles[0]
    if role.threads.cpu_ns is None or role.usage.cpu_ns is None:
        raise SystemExit(f"a reading is absent: {role.threads.absent or role.usage.absent}")
    return role.threads.cpu_ns, role.usage.cpu_ns


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
