"""Servers beside other work: do their figures agree with those of a quiet machine, or say that they
are in doubt?"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measuring.figures import Bound, Figure
from measuring.running import beside, scratch
from measuring.showing import alone

import concurve
from concurve.api import Run
from concurve.errors import ConcurveError
from concurve.estimate import Estimate

RUNS = 20
QUIET_BLOCKS, DISTURBED_BLOCKS = "10", "5..8"
AGREE_MIN = 0.90

#: Works and sleeps for random times, half of the time each, until its standard input ends.
HOG = """
import random, select, sys, time
draw = random.Random(int(sys.argv[1]))
while not select.select([sys.stdin], [], [], draw.expovariate(1 / 0.2))[0]:
    end = time.monotonic() + draw.expovariate(1 / 0.2)
    while time.monotonic() < end:
        pass
"""

REDIS = """
[study]
name = "redis-beside-others"
question = "How many I/O threads?"

[factors]
io-threads = [1, 2, 4]

[[roles]]
name = "target"
program = "redis-server"
arguments = ["--port", "{free_port}", "--io-threads", "{io-threads}"]
end = "serve"
ready = "report"

[[roles]]
name = "load"
program = "load"
arguments = [
  "127.0.0.1:{free_port}", "--sessions", "50", "--warm-up", "0.2", "--duration", "0.5",
  "--workload", "set-nx-del",
]

[[indicators]]
name = "rate_per_second"
better = "higher"
"""

PGBENCH = """
[study]
name = "pgbench-beside-others"
question = "How many clients?"

[factors]
clients = [1, 4, 16]

[[roles]]
name = "server"
program = "postgresql"
arguments = ["--port", "{free_port}"]
end = "serve"
ready = "report"

[[roles]]
name = "fill"
command = [
  "pgbench", "-i", "-q", "-s", "1", "-h", "127.0.0.1", "-p", "{free_port}", "-U", "postgres",
  "postgres",
]

[[roles]]
name = "target"
command = [
  "pgbench", "-n", "-S", "-T", "1", "-c", "{clients}", "-h", "127.0.0.1", "-p", "{free_port}",
  "-U", "postgres", "postgres",
]
after = ["fill"]

[[indicators]]
name = "tps"
pattern = "tps = ([0-9.]+)"
unit = "1/s"
better = "higher"
"""

STUDIES = {"Redis, io-threads 1, 2, 4": REDIS, "pgbench, 1, 4, 16 clients": PGBENCH}


def figures(quick: bool) -> Iterator[Figure]:
    """Of each server, one run on the machine as it is, and many beside two processes that use half
    of a CPU each, at random times."""
    for name, text in STUDIES.items():
        yield _figure(name, text, 1 if quick else RUNS)


def _figure(name: str, text: str, runs: int) -> Figure:
    how = f"{runs} runs beside two half-busy processes, cell by cell, against a quiet run"
    figure = Figure(f"beside other work: {name}", how, bound=Bound(low=AGREE_MIN, counted=True))
    with scratch() as folder:
        study = folder / "study.toml"
        study.write_text(text, encoding="utf-8")
        try:
            quiet = _run(study, QUIET_BLOCKS, 1)
        except ConcurveError as error:
            return figure._replace(missing=str(error).replace("\n", " "))
        agree = doubted = wrong = 0
        for seed in range(runs):
            with hogs(2, seed):
                disturbed = _run(study, DISTURBED_BLOCKS, seed)
            for verdict in _verdicts(quiet, disturbed):
                agree += verdict == "agrees"
                doubted += verdict == "in doubt"
                wrong += verdict == "wrong"
    total = agree + doubted + wrong
    said = f"{how}: {agree} agree, {doubted} say that they are in doubt, {wrong} are wrong"
    return figure._replace(how=said, estimate=Estimate(value=1 - wrong / total, n=total))


def _run(study: Path, repeats: str, seed: int) -> Run:
    return concurve.run(
        study, effort="quick", repeats=repeats, seed=seed, max_time="10m",
        db=str(study.with_suffix(".db")),
    )  # fmt: skip


def _verdicts(quiet: Run, disturbed: Run) -> Iterator[str]:
    """Of each cell: the intervals of its figure overlap, it is in doubt, or it is wrong."""
    primary = quiet.findings.primary
    for own, other in zip(quiet.findings.cells, disturbed.findings.cells, strict=True):
        truth, found = own.indicators[primary], other.indicators.get(primary)
        if found is None or found.in_doubt or found.low is None or found.high is None:
            yield "in doubt"
        else:
            assert truth.low is not None and truth.high is not None
            meet = found.low <= truth.high and truth.low <= found.high
            yield "agrees" if meet else "wrong"


@contextmanager
def hogs(count: int, seed: int) -> Iterator[None]:
    """Processes that use half of a CPU each, in bursts of random length."""
    draw = random.Random(seed)
    with beside([HOG, str(draw.randrange(1 << 30))] for _ in range(count)):
        yield


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
