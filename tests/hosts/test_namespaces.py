"""Trials over hosts that are network namespaces of this machine: the addresses of a study reach the
other host and no other, and a clock that is answered late is known as badly as it is said."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.definition.programs import program
from concurve.definition.study_file import parse_study
from concurve.hosts.clocks import combined, estimate, measured
from concurve.hosts.connection import SocketConnection
from concurve.measuring import packaged
from concurve.planning.plan import RUN_PASSWORD_SECRET, make_plan, trial_spec
from concurve.readings.copies import Copied, merged_figures
from concurve.secrets import KNOWN
from concurve.secrets.secret import reference
from concurve.wire import decode_record
from concurve.wire.spec import ReadyProbe, RoleSpec, TrialSpec
from tests.helpers import real
from tests.helpers.agents import Agents, Namespaces, inventory_of, no_namespaces

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(real.missing() is not None, reason=str(real.missing())),
    pytest.mark.skipif(no_namespaces() is not None, reason=str(no_namespaces())),
]

PORT = 7070

#: A server of Redis's protocol that answers each request after a while, those of a connection one
#: after the other.
_SLOW = """
import socketserver, sys, time

class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            for _ in range(2 * int(line[1:])):
                self.rfile.readline()
            time.sleep(0.001)
            self.wfile.write(b"+PONG\\r\\n")

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

Server((sys.argv[1], int(sys.argv[2])), Answers).serve_forever()
"""

#: A study of it with two loads that search together, each on its own host.
_SEARCH = f"""
[study]
name = "search"
question = "Which rate do two loads keep?"

[factors]
sessions = [2, 3]

[[roles]]
name = "target"
command = ["python3", "-c", '''{_SLOW}''', "{{host.server}}", "{PORT}"]
host = "server"
end = "serve"
ready = "tcp:{{host.server}}:{PORT}"

[[roles]]
name = "load"
program = "load"
arguments = ["redis://{{host.server}}:{PORT}", "--slo", "p50=8ms", "--duration", "4s",
             "--workload", "ping", "--sessions", "{{sessions}}"]
host = "load"
copies = 2

[[indicators]]
use = ["load.closed_rate_per_second", "load.slo_requests"]
"""
_SERVE = f"""
import socket
listener = socket.create_server(("0.0.0.0", {PORT}))
while True:
    listener.accept()[0].sendall(b"hello")
"""
_ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 20) as stream:
    print(stream.recv(5).decode(), stream.getsockname()[0])
"""


@contextlib.contextmanager
def lab(folder: Path, *names: str) -> Iterator[tuple[Agents, Namespaces]]:
    with Namespaces(names) as namespaces:
        agents = Agents(folder, inventory_of(namespaces.addresses))
        try:
            agents.start(before={name: namespaces.enter(name) for name in names})
            yield agents, namespaces
        finally:
            agents.end()


def test_a_load_reaches_the_server_on_another_host(tmp_path: Path) -> None:
    with lab(tmp_path, "server", "one", "two") as (agents, namespaces):
        address = namespaces.addresses["server"]
        server = RoleSpec(
            name="target", argv=("python3", "-c", _SERVE), end="serve", host="server",
            ready_probe=ReadyProbe(tcp=f"{address}:{PORT}"),
        )  # fmt: skip
        loads = [
            RoleSpec(name=f"load-{i}", argv=("python3", "-c", _ASK, address, str(PORT)), host=host)
            for i, host in enumerate(("one", "two"), 1)
        ]
        limit = 60 * 10**9
        spec = TrialSpec(trial="namespaces", roles=(server, *loads), time_limit_ns=limit)
        with agents.connected() as engine:
            assert engine.port() > 0, "an address that only the namespace has"
            record = decode_record(engine.run(spec))
        assert record.outcome.kind == "ok", record.outcome
        said = [role.stdout.text().strip() for role in record.roles[1:]]
        assert said == [f"hello {namespaces.addresses[name]}" for name in ("one", "two")]
        assert agents.lab.wait_until_alone(real.PATIENCE) == {}


def test_loads_on_two_hosts_search_together(tmp_path: Path) -> None:
    """Which rate they find is for the machine to say; that it is one for both of them is not."""
    with Namespaces(("server", "one", "two")) as namespaces:
        labels = {"one": ("load",), "two": ("load",)}
        inventory = inventory_of(namespaces.addresses, **labels)
        agents = Agents(tmp_path, inventory)
        try:
            agents.start(before={it: namespaces.enter(it) for it in namespaces.addresses})
            plan = make_plan(parse_study(_SEARCH, 2, "search.toml"), "quick", 1, inventory)
            with agents.connected() as engine:
                KNOWN.draw(RUN_PASSWORD_SECRET)
                spec = trial_spec(
                    plan, plan.cells[1], "search", (0,), packaged.command,
                    machines=engine.machines, search_port=engine.port(),
                )  # fmt: skip
                record = decode_record(engine.run(spec))
        finally:
            agents.end()
    assert record.outcome.kind == "ok", record.outcome
    _, leader, follower = record.roles
    found = leader.facts["slo"]
    assert [load["name"] for load in found["loads"]] == ["load-1", "load-2"]
    assert found["sessions"] == 6
    assert follower.facts["slo_outcome"] == "followed"
    sent = {it.indicator: it.value for it in follower.indicators}["slo_requests"]
    assert found["loads"][1]["requests"] == sent > 0
    copied = Copied("load", program("load").copies)  # type: ignore[union-attr]
    own = {f"{it.name}.{one.indicator}": one.value for it in record.roles for one in it.indicators}
    merged = merged_figures(record, [copied], own).values
    closed = found["closed_rate_per_second"]
    assert merged["load.closed_rate_per_second"] == closed > 0, "the answer of the one that leads"
    assert KNOWN.reveal(reference(RUN_PASSWORD_SECRET)) not in str(record), "the token"


def test_the_stated_error_covers_the_truth_when_answers_are_delayed(tmp_path: Path) -> None:
    generator = random.Random(3)
    agents = Agents(tmp_path, inventory_of({"a": "127.0.0.1"}))
    agents.start()
    try:
        connection: SocketConnection = agents.connections()["a"]

        def delayed() -> int:
            """The clock of the agent, each way delayed: one machine has one clock, so it is off by
            nothing."""
            time.sleep(abs(generator.gauss(0.5, 0.1)) / 1e3)
            shown = connection.clock()
            time.sleep(abs(generator.gauss(0.5, 0.1)) / 1e3)
            return shown

        offsets = [estimate(measured(delayed, time.monotonic_ns, 4)) for _ in range(20)]
        assert all(abs(offset.ns) <= offset.error_ns for offset in offsets)
        assert abs(combined(offsets, time.monotonic_ns()).ns) <= min(it.error_ns for it in offsets)
        connection.close()
    finally:
        agents.end()
