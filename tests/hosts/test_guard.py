"""What is told beside a process that joins Ray, while Ray lets nothing of it run."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading

import pytest

from concurve.hosts import guard
from tests.helpers.real import PATIENCE

#: A process that joins, and what it does meanwhile.
_PROCESS = """
import os, signal, sys
from concurve.hosts.guard import guarded

with guarded({{{address!r}: ("server1", "Ray's head")}}):
    {does}
"""


def closed() -> str:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def joined(address: str, does: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", _PROCESS.format(address=address, does=does)]
    # Its standard error is open until the guard has ended too.
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize(
    ("does", "code"),
    [("signal.pause()", -9), ("os._exit(1)", 1)],
    ids=["one that Ray keeps waiting is ended", "one that Ray has ended"],
)
def test_what_was_lost_is_told_in_the_place_of_a_process_that_cannot(does: str, code: int) -> None:
    done = joined(closed(), does)
    assert done.returncode == code
    assert done.stderr.startswith("host server1 was lost: Ray's head at 127.0.0.1:")
    assert "the same command again" in done.stderr


def test_who_has_gone_on_is_left_alone() -> None:
    done = joined(closed(), "pass")
    assert (done.returncode, done.stderr) == (0, "")


def test_of_a_process_that_ended_for_another_reason_nothing_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        # An answer that waits for whoever asks: the end of the connection.
        ends = threading.Thread(target=_end_connections, args=(listener,))
        ends.start()
        try:
            done = joined(address, "os._exit(3)")
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            ends.join()
    assert (done.returncode, done.stderr) == (3, "")


def _end_connections(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            listener.accept()[0].close()


@pytest.mark.parametrize("words", [[], ["no json"], ["[]"], [json.dumps({"a": 1})]])
def test_wrong_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert guard.main(words) == 2
    assert "usage:" in capsys.readouterr().err
