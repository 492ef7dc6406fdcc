"""Attached roles: their accounts agree with ``/proc``, and nothing is ever done to them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.engine.local import LocalEngine
from concurve.host.attaching import find
from concurve.store import Store
from concurve.wire import decode_record
from concurve.wire.record import TrialRecord
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers.forked import Process
from tests.helpers.real import PYTHON, Lab, wait_until
from tests.helpers.victim import Victim, running_victim

#: Reads ``/proc`` on either side of a phase in which the server works. It rests at the phase's
#: edges, so that both readers see the same, if the runner is not later than that.
REST_SECONDS = 0.3
_CLIENT = """
import os, socket, sys, time
pid, port, seconds, rest = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])

def read():
    totals = {"run_queue_ns": 0, "slices": 0, "switches": 0, "threads": 0}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as file:
            _, waited, slices = map(int, file.read().split())
        with open(f"/proc/{pid}/task/{tid}/status") as file:
            switches = sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
        for name, value in zip(totals, (waited, slices, switches, 1)):
            totals[name] += value
    # The clock of a process, of all its threads.
    return {**totals, "cpu_ns": time.clock_gettime_ns((~pid << 3) | 2)}

def mark(edge):
    time.sleep(rest)
    os.write(3, b'{"phase":"measure","edge":"%s"}\\n' % edge)
    time.sleep(rest)

def ask():
    server = socket.create_connection(("127.0.0.1", port))
    server.sendall(seconds.encode())
    return server

before = read()
mark(b"begin")
for server in [ask(), ask(), ask()]:
    server.recv(1)
mark(b"end")
after = read()
for name in before:
    change = after[name] if name == "threads" else after[name] - before[name]
    os.write(3, b'{"indicator":"%s","value":%d}\\n' % (name.encode(), change))
"""


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    with running_victim(tmp_path) as running:
        yield running


def _measured(victim: Victim, seconds: float) -> TrialRecord:
    arguments = (str(victim.pid), str(victim.port), str(seconds), str(REST_SECONDS))
    client = RoleSpec(name="client", argv=(*PYTHON, _CLIENT, *arguments))
    server = RoleSpec(name="server", end="serve", attach=victim.attach())
    return decode_record(LocalEngine().run(TrialSpec(trial="attached", roles=(server, client))))


def test_the_account_of_a_phase_agrees_with_proc_within_one_percent(victim: Victim) -> None:
    for _ in range(10):
        record = _measured(victim, 0.5)
        assert record.outcome.kind == "ok", record.outcome
        server, client = record.roles
        if (server.phases[0].late_ns or 0) < REST_SECONDS / 2 * 1e9:
            break
    else:
        pytest.skip("the machine is so busy that the runner reads its probes late each time")
    read = {line.indicator: line.value for line in client.indicators}
    (phase,) = server.phases
    usage = phase.usage
    assert usage.cpu_ns is not None and usage.run_queue_ns is not None
    assert usage.voluntary_switches is not None and usage.involuntary_switches is not None
    assert usage.cpu_ns >= 1.5e9
    assert usage.cpu_ns == pytest.approx(read["cpu_ns"], rel=0.01)
    assert usage.run_queue_ns == pytest.approx(read["run_queue_ns"], rel=0.01, abs=1e6)
    assert usage.slices == pytest.approx(read["slices"], rel=0.01, abs=5)
    switches = usage.voluntary_switches + usage.involuntary_switches
    assert switches == pytest.approx(read["switches"], rel=0.01, abs=5)
    assert server.threads.peak == read["threads"] == len(server.threads.listed)
    listed = sum(thread.usage.cpu_ns or 0 for thread in server.threads.listed)
    assert listed == pytest.approx(read["cpu_ns"], rel=0.01)


#: Forks a child for each connection, as PostgreSQL does. It computes, answers, and exits when its
#: client has gone: with much memory to give back, so that it exits for a while.
_FORKING = """
import contextlib, os, signal, socket, time
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)

def reap(*_):
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass

signal.signal(signal.SIGCHLD, reap)
while True:
    client, _ = listening.accept()
    if os.fork():
        client.close()
        continue
    held = bytearray(os.urandom(4096)) * (12 << 10)
    end = time.thread_time() + float(client.recv(64))
    while time.thread_time() < end:
        pass
    client.sendall(b"x")
    client.recv(1)
    os._exit(0)
"""
_ASK_TWICE = """
import socket, sys
servers = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in "ab"]
for server in servers:
    server.sendall(b"0.1")
for server in servers:
    server.recv(1)
