"""Processes with a mark are ended, and no other one that has got the number of one of them."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from concurve.host import orphans
from concurve.host.processes import has_variable
from tests.helpers.real import wait_until

VARIABLE = "CONCURVE_TEST_ORPHAN"

#: Its child outlives it.
LEAVES = "import subprocess, sys; subprocess.Popen(['sleep', '1077']); print('left', flush=True)"


def marked(value: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            has = has_variable(folder, f"{VARIABLE}={value}".encode())
        except OSError:
            continue
        found += [int(folder.name)] * has
    return found


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
        started[value] = marked(value)
        assert len(started[value]) == 1, "the child that was left"
    orphans.end_marked(VARIABLE, mine)
    wait_until(lambda: not marked(mine), "their end")
    assert marked(anothers) == started[anothers]
    orphans.end_marked(VARIABLE, anothers)


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
