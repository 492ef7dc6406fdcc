"""Trials over hosts, with real runners and agents: every host is a process of this machine, and the
connections are sockets in place of Ray."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from concurve.definition.study_file import parse_study
from concurve.engine import Problem
from concurve.engine.local import STOP_SECONDS, LocalEngine
from concurve.errors import BusyError, HostError, RunError
from concurve.host.temporary import offered_folder
from concurve.hosts import messages as m
from concurve.hosts.connection import QUICK_SECONDS, HostLostError, SocketConnection, ask
from concurve.hosts.engine import HostsEngine
from concurve.hosts.starting import start_agent
from concurve.hosts.trial import TrialOverHosts
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.protocol import LOST
from concurve.store import Store
from concurve.store.run_head import decode_head
from concurve.wire import decode_record, encode_spec
from concurve.wire.record import TrialRecord
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers import real
from tests.helpers.agents import Agents, inventory_of
from tests.helpers.fakes import FakeClock
from tests.helpers.real import PATIENCE

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(real.missing() is not None, reason=str(real.missing())),
]

TWO = {"a": "127.0.0.1", "b": "127.0.0.2"}

#: Python programs of roles; ``tell`` writes a line to the report channel.
_TELL = (
    "import json, os, signal, sys, time\n"
    "def tell(**line):\n"
    "    os.write(int(os.environ['CONCURVE_REPORT']), json.dumps(line).encode() + b'\\n')\n"
)
#: Serves until it is told to stop.
SERVE = f"{_TELL}tell(ready=True)\nsignal.pause()"
#: Serves for a moment.
SERVE_SHORTLY = f"{_TELL}tell(ready=True)\ntime.sleep(0.2)"
#: Marks its phase, and counts operations.
LOAD = (
    f"{_TELL}tell(phase='measure', edge='begin')\ntime.sleep(0.2)\n"
    "tell(phase='measure', edge='end')\ntell(indicator='operations', value=5)"
)


def python(code: str) -> tuple[str, ...]:
    return (*real.PYTHON, code)


def serving(host: str = "a", code: str = SERVE) -> RoleSpec:
    return RoleSpec(name="target", argv=python(code), end="serve", ready="report", host=host)


def load(name: str, host: str, line: str = "") -> RoleSpec:
    """A load that runs a line of a shell, or :data:`LOAD`."""
    argv = ("sh", "-c", line) if line else python(LOAD)
    return RoleSpec(name=name, argv=argv, host=host)


def spec(*roles: RoleSpec) -> TrialSpec:
    return TrialSpec(trial=f"test-{time.monotonic_ns()}", roles=roles, time_limit_ns=60 * 10**9)


def run(engine: HostsEngine, *roles: RoleSpec) -> TrialRecord:
    return decode_record(engine.run(spec(*roles)))


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    found = Agents(tmp_path_factory.mktemp("agents"), inventory_of(TWO))
    try:
        found.start(PATIENCE)  # a busy machine may keep the laboratory from renewing a usual lease
        yield found
    finally:
        found.end()


@pytest.fixture(scope="module")
def engine(agents: Agents) -> Iterator[HostsEngine]:
    with agents.connected() as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Agents]:
    """Agents of one test, which may kill them."""
    found = Agents(tmp_path, inventory_of(TWO))
    try:
        yield found
    finally:
        found.end()


def test_a_server_here_and_its_loads_there(engine: HostsEngine) -> None:
    record = run(engine, serving(), load("load-1", "b"), load("load-2", "b"))
    assert record.outcome.kind == "ok", record.outcome
    target, first, second = record.roles
    assert [(role.name, role.host) for role in record.roles] == [
        ("target", "a"), ("load-1", "b"), ("load-2", "b")
    ]  # fmt: skip
    assert target.released_ns == 0 < first.released_ns <= second.released_ns
    assert target.ended_by == "stopped" and first.ended_by == "itself"
    assert target.wall_ns > second.released_ns + second.wall_ns, "it served to the end of the load"
    assert record.wall_ns >= first.released_ns + first.wall_ns
    assert not any(role.name.startswith("@") for role in record.roles)


def test_each_host_says_what_it_saw(engine: HostsEngine) -> None:
    record = run(engine, serving(), load("load", "b"))
    assert [host.name for host in record.hosts] == ["a", "b"]
    for host in record.hosts:
        assert host.machine.cpus and host.instrument.samples >= 0
        # One machine has one monotonic clock: the true offset is 0.
        assert host.clock_offset_ns is not None and host.clock_error_ns is not None
        assert abs(host.clock_offset_ns) <= host.clock_error_ns
    assert record.hosts[1].start_late_ns is not None and record.hosts[1].start_late_ns >= 0
    assert record.hosts[0].engine_cpu_ns is None, "no daemons with a mark are here"
    assert "engine_cpu_ns" in record.hosts[0].absent


def test_a_server_is_read_at_the_edges_that_its_load_marks_elsewhere(engine: HostsEngine) -> None:
    record = run(engine, serving(), load("load", "b"))
    (phase,) = record.roles[0].phases
    (marked,) = record.roles[1].phases
    assert (phase.name, phase.marked_by) == ("measure", "load")
    error = sum(host.clock_error_ns or 0 for host in record.hosts)
    assert abs(phase.begin_ns - marked.begin_ns) <= error + 1_000_000
    assert abs(phase.wall_ns - marked.wall_ns) <= 2 * error + 1_000_000


def test_loads_on_two_hosts_wait_for_each_other(engine: HostsEngine) -> None:
    record = run(engine, load("load-1", "a"), load("load-2", "b"))
    assert record.outcome.kind == "ok"
    assert all(host.start_late_ns is not None for host in record.hosts)


def test_a_server_beside_a_load_of_its_own_serves_the_other_to_its_end(engine: HostsEngine) -> None:
    slow = load("load-2", "b", "sleep 0.5")
    record = run(engine, serving(), load("load-1", "a", "true"), slow)
    assert record.outcome.kind == "ok", record.outcome
    target, first, second = record.roles
    assert first.wall_ns < second.wall_ns < target.wall_ns


def test_a_role_waits_for_the_end_of_one_elsewhere(engine: HostsEngine) -> None:
    fill = load("fill", "b", "sleep 0.3")
    after = msgspec.structs.replace(load("load", "a", "true"), after=("fill",))
    record = run(engine, serving("b"), fill, after)
    assert record.outcome.kind == "ok", record.outcome
    _, filled, loaded = record.roles
    assert loaded.released_ns >= filled.released_ns + filled.wall_ns


def test_one_host_measures_as_this_machine_does(engine: HostsEngine) -> None:
    roles = (serving("b"), load("load", "b"))
    there = run(engine, *roles)
    here = decode_record(LocalEngine().run(spec(*roles)))
    assert [role.name for role in there.roles] == [role.name for role in here.roles]
    assert {role.host for role in there.roles} == {"b"} and here.roles[0].host is None
    assert there.outcome == here.outcome
    assert [host.clock_offset_ns for host in there.hosts] == [None], "no clock matters"


def test_a_load_that_fails_ends_the_trial_on_all_hosts(engine: HostsEngine, agents: Agents) -> None:
    record = run(engine, serving(), load("load", "b", "exit 3"))
    assert record.outcome.kind == "program_failed" and record.outcome.role == "load"
    assert str(record.outcome.message).startswith("host b: ")
    assert of_trials(agents) == []


def test_a_server_that_dies_is_no_smaller_load(engine: HostsEngine) -> None:
    record = run(engine, serving(code=SERVE_SHORTLY), load("load", "b", "sleep 60"))
    assert record.outcome.kind == "program_failed" and record.outcome.role == "target"


def test_a_trial_that_takes_too_long_is_ended_on_all_hosts(engine: HostsEngine) -> None:
    late = msgspec.structs.replace(
        spec(serving(), load("load", "b", "sleep 60")), time_limit_ns=3 * 10**9
    )
    record = decode_record(engine.run(late))
    assert record.outcome.kind == "timed_out"


def test_a_program_that_a_host_lacks_is_found_before_the_first_trial(engine: HostsEngine) -> None:
    lacking = RoleSpec(name="load", argv=("no-such-program",), host="b")
    (problem,) = engine.check(spec(serving(), lacking))
    assert (problem.role, problem.kind) == ("load", "not_found")
    assert problem.message.startswith("host b: ")


def test_a_folder_and_a_port_of_the_hosts(engine: HostsEngine) -> None:
    with engine.folder() as folder:
        assert folder.is_dir()
        assert 1024 <= engine.port() <= 65535
    assert not folder.exists()


def test_a_host_describes_itself_and_finds_its_programs(engine: HostsEngine) -> None:
    assert set(engine.machine("a")["hosts"]) == {"b"}
    assert engine.machine("a")["host"] == "a", "a report says whose facts these are"
    found = engine.machines["b"].find_program("targets", "role load", None, ())
    assert found[0].endswith("concurve-targets")
    with pytest.raises(HostError, match="host b: role load: no packaged program 'nothing'"):
        engine.machines["b"].find_program("nothing", "role load", None, ())
    facts = engine.describe_program("b", "targets", "role load", True, None, None)
    assert facts["host"] == "b" and "sha256" in facts


def test_hosts_are_for_one_measurement_at_a_time(own: Agents) -> None:
    own.start(CONCURVE_LOCK=str(own.folder / "one-lock"))
    with (
        own.connected() as engine,
        pytest.raises(BusyError, match="host b: another measurement") as refused,
        engine.lock("the first"),
    ):
        pass
    assert "--wait-quiet" not in refused.value.remedy, "it looks at this machine alone"


def test_cpus_that_a_host_does_not_grant_are_refused(own: Agents) -> None:
    hosts = tuple(msgspec.structs.replace(host, cpus=(4095,)) for host in own.inventory.hosts)
    own.inventory = msgspec.structs.replace(own.inventory, hosts=hosts)
    own.start()
    says = "host a: CPU 4095 is not among those that it grants"
    with pytest.raises(HostError, match=says), own.connected():
        pass


STUDY = """
[study]
name = "over-hosts"
question = "Does it run over hosts?"