"""


def test_a_child_that_exits_when_the_load_ends_is_counted_once_in_its_trial() -> None:
    server = subprocess.Popen(
        [*PYTHON, _FORKING], stdout=subprocess.PIPE, text=True, start_new_session=True
    )

    def used() -> float:
        """CPU seconds of the server and of its children, once all of them have gone."""
        wait_until(lambda: not (task / "children").read_text().split(), "the children to end")
        stat = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")

    task = Path(f"/proc/{server.pid}/task/{server.pid}")
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        roles = (
            RoleSpec(name="server", end="serve", attach=find(str(server.pid), "test")),
            RoleSpec(name="client", argv=(*PYTHON, _ASK_TWICE, port)),
        )
        begun = before = used()
        told = []
        for trial in range(12):
            record = decode_record(LocalEngine().run(TrialSpec(trial=str(trial), roles=roles)))
            assert record.outcome.kind == "ok", record.outcome
            usage = record.roles[0].usage
            if usage.cpu_ns is None:
                pytest.skip(f"what ended processes used is not known here: {usage.absent}")
            told.append(usage.cpu_ns / 1e9)
            if trial % 2:  # the next one begins when those of the last exit
                assert sum(told[-2:]) == pytest.approx(used() - before, rel=0.2, abs=0.1), told
                before = used()
        # What they use to exit, after the last reading of a trial, is in none of them.
        assert sum(told) == pytest.approx(used() - begun, rel=0.15), told
        assert all(seconds > 0.19 for seconds in told), told
    finally:
        server.kill()
        server.wait()


def test_a_whole_trial_leaves_it_as_it_was(victim: Victim) -> None:
    before = victim.state()
    assert _measured(victim, 0.01).outcome.kind == "ok"
    assert victim.state() == before
    assert victim.signals() == []


@pytest.mark.parametrize("batch", range(4))
def test_a_laboratory_that_is_killed_leaves_it_as_it_was(
    victim: Victim, tmp_path: Path, batch: int
) -> None:
    """At 20 moments, five at a time: by three signals, to the laboratory, its runner, or both."""
    draw = random.Random(batch)
    before = victim.state()
    ask = (
        "import socket\n"
        f"server = socket.create_connection(('127.0.0.1', {victim.port}))\n"
        "server.sendall(b'0.02'); server.recv(1)"
    )
    sweep = "sweep", "-P", "n", "1,2", "--attach", str(victim.pid), "--", *PYTHON, ask, "{n}"
    labs = []
    for moment in range(5 * batch, 5 * batch + 5):
        folder = tmp_path / str(moment)
        folder.mkdir()
        lab = Lab(folder)
        labs.append((moment, lab, lab.fork(*sweep)))
    try:
        for moment, lab, laboratory in labs:
            if moment % 5:  # the first hits its start
                _wait_for_runner(lab, laboratory)
            time.sleep(draw.uniform(0, 0.3))
            number = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[moment % 3]
            runners = _runners(lab) if moment % 4 == 3 else []
            for pid in [*runners, *([] if moment % 8 == 3 else [laboratory.pid])]:
                _send(pid, number)
        for moment, lab, laboratory in labs:
            if moment % 8 == 3:  # its runner alone was hit
                laboratory.send_signal(signal.SIGTERM)
            laboratory.communicate()
            assert lab.wait_until_alone() == {}, f"moment {moment}"
    finally:
        for _, lab, _ in labs:
            lab.end()
    assert victim.state() == before
    assert victim.signals() == []
    assert _measured(victim, 0.01).outcome.kind == "ok", "it serves on"


def _wait_for_runner(lab: Lab, laboratory: Process) -> None:
    wait_until(lambda: bool(_runners(lab)) or laboratory.poll() is not None, "a trial")


def _runners(lab: Lab) -> list[int]:
    return [pid for pid, line in lab.alive().items() if "concurve-trial" in line.split(" ")[0]]


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def test_a_run_is_not_resumed_on_another_process(victim: Victim, lab: Lab, tmp_path: Path) -> None:
    sweep = (
        "sweep",
        "-P",
        "n",
        "1,2",
        "--repeats",
        "400",
        "--attach",
        str(victim.pid),
        "--",
        "true",
        "{n}",
    )
    laboratory = lab.start(*sweep)
    wait_until(lambda: _trials(lab) > 2 or laboratory.poll() is not None, "the first trials")
    laboratory.send_signal(signal.SIGINT)
    laboratory.communicate()
    assert laboratory.returncode == 130 or "stopped" in lab.run("runs").stdout
    victim.process.kill()
    victim.process.wait()
    resumed = lab.run("resume", "last")
    assert resumed.returncode != 0
    assert f"no process {victim.pid}" in resumed.stderr or "used again" in resumed.stderr
    assert "try:" in resumed.stderr


def _trials(lab: Lab) -> int:
    if not lab.db.exists():
        return 0
    store = Store(str(lab.db))
    runs = store.runs()
    return len(list(store.trials(runs[-1].id))) if runs else 0


def test_what_is_attached_is_no_foreign_process(victim: Victim, lab: Lab) -> None:
    ask = (
        "import socket\n"
        f"server = socket.create_connection(('127.0.0.1', {victim.port}))\n"
        "server.sendall(b'0.2'); server.recv(1)"
    )
    done = lab.run("sweep", "--repeats", "2", "--attach", str(victim.pid), "--",
                   *PYTHON, ask)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"(pid {victim.pid}," not in done.stdout + done.stderr
    store = Store(str(lab.db))
    head = store.runs()[-1]
    for row in store.records(head.id):
        record = decode_record(row.record)
        server = record.role("server")
        assert server is not None and (server.usage.cpu_ns or 0) > 0.15e9


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("2147483000", "there is no process 2147483000"),
        ("redis", "names no process"),
        ("unit:no-such-thing", "no unit no-such-thing.service has processes here"),
        ("container:no-such-thing", "no container 'no-such-thing' runs here"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_starts(
    lab: Lab, what: str, says: str
) -> None:
    done = lab.run("sweep", "--attach", what, "--", "true")
    assert done.returncode != 0
    assert says in done.stderr and "try:" in done.stderr
    assert "no runs" in lab.run("runs").stderr or not lab.db.exists()
