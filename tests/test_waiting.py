"""Tests that wait for a process notice its end at once, and show what it said."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers import resp
from tests.helpers.real import PATIENCE, Lab, first_line, missing, wait_until

SAYS = "import sys; print('on its way'); sys.exit('the port is taken')"


def test_a_process_that_ends_is_not_waited_for() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SAYS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    begun = time.monotonic()
    with pytest.raises(AssertionError, match="a port does not come: ended with 1") as failed:
        wait_until(lambda: False, "a port", of=process)
    assert time.monotonic() - begun < PATIENCE / 2
    assert "on its way" in str(failed.value) and "the port is taken" in str(failed.value)


def test_a_line_that_does_not_come_is_explained() -> None:
    quiet = SAYS.replace("print('on its way'); ", "")
    process = subprocess.Popen(
        [sys.executable, "-c", quiet], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with pytest.raises(AssertionError, match=r"ended with 1\nthe port is taken"):
        first_line(process)


def test_what_came_before_the_end_has_come(tmp_path: Path) -> None:
    file = tmp_path / "there"
    process = subprocess.Popen([sys.executable, "-c", f"open({str(file)!r}, 'w')"])
    process.wait()
    wait_until(file.exists, "a file", of=process)


def test_an_output_that_a_child_holds_open_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.helpers.real.OUTPUT_SECONDS", 0.1)
    process = subprocess.Popen(["sh", "-c", "sleep 20 & exit 3"], stdout=subprocess.PIPE)
    with pytest.raises(AssertionError, match=r"ended with 3\n.its output cannot be read"):
        wait_until(lambda: False, "a port", of=process)


@pytest.mark.real
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_laboratory_that_ends_is_not_waited_for(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for start in (lab.start, lab.fork):
        start("sweep", "--", "no-such-program")
        with pytest.raises(AssertionError, match="'sleep 1' does not come: ended with 2") as failed:
            lab.wait_for_process("sleep 1")
        assert "no-such-program" in str(failed.value)


@pytest.mark.real
@pytest.mark.skipif(resp.missing() is not None, reason=str(resp.missing()))
def test_a_server_that_ends_is_not_waited_for() -> None:
    server = resp.Server("--no-such-option")
    with pytest.raises(AssertionError, match="engines does not come: ended with 2") as failed:
        wait_until(lambda: bool(server.engines()), "engines", of=server)
    assert "--no-such-option" in str(failed.value)
    assert server.end() == server.end()
