"""The simulator of I/O schedulers: requests a second of wall time, on one CPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from measuring.estimates import median
from measuring.figures import Bound, Figure
from measuring.running import trial
from measuring.showing import alone

from concurve.host import native

SPEED_MIN = 2e6
SCHEDULERS = ("noop", "deadline", "as", "cfq2", "cfq", "mq-deadline", "bfq")


def figures(quick: bool) -> Iterator[Figure]:
    """Random reads of 16 processes on one disk, and the load of document 003, by scheduler."""
    rounds, requests, scale = (2, 1_000, "0.001") if quick else (9, 100_000, "0.1")
    streams = ["streams", "--disks", "1", "--random-readers", "16", "--requests", str(requests)]
    for name, words in (("streams", streams), ("load", ["load", "--scale", scale])):
        for scheduler in SCHEDULERS:
            rates = [rate([*words, "--scheduler", scheduler]) for _ in range(rounds)]
            yield Figure(
                f"disk, {name} under {scheduler}",
                f"median of {rounds} runs: simulated requests by CPU second of the simulation",
                median(rates, "1/s"),
                bound=Bound(low=SPEED_MIN),
            )


def rate(words: list[str]) -> float:
    """Simulated requests by CPU second: one thread, so a second of a CPU to itself."""
    record = trial([str(native.binary("concurve-disk")), *words])
    role = record.roles[0]
    (operations,) = [item.value for item in role.indicators if item.indicator == "operations"]
    phase = next(phase for phase in role.phases if phase.name == "measure")
    if phase.usage.cpu_ns is None:
        raise SystemExit(f"no CPU time: {phase.usage.absent}")
    return operations / (phase.usage.cpu_ns / 1e9)


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
