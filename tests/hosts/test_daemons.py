"""The CPU time of the daemons of a host, as its agent takes it for each trial."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.hosts import daemons
from concurve.hosts.commands import MARK_VARIABLE
from concurve.hosts.daemons import CpuOfDaemons

pytestmark = pytest.mark.real

#: Says that it is there, uses CPU time when it is told a number of ms, and says so.
DAEMON = """
import sys, time
print("there", flush=True)
for line in sys.stdin:
    until = time.process_time() + int(line) / 1e3
    while time.process_time() < until:
        pass
    print("used", flush=True)
"""


class Daemon:
    """A process with a mark."""

    def __init__(self, mark: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", DAEMON],
            env={**os.environ, MARK_VARIABLE: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._line() == "there"

    def use(self, milliseconds: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{milliseconds}\n")
        self.process.stdin.flush()
        assert self._line() == "used"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def mark() -> str:
    return f"test-{os.getpid()}-{time.monotonic_ns()}"


@contextlib.contextmanager
def started(mark: str) -> Iterator[Daemon]:
    daemon = Daemon(mark)
    try:
        yield daemon
    finally:
        daemon.end()


def used_ns(cpu: CpuOfDaemons) -> int:
    found = cpu.used_ns()
    assert found is not None
    return found


def test_what_they_use_between_two_moments_is_counted(mark: str) -> None:
    cpu = CpuOfDaemons(mark)
    with started(mark) as one, started(mark) as two, started(f"{mark}-other") as other:
        one.use(30)
        cpu.begin()
        one.use(20)
        two.use(10)
        other.use(200)
        assert 30e6 <= used_ns(cpu) < 200e6
        cpu.begin()
        assert used_ns(cpu) < 30e6, "what was used before does not count again"


def test_they_are_looked_for_once_in_a_while(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    look = daemons.marked

    def counted(mark: str, proc: Path) -> dict[int, str]:
        looks.append(mark)
        return look(mark, proc)

    monkeypatch.setattr(daemons, "marked", counted)
    monkeypatch.setattr(daemons, "LOOKED_FOR_SECONDS", 3600.0)
    cpu = CpuOfDaemons(mark)
    with started(mark):
        cpu.begin()
        with started(mark) as late:
            cpu.begin()
            late.use(50)
            assert used_ns(cpu) < 50e6, "it is not among those that were found"
            assert len(looks) == 1
            monkeypatch.setattr(daemons, "LOOKED_FOR_SECONDS", 0.0)
            cpu.begin()
            late.use(50)
            assert used_ns(cpu) >= 50e6
    assert len(looks) == 2


def test_one_that_has_ended_is_left_out(mark: str) -> None:
    cpu = CpuOfDaemons(mark)
    with started(mark) as stays:
        with started(mark) as ends:
            cpu.begin()
            ends.use(50)
        stays.use(10)
        assert 10e6 <= used_ns(cpu) < 50e6


def test_another_process_with_its_number_is_left_out(mark: str) -> None:
    cpu = CpuOfDaemons(mark)
    with started(mark) as daemon:
        cpu.begin()
        daemon.use(50)
        cpu._found[daemon.process.pid] = "the moment when another one was started"
        assert used_ns(cpu) == 0


def test_without_any_the_time_is_not_known(mark: str) -> None:
    cpu = CpuOfDaemons(mark)
    cpu.begin()
    assert cpu.used_ns() is None
