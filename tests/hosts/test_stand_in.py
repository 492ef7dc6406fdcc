"""A stand-in for roles on other hosts, from its start until it leaves."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from concurve.host.own_cpus import take_all_cpus
from concurve.host.own_python import module
from concurve.hosts import stand_in
from concurve.hosts.messages import Arrive, ToStandIn, packed, receive, request_of
from concurve.hosts.parts import HOLD, PASS


@pytest.mark.real
def test_a_gate_waits_on_any_cpu_though_it_was_started_on_those_of_daemons(tmp_path: Path) -> None:
    usual = os.sched_getaffinity(0)
    take_all_cpus()
    granted = os.sched_getaffinity(0)
    os.sched_setaffinity(0, usual)
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(60)
        one = str(min(granted))
        words = [*module("concurve.hosts.stand_in"), str(path), "@gate-1", PASS]
        process = subprocess.Popen(["taskset", "-c", one, *words], stdin=subprocess.DEVNULL)
        try:
            stream, _ = listener.accept()
            with stream:
                assert request_of(receive(stream)) == Arrive("@gate-1", False)
                assert os.sched_getaffinity(process.pid) == granted
                stream.sendall(packed(ToStandIn(open_at_ns=time.monotonic_ns())))
                assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize(("kind", "left"), [(PASS, [stand_in.LEAVE_SECONDS]), (HOLD, [])])
def test_a_gate_that_was_passed_leaves_later(
    kind: str, left: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has said before that it is ready: its end would take a CPU that others start on."""
    did: list[object] = []
    monkeypatch.setattr(stand_in, "report", did.append)
    monkeypatch.setattr(time, "sleep", did.append)
    ours, agents = socket.socketpair()
    with ours, agents:
        agents.sendall(packed(ToStandIn(open_at_ns=0)))
        agents.sendall(packed(ToStandIn(exit=True)))
        assert stand_in._stand(ours, kind == PASS) == 0
    assert did[0] == {"ready": True}
    assert [it for it in did if isinstance(it, float)] == left
    assert did[-1:] == (left or did[-1:])


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert stand_in.main(["socket", "gate", "jump"]) == 2
    assert "pass|hold" in capsys.readouterr().err