[factors]
amount = [1, 2]

[[roles]]
name = "server"
command = ["sleep", "300"]
end = "serve"
host = "a"

[[roles]]
name = "target"
command = ["sh", "-c", "test {host.a} = 127.0.0.1 && test -d {trial_folder} && sleep 0.0{amount}"]
host = "b"

[effort.quick]
repeats = 2
"""


def test_a_run_over_hosts_is_stored_and_resumed(engine: HostsEngine, tmp_path: Path) -> None:
    study, store = parse_study(STUDY, 2, "mine.toml"), Store(str(tmp_path / "runs.db"))
    head = new_head(study, "quick", 1, "again", engine.inventory, engine)
    assert set(head.programs) == {"server", "target"}
    runner = Runner(head, store, engine, clock=FakeClock(), site=engine)
    assert runner.start().kind != "time"
    stored = decode_head(store.find_run(head.id))
    assert stored.hosts == engine.inventory
    done = len(store.trials(head.id).outcomes.verdicts)
    assert done >= 4
    records = list(store.records(head.id))
    assert records
    Runner(stored, store, engine, clock=FakeClock(), site=engine).resume()
    assert len(store.trials(head.id).outcomes.verdicts) == done, "nothing was missing"


def test_an_agent_that_nobody_asks_ends(own: Agents) -> None:
    own.start(0.1, first_seconds=0.1)
    assert own.lab.wait_until_alone(real.PATIENCE) == {}


def test_without_renewals_nothing_is_left(own: Agents) -> None:
    # One host: the agent of another, which nobody asks, would wait for its first request.
    own.inventory = inventory_of({"a": TWO["a"]})
    own.start()
    connection = own.connections()["a"]
    trial = spec(load("load", "a", "setsid sleep 300 & sleep 300"))
    alone = msgspec.structs.replace(
        trial, roles=tuple(msgspec.structs.replace(role, host=None) for role in trial.roles)
    )
    # A machine that is busier than the lease is long ends the agent before the test does.
    with contextlib.suppress(HostLostError):
        ask(connection, "a", m.Begin(encode_spec(alone), trial.trial))
        while not any("sleep 300" in line for line in own.lab.alive().values()):
            ask(connection, "a", m.Renew())
    assert own.lab.wait_until_alone(real.PATIENCE) == {}


def test_an_agent_that_is_killed_leaves_nothing_and_is_told_by_name(own: Agents) -> None:
    own.start()
    seen: list[BaseException] = []
    with own.connected() as engine:

        def measure() -> None:
            try:
                engine.run(spec(serving(), load("load", "b", "sleep 300")))
            except HostLostError as error:
                seen.append(error)

        thread = threading.Thread(target=measure)
        thread.start()
        until = time.monotonic() + real.PATIENCE
        while not any("sleep 300" in line for line in own.lab.alive().values()):
            assert time.monotonic() < until and thread.is_alive(), seen
            time.sleep(0.02)
        os.kill(own.pid("b"), signal.SIGKILL)
        thread.join(real.PATIENCE)
    assert "host b was lost" in str(seen[0])
    assert "concurve resume last" in str(seen[0])
    assert own.lab.wait_until_alone(real.PATIENCE) == {}


def test_an_agent_that_quits_leaves_nothing(own: Agents) -> None:
    own.start()
    with own.connected() as engine:
        run(engine, load("load", "a", "true"))
    assert own.lab.wait_until_alone(real.PATIENCE) == {}


def test_a_user_who_stops_a_trial_ends_it_on_all_hosts(
    own: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.start()
    with own.connected() as engine:
        real_next, stops = engine.events.next, iter([True])

        def next_event(seconds: float) -> object:
            lines = own.lab.alive().values()
            if sum("sleep 300" in line for line in lines) >= 2 and next(stops, False):
                raise KeyboardInterrupt
            return real_next(min(seconds, 0.1))

        monkeypatch.setattr(engine.events, "next", next_event)
        roles = (load("load-1", "a", "sleep 300; true"), load("load-2", "b", "sleep 300; true"))
        with pytest.raises(KeyboardInterrupt):
            engine.run(spec(*roles))
        assert of_trials(own) == [], "the agents go on, for the next trial"
        monkeypatch.undo()
        assert run(engine, load("load", "a", "true")).outcome.kind == "ok"


def test_a_run_goes_on_where_it_was_once_a_lost_host_is_back(own: Agents, tmp_path: Path) -> None:
    own.start()
    study, store = parse_study(STUDY, 2, "mine.toml"), Store(str(tmp_path / "runs.db"))
    with own.connected() as engine:
        head = new_head(study, "quick", 1, "again", engine.inventory, engine)
        runner = Runner(head, store, Losing(engine, own, after=2), clock=FakeClock(), site=engine)
        with pytest.raises(HostLostError, match="host b was lost"):
            runner.start()
    stored = store.find_run(head.id)
    assert stored.state == "failed"
    *before, lost = store.trials(head.id).outcomes
    assert len(before) == 2 and all(outcome.value is not None for outcome in before)
    assert (lost.cause, lost.value) == (LOST, None), "no smaller load"
    assert lost.detail.startswith("host b was lost: ")
    again = Agents(tmp_path, own.inventory)
    try:
        again.start()
        with again.connected() as engine:
            Runner(decode_head(stored), store, engine, clock=FakeClock(), site=engine).resume()
    finally:
        again.end()
    assert store.find_run(head.id).state == "complete"
    outcomes = list(store.trials(head.id).outcomes)
    keys = [outcome.key for outcome in outcomes]
    assert len(keys) == len(set(keys)) >= 5, "none is doubled"
    used = {(it.key.cell, it.key.block) for it in outcomes if it.value is not None}
    assert len(used) == 4, "exactly the planned trials"


class Losing:
    """An engine whose host ``b`` is killed before a trial."""

    def __init__(self, engine: HostsEngine, agents: Agents, after: int) -> None:
        self._engine, self._agents, self._left = engine, agents, after

    def run(self, trial: TrialSpec) -> bytes:
        if self._left == 0:
            os.kill(self._agents.pid("b"), signal.SIGKILL)
        self._left -= 1
        return self._engine.run(trial)

    def check(self, trial: TrialSpec) -> list[Problem]:
        return self._engine.check(trial)


def test_a_runner_that_is_killed_is_told_of_without_waiting_for_its_record(own: Agents) -> None:
    own.start()
    with own.connected() as engine:
        trial = TrialOverHosts(
            spec(serving(), load("load", "b", "sleep 300")),
            engine.hosts,
            engine.inventory,
            engine.events,
        )
        kill = threading.Thread(target=kill_one, args=(own, "concurve-trial"))
        kill.start()
        with pytest.raises(RunError, match="the trial runner failed"):
            trial.run()
        kill.join()
        begin = time.monotonic()
        trial.abandon()
        assert time.monotonic() - begin < STOP_SECONDS, "the other host alone is waited for"
        assert run(engine, load("load", "a", "true")).outcome.kind == "ok"
    assert own.lab.wait_until_alone(real.PATIENCE) == {}


def of_trials(agents: Agents) -> list[str]:
    """The processes that are there beside agents and their keepers."""
    ours = ("concurve.hosts.agent", "concurve.hosts.keeper")
    lines = agents.lab.alive().values()
    return [line for line in lines if not any(it in line for it in ours)]


@pytest.fixture
def escaping() -> Iterator[str]:
    """A program that is told from all others by its argument; what is left of it is ended."""
    words = f"sleep {10**6 + uuid.uuid4().int % 10**6}"
    try:
        yield words
    finally:
        for pid in real.with_words(words):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def escapes(words: str) -> RoleSpec:
    """A load that leaves its session and its environment, and so all marks of ours."""
    return load("load", "a", f"env -i setsid {words} & sleep 300")


def begun(own: Agents, words: str) -> SocketConnection:
    """The connection to one agent that runs such a load."""
    own.inventory = inventory_of({"a": TWO["a"]})
    own.start(seconds=real.PATIENCE)
    connection = own.connections()["a"]
    role = msgspec.structs.replace(escapes(words), host=None)
    trial = spec(role)
    ask(connection, "a", m.Begin(encode_spec(trial), trial.trial))
    # It is there as soon as it has no mark.
    real.wait_until(lambda: bool({*real.with_words(words)} - {*own.lab.alive()}), "the load")
    return connection


def pids_of(agents: Agents, program: str) -> list[int]:
    return [pid for pid, line in agents.lab.alive().items() if program in line]


def test_a_killed_runner_leaves_nothing_whatever_its_load_did_to_leave(
    own: Agents, escaping: str
) -> None:
    connection = begun(own, escaping)
    (runner,) = pids_of(own, "concurve-trial")
    os.kill(runner, signal.SIGKILL)
    real.wait_until(lambda: real.with_words(escaping) == [], "the end of the load")
    ask(connection, "a", m.Renew())
    assert of_trials(own) == []


@pytest.mark.parametrize("is_asked", [False, True])
def test_an_agent_and_a_runner_that_are_killed_together_leave_nothing(
    own: Agents, escaping: str, is_asked: bool
) -> None:
    """Their keeper ends what they have left, also one that was asked to end before."""
    begun(own, escaping)
    (runner,) = pids_of(own, "concurve-trial")
    if is_asked:
        (keeper,) = pids_of(own, "concurve.hosts.keeper")
        os.kill(keeper, signal.SIGTERM)
    agent = own.pid("a")
    os.kill(agent, signal.SIGSTOP)  # it does nothing any more about the end of its runner
    os.kill(runner, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    real.wait_until(lambda: real.with_words(escaping) == [], "the end of the load")
    assert own.lab.wait_until_alone(real.PATIENCE) == {}, "its keeper has ended, too"


def kill_one(agents: Agents, program: str) -> None:
    """Kill a process of a program, once both hosts run their roles."""
    real.wait_until(
        lambda: any("sleep 300" in line for line in agents.lab.alive().values()), "the roles"
    )
    pid = next(pid for pid, line in agents.lab.alive().items() if program in line)
    os.kill(pid, signal.SIGKILL)


def test_a_host_that_is_stopped_is_lost_and_nothing_more_is_asked_of_it(own: Agents) -> None:
    own.start()
    with own.connected() as engine:
        stopped = own.pid("b")
        os.kill(stopped, signal.SIGSTOP)
        try:
            with pytest.raises(HostLostError, match="host b was lost"):
                engine.run(spec(serving(), load("load", "b", "true")))
            asked = time.monotonic()
            with pytest.raises(HostLostError, match="host b was lost"):
                engine.hosts["b"].ask(m.Renew())
            assert time.monotonic() - asked < QUICK_SECONDS
        finally:
            os.kill(stopped, signal.SIGCONT)
    assert own.lab.wait_until_alone(real.PATIENCE) == {}


ANY = """
[study]
name = "over-any"
question = "Is it the same everywhere?"

