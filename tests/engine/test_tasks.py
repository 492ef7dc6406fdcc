"""Functions over many items, computed by several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from concurve.engine import tasks
from concurve.errors import RunError
from tests.helpers.real import wait_until

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


#: A process that computes with two forks, and says how it ends.
_SIGNALLED = """
import signal, time
from concurve.engine.tasks import Processes

def stop(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, stop)
try:
    for _ in Processes(2).map(time.sleep, [0.0, 0.0, 600.0]):
        print("computed", flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_group_ends_all_of_it(number: signal.Signals) -> None:
    """SIGTERM ends forks by itself: an idle one dies with the lock of the queue."""
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", _SIGNALLED],
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        assert process.stdout is not None
        for _ in range(2):
            assert process.stdout.readline() == "computed\n"
        os.killpg(process.pid, number)
        assert process.communicate(timeout=60)[0].endswith("stopped\n")
        assert process.returncode == 0
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)


_KILLED = """
import os, sys, time
from concurve.engine.tasks import Processes

def tell(number):
    # One write a line: print may write its newline apart, and the other fork between them.
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)

list(Processes(2).map(tell, range(2)))
"""


def test_nobody_is_left_of_one_that_is_killed() -> None:
    words = [sys.executable, "-c", _KILLED]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        forks = [Path(f"/proc/{int(process.stdout.readline())}") for _ in range(2)]
        process.kill()
        wait_until(lambda: not any(fork.exists() for fork in forks), "its forks have ended")


def test_an_idle_process_that_is_killed_is_no_wait_without_end(tmp_path: Path) -> None:
    """It waits for what to do, and holds the lock of the queue."""
    busy = tmp_path / "busy"
    results = tasks.Processes(2).map(partial(_sleep_at_one, busy), range(2))
    next(results)
    wait_until(lambda: busy.exists() and bool(busy.read_text()), "the second item")
    forks = [child.pid for child in multiprocessing.active_children()]
    (idle,) = (pid for pid in forks if pid is not None and str(pid) != busy.read_text())
    os.kill(idle, signal.SIGKILL)
    with pytest.raises(RunError, match="ended from outside"):
        list(results)
    assert not multiprocessing.active_children()


def test_a_map_that_is_left_ends_what_it_computes(tmp_path: Path) -> None:
    results = tasks.Processes(2).map(partial(_sleep_at_one, tmp_path / "busy"), range(2))
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


def _sleep_at_one(says: Path, number: int) -> int:
    if number == 1:
        says.write_text(str(os.getpid()))
        time.sleep(600)
    return number


def test_results_come_in_the_order_of_their_items_and_errors_as_they_were() -> None:
    assert list(tasks.Processes(2).map(lambda n: n * n, range(20))) == [n * n for n in range(20)]
    with pytest.raises(ZeroDivisionError):
        list(tasks.Processes(2).map(lambda n: 1 // n, [1, 0]))
