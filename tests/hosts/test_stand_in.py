"""A stand-in for roles on other hosts, from its start until it leaves."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from concurve.host.own_cpus import take_all_cpus
from concurve.host.own_python import module
from concurve.hosts import stand_in
from concurve.hosts.messages import Arrive, ToStandIn, packed, receive, request_of
from concurve.hosts.parts import HOLD
from tests.helpers.real import wait_until


@pytest.fixture
def granted() -> Iterator[set[int]]:
    """The CPUs that the kernel grants, several of them."""
    usual = os.sched_getaffinity(0)
    try:
        take_all_cpus()
        found = os.sched_getaffinity(0)
        if len(found) < 2:
            pytest.skip("one CPU")
        yield found
    finally:
        os.sched_setaffinity(0, usual)


@pytest.mark.real
def test_a_gate_waits_on_any_cpu_and_then_leaves_those_that_are_measured(
    tmp_path: Path, granted: set[int]
) -> None:
    path, one = tmp_path / "socket", {min(granted)}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(60)
        os.sched_setaffinity(0, one)  # inherited: those of daemons
        process = subprocess.Popen(
            [*module("concurve.hosts.stand_in"), str(path), "@gate-1", HOLD],
            stdin=subprocess.DEVNULL,
        )
        try:
            stream, _ = listener.accept()
            with stream:
                assert request_of(receive(stream)) == Arrive("@gate-1", True)
                assert os.sched_getaffinity(process.pid) == granted
                stream.sendall(packed(ToStandIn(open_at_ns=time.monotonic_ns())))
                wait_until(
                    lambda: os.sched_getaffinity(process.pid) == one, "it is on its own CPUs"
                )
                stream.sendall(packed(ToStandIn(exit=True)))
                assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize(("passes", "left"), [(True, [stand_in.LEAVE_SECONDS]), (False, [])])
def test_a_gate_that_was_passed_leaves_later(
    passes: bool, left: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has said before that it is ready: its end would take a CPU that others start on."""
    did: list[object] = []
    monkeypatch.setattr(stand_in, "report", did.append)
    clock = SimpleNamespace(monotonic_ns=time.monotonic_ns, sleep=did.append)
    monkeypatch.setattr(stand_in, "time", clock)
    ours, agents = socket.socketpair()
    with ours, agents:
        agents.sendall(packed(ToStandIn(open_at_ns=0)))
        agents.sendall(packed(ToStandIn(exit=True)))
        assert stand_in._stand(ours, passes, os.sched_getaffinity(0)) == 0
    assert did[0] == {"ready": True}
    assert did[4:] == left, "after the fact and the two edges that say where the trial begins"


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert stand_in.main(["socket", "gate", "jump"]) == 2
    assert "pass|hold" in capsys.readouterr().err