[factors]
amount = [1, 2]

[[roles]]
name = "target"
command = ["sh", "-c", "test {host.target} != '' && sleep 0.0{amount}"]
host = "any"

[effort.quick]
repeats = 4
"""


def test_each_block_of_a_sweep_runs_on_one_host(engine: HostsEngine, tmp_path: Path) -> None:
    study, store = parse_study(ANY, 2, "mine.toml"), Store(str(tmp_path / "runs.db"))
    head = new_head(study, "quick", 1, "again", engine.inventory, engine)
    runner = Runner(head, store, engine, clock=FakeClock(0.001), site=engine)
    runner.start()
    places: dict[int, set[str]] = {}
    for key, raw in store.records(head.id):
        record = decode_record(raw)
        places.setdefault(key.block, set()).add(record.roles[0].host or "")
    assert places == {block: {runner.plan.host_of(block)} for block in range(4)}
    assert sorted(name for names in places.values() for name in names) == ["a", "a", "b", "b"]


#: An agent that stays the child of whoever starts it, so that its exit code is seen.
CHILD = """
import signal, sys
from concurve.hosts import agent

def stay():
    signal.signal(signal.SIGTERM, agent._quit)
    print("ready", flush=True)

agent._detach = stay
sys.exit(agent.main())
"""


def child(tmp_path: Path, lease: float = 60.0) -> tuple[subprocess.Popen[str], Path]:
    """An agent, and its socket."""
    path = offered_folder() / "socket"
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD, str(path), str(lease), "60"],
        env={**os.environ, "CONCURVE_LOCK": str(tmp_path / "lock-of-the-host")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert real.first_line(process) == "ready"
    return process, path


@pytest.mark.parametrize(("how", "code"), [("quit", 0), ("signal", 0), ("lease", 3)])
def test_an_agent_that_ends_leaves_no_folder(tmp_path: Path, how: str, code: int) -> None:
    """The lock of its host was taken in another thread than that which gives it back."""
    process, path = child(tmp_path, 0.2 if how == "lease" else 60.0)
    of_a_trial = offered_folder()
    of_a_trial.parent.rmdir()
    with contextlib.closing(SocketConnection(path)) as connection:
        ask(connection, "a", m.Lock("a test"))
        # One whose lease is shorter than the host is busy has ended by now.
        with contextlib.suppress(HostLostError):
            ask(connection, "a", m.MakeFolder(str(of_a_trial)))
        if how == "quit":
            ask(connection, "a", m.Quit())
        elif how == "signal":
            process.terminate()
    _, said = process.communicate(timeout=real.PATIENCE)
    assert (process.returncode, said) == (code, "")
    assert not path.parent.parent.exists() and not of_a_trial.parent.exists()


def test_the_folder_of_an_agent_that_was_killed_is_removed_by_the_next(tmp_path: Path) -> None:
    killed, path = child(tmp_path)
    killed.kill()
    killed.communicate()
    process, _ = child(tmp_path)
    process.terminate()
    process.communicate(timeout=real.PATIENCE)
    assert not path.parent.parent.exists()


def test_an_agent_that_does_not_start_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for before in (("sh", "-c", "echo it broke >&2; exit 3"), (str(tmp_path / "nowhere"),)):
        with pytest.raises((HostError, OSError), match=r"it broke|No such file"):
            start_agent(before=before)
    assert list(tmp_path.iterdir()) == []
