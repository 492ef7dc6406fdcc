"""An agent and its trial go on whatever they are told, and wait for nobody for ever."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.hosts import messages as m
from concurve.hosts import running
from concurve.hosts.connection import SocketConnection, ask
from concurve.hosts.messages import Event
from concurve.hosts.running import RunningTrial
from concurve.wire import encode_spec
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers import real
from tests.helpers.agents import Agents, inventory_of

pytestmark = pytest.mark.real

#: Lines of which one is an event.
LINES = [b"5", b"[]", b"{}", b'"role"', b'{"role": 5}', b"nothing", b"\xff", b"[" * 20_000,
         b'{"role": "load", "phase": "measure", "edge": "begin"}']  # fmt: skip

WRITES = "import os, sys; os.write(int(sys.argv[2]), bytes.fromhex(sys.argv[3])); print('{}')"
WAITS = "import time; time.sleep(1077)"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Agents]:
    found = Agents(tmp_path, inventory_of({"a": "127.0.0.1"}))
    try:
        yield found
    finally:
        found.end()


def trial_of(code: str, *arguments: str, environment: str = "") -> RunningTrial:
    """A trial whose runner is a program of Python, which gets arguments behind its own."""
    role = RoleSpec(name="load", argv=("true",), env={"LONG": environment})
    line = [sys.executable, "-c", f"import sys; sys.argv += {list(arguments)!r}\n{code}"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running, "runner_command", lambda: line)
        return RunningTrial(
            encode_spec(TrialSpec(trial="hostile", roles=(role,))), "hostile", Path("socket")
        )


def test_a_line_that_is_no_event_is_left_out() -> None:
    text = b"".join(line + b"\n" for line in LINES)
    trial = trial_of(WRITES, text.hex())
    trial.feed()
    until = time.monotonic() + real.PATIENCE
    found: list[Event] = []
    while not trial.is_over():
        assert time.monotonic() < until
        for stream in trial.streams():
            with contextlib.suppress(BlockingIOError):
                trial.read(stream)
        found += trial.new_lines()
    trial.end()
    assert found == [Event(role="load", line={"phase": "measure", "edge": "begin"})]


def test_a_runner_that_reads_nothing_keeps_its_agent_from_nothing() -> None:
    trial = trial_of(WAITS, environment="x" * (1 << 20))
    all_was_given: list[bool] = []
    thread = threading.Thread(target=lambda: all_was_given.append(trial.feed()), daemon=True)
    thread.start()
    thread.join(60)
    assert all_was_given == [False]
    trial.end_at_once(0.1)


def test_a_spec_longer_than_a_pipe_is_given_as_the_runner_takes_it() -> None:
    trial = trial_of("import sys, time; time.sleep(0.2); print(len(sys.stdin.buffer.read()))",
                     environment="x" * (1 << 20))  # fmt: skip
    until = time.monotonic() + real.PATIENCE
    while not trial.feed():
        assert time.monotonic() < until
        time.sleep(0.01)
    while not trial.is_over():
        for stream in trial.streams():
            trial.read(stream)
    record = trial.end().record
    assert record is not None and int(record) > 1 << 20


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
def test_an_agent_waits_for_news_for_no_odd_time(own: Agents) -> None:
    own.start(seconds=60.0)
    (path,) = own.paths.values()
    for seconds in (float("nan"), -1.0, float("-inf"), 0.0):
        connection = SocketConnection(path)
        assert ask(connection, "a", m.Watch(seconds)) == []
        connection.close()
    late = SocketConnection(path)
    late._connected().sendall(m.packed(m.Watch(1e300)) + m.packed(m.Watch(float("inf"))))
    assert ask(SocketConnection(path), "a", m.Renew()) is None
    late.close()


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
def test_an_agent_that_is_at_work_still_says_that_it_is_there(own: Agents, tmp_path: Path) -> None:
    """Or a host that looks for a program for long would be taken for one that is stopped."""
    pipe = tmp_path / "program"
    os.mkfifo(pipe, 0o700)
    own.start()
    (path,) = own.paths.values()
    working, watching = SocketConnection(path), SocketConnection(path)
    # The file is read to its end, for which the agent waits until the test writes one.
    request = m.DescribeProgram("program", "role load", False, None, str(tmp_path))
    answers: list[object] = []
    thread = threading.Thread(
        target=lambda: answers.append(ask(working, "a", request)), daemon=True
    )
    thread.start()
    for _ in range(5):
        assert ask(watching, "a", m.Watch(0.2)) == []
    assert not answers
    pipe.write_bytes(b"here")
    thread.join(real.PATIENCE)
    assert len(answers) == 1
    for connection in (working, watching):
        connection.close()


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
def test_an_agent_at_work_ends_with_its_lease_once_it_was_watched(
    own: Agents, tmp_path: Path
) -> None:
    pipe = tmp_path / "program"
    os.mkfifo(pipe, 0o700)
    own.start(seconds=0.5)
    (path,) = own.paths.values()
    watching, working = SocketConnection(path), SocketConnection(path)
    assert ask(watching, "a", m.Watch(0.0)) == []
    request = m.DescribeProgram("program", "role load", False, None, str(tmp_path))
    working._connected().sendall(m.packed(request))
    # The file would be read for ever, and its answer waited for 30 s.
    assert own.lab.wait_until_alone(20.0) == {}
    for connection in (watching, working):
        connection.close()
