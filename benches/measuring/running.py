"""What is run: programs and trials, and sides that are compared round by round.

Runs that are compared are interleaved in a random order, so that a slow spell of the machine meets
all sides alike.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from concurve.host import native
from concurve.wire import decode_record, encode_spec
from concurve.wire.record import TrialRecord
from concurve.wire.spec import RoleSpec, Sampling, TrialSpec
from measuring.estimates import SEED

ROOT = Path(__file__).resolve().parents[2]
NO_SAMPLING = Sampling(interval_ns_min=3_600_000_000_000)
"""A sampler that is asleep throughout."""
SCRATCH = ROOT / ".concurve"
"""On the real disk, as the store is in use; /tmp may be in memory."""


LOOK_ROUNDS = 10
"""Between two looks at whether enough rounds were taken."""


def interleaved(
    rounds: int,
    sides: Mapping[str, Callable[[], Mapping[str, float]]],
    most: int = 0,
    is_enough: Callable[[Mapping[str, list[float]]], bool] = lambda found: True,
) -> dict[str, list[float]]:
    """Call every side once a round, each round in a new order; figures by name, a value a round.
    After those rounds others follow, up to ``most``, until ``is_enough`` of the figures so far."""
    order, shuffle = list(sides), random.Random(SEED).shuffle
    found: dict[str, list[float]] = {}
    for number in range(max(rounds, most)):
        if number >= rounds and (number - rounds) % LOOK_ROUNDS == 0 and is_enough(found):
            break
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
    pid = os.posix_spawnp(argv[0], list(argv), os.environ, file_actions=actions)
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
    role = RoleSpec(name="target", argv=tuple(argv))
    return _run(TrialSpec(trial="bench", roles=(role,), sampling=sampling or Sampling()))


def trial_of(*roles: RoleSpec) -> TrialRecord:
    """The record of one trial of these roles, straight from the runner.

    Raises:
        SystemExit: the trial failed.
    """
    return _run(TrialSpec(trial="bench", roles=roles))


def _run(spec: TrialSpec) -> TrialRecord:
    done = subprocess.run(
        [native.runner()], input=encode_spec(spec), capture_output=True, check=True
    )
    record = decode_record(done.stdout)
    if record.outcome.kind != "ok":
        commands = "; ".join(shlex.join(role.argv) for role in spec.roles)
        raise SystemExit(f"trial of {commands}: {record.outcome.message}")
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


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the real disk that goes away again."""
    SCRATCH.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH, prefix="bench-") as folder:
        yield Path(folder)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and all below it (proc_pid_stat(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):
            children += map(int, (task / "children").read_text().split())
    return own + sum(cpu_seconds(child) for child in children)


#: Keeps a CPU busy until its standard input ends.
_BUSY = """
import os, select, sys, time
os.nice(int(sys.argv[1]))
while not select.select([sys.stdin], [], [], 0)[0]:
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass
"""


@contextmanager
def busy_processes(count: int, nice: int = 0) -> Iterator[None]:
    """So many processes that each keep a CPU busy. They end with this one, however it ends."""
    with beside([_BUSY, str(nice)] for _ in range(count)):
        yield


@contextmanager
def beside(scripts: Iterable[Sequence[str]]) -> Iterator[None]:
    """A process for each Python script with its arguments; each is to end when its standard input
    does, as it does with this process."""
    started = [
        subprocess.Popen([sys.executable, "-c", *script], stdin=subprocess.PIPE)
        for script in scripts
    ]
    try:
        yield
    finally:
        for process in started:
            assert process.stdin is not None
            process.stdin.close()
        for process in started:
            process.wait()
