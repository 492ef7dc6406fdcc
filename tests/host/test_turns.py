"""Those that wait for the machine stand in a line that nobody has to leave by itself."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from concurve.host.lock import lock_path
from concurve.host.turns import in_line
from tests.helpers.real import first_line, wait_until

WAITS = """
from concurve.host.turns import in_line
with in_line() as ahead:
    print(ahead(), flush=True)
    input()
"""


def line_path() -> Path:
    return lock_path().with_name(f"{lock_path().name}.line")


def test_those_that_came_before_are_counted_until_they_leave() -> None:
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(in_line())
        before_second = second.enter_context(in_line())
        with in_line() as before_third:
            assert (before_second(), before_third()) == (1, 2)
            first.close()
            assert (before_second(), before_third()) == (0, 1)
            with in_line() as before_last:
                assert before_last() == 2, "who comes later has no place that became free"
                assert (before_second(), before_third()) == (0, 1)
            second.close()
            assert before_third() == 0


def test_a_process_that_is_killed_leaves_the_line() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert first_line(process) == "0"
        with in_line() as ahead:
            assert ahead() == 1
            process.send_signal(signal.SIGKILL)
            process.wait()
            wait_until(lambda: ahead() == 0, "the end of the line")
    finally:
        process.kill()
        process.communicate()


def test_every_user_may_stand_in_the_line() -> None:
    with in_line():
        assert line_path().stat().st_mode & 0o777 == 0o666
        assert line_path().read_bytes() == b""


def test_without_the_file_there_is_no_order() -> None:
    line_path().mkdir()
    with in_line() as first, in_line() as second:
        assert first() == second() == 0


@pytest.mark.parametrize(("start", "count"), [(0, 0), (0, 100), (2**63 - 2, 1)])
def test_what_another_user_locks_keeps_nobody_from_waiting(start: int, count: int) -> None:
    line_path().touch()
    with line_path().open("r+b") as file:
        asked = struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, count, 0)
        fcntl.fcntl(file.fileno(), fcntl.F_OFD_SETLK, asked)
        with in_line() as ahead:
            assert ahead() <= 1
