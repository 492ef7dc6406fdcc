"""Which line of a hook's output tells of something that went wrong."""

from __future__ import annotations

import pytest

from concurve.readings.hook_outputs import telling_line
from concurve.wire.record import HookRecord, Output


def said(stdout: str = "", stderr: str = "") -> HookRecord:
    return HookRecord("prepare", "n=1", Output(head=stdout), Output(head=stderr))


@pytest.mark.parametrize(
    "line",
    [
        "ERR Unknown option or number of arguments for CONFIG SET - 'io-thread'",
        "curl: (7) Failed to connect to localhost port 8080: Connection refused",
        "sh: 1: set-it: not found",
        'psql: error: connection to server at "localhost" failed',
        "sysctl: cannot stat /proc/sys/vm/nothing: No such file or directory",
        "Permission denied (publickey).",
        "nginx: [emerg] invalid number of arguments in worker_processes",
        "usage: tune [-h] N",
    ],
)
def test_errors_are_told_on_either_stream(line: str) -> None:
    assert telling_line(said(stderr=f"connecting\n{line}\nbye")) == line
    assert telling_line(said(stdout=f"OK\n{line}")) == line


@pytest.mark.parametrize(
    "text", ["", "OK", "done: 0 errors", "no errors found", "loaded 100 rows without failures"]
)
def test_what_went_well_is_not(text: str) -> None:
    assert telling_line(said(text, text)) == ""
