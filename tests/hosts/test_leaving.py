"""The end of a process that could not leave Ray."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: A process whose thread waits without end, and what is registered for its end; it prints with an
#: ordinary exit code, unless it is ended before.
_PROCESS = """
import atexit, sys, threading
from concurve.hosts import leaving

atexit.register(lambda: print("given back"))
wait = threading.Event().wait
threading.Thread(target=wait, name={name}, daemon=True).start()
leaving.end_if_waited_for(3)
print("went on")
sys.exit(4)
"""


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [("leaving.THREAD", 3, ["given back"]), ("'another'", 4, ["went on", "given back"])],
)
def test_a_process_that_waits_to_leave_ray_ends_at_once(
    name: str, code: int, says: list[str]
) -> None:
    words = [sys.executable, "-c", _PROCESS.format(name=name)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines() == says
