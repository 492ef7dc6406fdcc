"""Functions over many items, computed by several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from concurve.engine import tasks
from concurve.errors import RunError

#: A process whose handlers never let a signal end it, as where it must do something whole first.
_DEAF = """
import signal, time
from concurve.engine.tasks import Processes

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, lambda *_: None)
for _ in range(200):
    assert len(list(Processes(4).map(time.sleep, [0.0, 0.001] * 5))) == 10
"""


def test_processes_end_whatever_the_handlers_of_the_one_that_forks_them() -> None:
    """A pool ends its processes by SIGTERM, and waits for them."""
    done = subprocess.run(
        [sys.executable, "-c", _DEAF], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_one_that_is_told_to_end_before_it_heeds_signals_ends() -> None:
    """A pool that has all its results ends a process that has hardly begun."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, lambda *_: None)
        with tasks._without_signals():
            os.kill(os.getpid(), signal.SIGTERM)
            tasks._heed_signals()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM


def test_a_process_that_is_killed_is_no_wait_without_end() -> None:
    def die_at(number: int) -> int:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    results = tasks.Processes(2).map(die_at, range(6))
    with pytest.raises(RunError, match="ended from outside"):
        list(results)


def test_results_come_in_the_order_of_their_items_and_errors_as_they_were() -> None:
    assert list(tasks.Processes(2).map(lambda n: n * n, range(20))) == [n * n for n in range(20)]
    with pytest.raises(ZeroDivisionError):
        list(tasks.Processes(2).map(lambda n: 1 // n, [1, 0]))
