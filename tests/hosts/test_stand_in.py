"""A stand-in for roles on other hosts, from its start until it leaves."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from concurve.host.own_cpus import take_all_cpus
from concurve.host.own_python import module
from concurve.hosts import stand_in
from concurve.hosts.messages import Arrive, ToStandIn, packed, receive, request_of
from concurve.hosts.parts import HOLD, PASS


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
@pytest.mark.parametrize("kind", [PASS, HOLD])
def test_a_gate_waits_on_any_cpu_and_what_stays_for_others_on_its_own(
    kind: str, tmp_path: Path, granted: set[int]
) -> None:
    path, one = tmp_path / "socket", {min(granted)}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(60)
        os.sched_setaffinity(0, one)  # inherited: those of daemons
        words = [*module("concurve.hosts.stand_in"), str(path), "@gate-1", kind]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        try:
            stream, _ = listener.accept()
            with stream:
                assert request_of(receive(stream)) == Arrive("@gate-1", kind == HOLD)
                found = os.sched_getaffinity(process.pid)
                assert found == (granted if kind == PASS else one)
                stream.sendall(packed(ToStandIn(open_at_ns=time.monotonic_ns(), exit=kind == HOLD)))
                assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()


def test_a_gate_that_was_passed_leaves_later_and_on_its_own_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has said before that it is ready: its end would take a CPU that others start on."""
    did: list[object] = []
    monkeypatch.setattr(stand_in, "report", did.append)
    monkeypatch.setattr(stand_in, "take_all_cpus", lambda: did.append("all"))
    cpus = SimpleNamespace(
        sched_getaffinity=lambda _: {7}, sched_setaffinity=lambda _, own: did.append(own)
    )
    monkeypatch.setattr(stand_in, "os", cpus)
    clock = SimpleNamespace(monotonic_ns=time.monotonic_ns, sleep=did.append)
    monkeypatch.setattr(stand_in, "time", clock)
    path = tmp_path / "socket"

    def open_the_gate() -> None:
        stream, _ = listener.accept()
        with stream:
            receive(stream)
            stream.sendall(packed(ToStandIn(open_at_ns=0)))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        agent = threading.Thread(target=open_the_gate)
        agent.start()
        assert stand_in.main([str(path), "@gate-1", PASS]) == 0
        agent.join()
    assert did[:2] == ["all", {"ready": True}]
    assert did[5:] == [stand_in.LEAVE_SECONDS, {7}], "after a fact, and two edges of a phase"


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert stand_in.main(["socket", "gate", "jump"]) == 2
    assert "pass|hold" in capsys.readouterr().err
