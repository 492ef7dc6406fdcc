"""Processes with a mark are ended, and no other one that has got the number of one of them."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from concurve.host import orphans
from concurve.host.processes import has_variable
from tests.helpers.real import wait_until, with_words

VARIABLE = "CONCURVE_TEST_ORPHAN"

#: Its child outlives it.
LEAVES = "import subprocess, sys; subprocess.Popen(['sleep', '1077']); print('left', flush=True)"


#: A subreaper starts what leaves its session and its environment; the parent of that has ended, and
#: a thread has a child of its own.
REAPS = """
import subprocess, sys, threading
from concurve.host.orphans import become_subreaper, end_children, wait_for_children
become_subreaper()
subprocess.run(["sh", "-c", f"env -i setsid sleep {sys.argv[1]} & :"], check=True)
mine, go = [], threading.Event()
def start():
    mine.append(subprocess.Popen(["cat"], stdin=-1))
    go.wait()
threading.Thread(target=start).start()
while not mine:
    pass
assert not wait_for_children(0.0)
print("started", flush=True)
sys.stdin.readline()
end_children()
assert wait_for_children(0.0)
assert mine[0].poll() is None, "a child of a thread is its own matter"
mine[0].kill()
go.set()
print("ended", flush=True)
"""


def marked(value: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            has = has_variable(folder, f"{VARIABLE}={value}".encode())
        except OSError:
            continue
        found += [int(folder.name)] * has
    return found


def is_one(value: str) -> bool:
    return len(marked(value)) == 1


def test_all_with_the_mark_are_ended_and_no_others() -> None:
    started = {}
    # Other tests may run at the same time.
    mine, anothers = uuid.uuid4().hex, uuid.uuid4().hex
    for value in (mine, anothers):
        line = [sys.executable, "-c", LEAVES]
        environment = {**os.environ, VARIABLE: value}
        process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "left\n"
        process.wait()
        process.stdout.close()
        # The environment cannot be read for a moment while a process becomes a program.
        wait_until(functools.partial(is_one, value), "the child that was left")
        started[value] = marked(value)
    orphans.end_marked(VARIABLE, mine)
    wait_until(lambda: not marked(mine), "their end")
    assert marked(anothers) == started[anothers]
    orphans.end_marked(VARIABLE, anothers)


def test_a_subreaper_ends_what_has_left_it_in_every_other_way() -> None:
    seconds = str(10**6 + uuid.uuid4().int % 10**6)  # by which it is told from others
    line = [sys.executable, "-c", REAPS, seconds]
    with subprocess.Popen(line, stdin=-1, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "started\n"
        wait_until(lambda: with_words(f"sleep {seconds}") != [], "the orphan")
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ended\n"
    assert process.returncode == 0
    assert with_words(f"sleep {seconds}") == []


def test_a_number_that_another_process_has_by_now_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = subprocess.Popen(["sleep", "1077"])
    looks = []

    def has(folder: Path, mark: bytes) -> bool:
        """The number is that of a marked process, until its handle is there."""
        if folder.name != str(process.pid):
            return False
        looks.append(mark)
        return len(looks) == 1

    monkeypatch.setattr(orphans, "has_variable", has)
    try:
        orphans.end_marked(VARIABLE, "mine")
        assert len(looks) == 2
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
