"""Trials over hosts that a real Ray connects. Long: marked for the soak.

The hosts are network namespaces, in which Ray is started by the commands of ``concurve hosts up``
without OpenSSH; or with ``CONCURVE_TEST_HOSTS=FILE`` those of a file, reached by OpenSSH
(:mod:`tests.helpers.clusters`). What needs one clock for all hosts is asked of namespaces alone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.definition.programs import program
from concurve.histogram import decode, merged
from concurve.host import native
from concurve.readings.copies import Copied, merged_figures
from concurve.store import Store
from concurve.wire import decode_record
from concurve.wire.record import RoleRecord
from concurve.wire.spec import ReadyProbe, RoleSpec, TrialSpec
from tests.cli.test_hdr_log import encoded
from tests.helpers import clusters, real
from tests.helpers.clusters import Cluster
from tests.helpers.fault_driver import SIMULATED
from tests.helpers.laboratory import Laboratory, laboratory
from tests.hosts.test_faults import said_of

pytestmark = [
    pytest.mark.soak,
    pytest.mark.real,
    pytest.mark.skipif(real.missing() is not None, reason=str(real.missing())),
    pytest.mark.skipif(clusters.missing() is not None, reason=str(clusters.missing())),
]

#: Of Ray's head, where hosts are namespaces.
PORT = 7300

AGENT = "concurve.hosts.agent"
KEEPER = "concurve.hosts.keeper"
RAYLET = "raylet/raylet"

#: Seconds for a command of the laboratory.
SECONDS = 1200

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The hosts of all tests."""
    with clusters.cluster(tmp_path_factory.mktemp("ray"), PORT) as found:
        yield found


@pytest.fixture
def cluster(of_all: Cluster) -> Cluster:
    """The same with Ray on each. On a busy machine Ray takes hosts for dead that are not, and they
    leave it."""
    running = [
        [line for line in it.values() if RAYLET in line] for it in of_all.processes().values()
    ]
    if not all(running):
        of_all.restart()
    return of_all


@pytest.fixture
def asked(cluster: Cluster) -> Iterator[Laboratory]:
    """A laboratory on the host of Ray's head; each host is its own until the test ends."""
    with laboratory(cluster) as found:
        yield found


def spec(*roles: RoleSpec) -> TrialSpec:
    """A trial of these roles."""
    return TrialSpec(
        trial=f"of-ray-{os.getpid()}-{next(_NUMBERS)}", roles=roles, time_limit_ns=60 * 10**9
    )


def on_all(cluster: Cluster, *argv: str) -> TrialSpec:
    """A trial of a program on every host."""
    return spec(
        *(
            RoleSpec(name=f"load-{number}", argv=argv, host=host)
            for number, host in enumerate(cluster.hosts, 1)
        )
    )


def python(code: str, *arguments: str) -> tuple[str, ...]:
    """A program of a role."""
    return (sys.executable, "-c", code, *arguments)


def test_trials_over_three_hosts(cluster: Cluster, asked: Laboratory) -> None:
    for _ in range(5):
        record = asked.run(on_all(cluster, "true")).record
        assert record.outcome.kind == "ok", record.outcome
        assert [role.host for role in record.roles] == list(cluster.hosts)
        for host in record.hosts:
            assert host.start_late_ns is not None and host.start_late_ns >= 0
            assert host.clock_offset_ns is not None and host.clock_error_ns is not None
            if cluster.is_one_machine:  # the true offset is 0
                assert abs(host.clock_offset_ns) <= host.clock_error_ns
    head = cluster.inventory.cluster
    assert Path(f"/tmp/concurve-ray-{head.port}").stat().st_mode & 0o077 == 0


#: Serves whoever connects, and says by which address that was.
_SERVE = """
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    stream, there = listener.accept()
    stream.sendall(there[0].encode())
    stream.close()
"""
_ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 20) as stream:
    print(stream.recv(99).decode())
"""


def free_port() -> str:
    """One that is free here. In the namespace of the laboratory it may be in use, if seldom."""
    with socket.create_server(("", 0)) as listener:
        return str(listener.getsockname()[1])


def test_each_role_runs_on_its_host(cluster: Cluster, asked: Laboratory) -> None:
    """The server sees each load come from the address that the file has for its host."""
    head, *others = cluster.hosts
    place = (cluster.address(head), free_port())
    server = RoleSpec(
        name="target", argv=python(_SERVE, *place), end="serve", host=head,
        ready_probe=ReadyProbe(tcp=":".join(place)),
    )  # fmt: skip
    loads = (
        RoleSpec(name=f"load-{number}", argv=python(_ASK, *place), host=host)
        for number, host in enumerate(others, 1)
    )
    record = asked.run(spec(server, *loads)).record
    assert record.outcome.kind == "ok", record.outcome
    said = [role.stdout.text().strip() for role in record.roles[1:]]
    assert said == [socket.gethostbyname(cluster.address(host)) for host in others]


#: A load that then prints the times of each of its requests.
_LOGGED = 'log=$(mktemp) && "$@" --log-requests "$log" >/dev/null && cat "$log"; rm "$log"'

REQUESTS = 200
PASSWORD = {"CONCURVE_PASSWORD": "of-a-test"}


def latencies_of(role: RoleRecord) -> list[int]:
    """The latencies of the requests of a load, by its log."""
    head, *rows = (line.split(",") for line in role.stdout.text().split())
    due, answered = head.index("due_ns"), head.index("answered_ns")
    return [int(row[answered]) - int(row[due]) for row in rows]


def test_the_histograms_of_hosts_added_are_that_of_all_latencies(
    cluster: Cluster, asked: Laboratory
) -> None:
    """Bin by bin, with the load of document 000 from two hosts."""
    head, *others = cluster.hosts
    address, port = cluster.address(head), free_port()
    server = RoleSpec(
        name="target", end="serve", ready="report", host=head, env=PASSWORD,
        argv=(str(native.binary("concurve-server")), "--bind", address, "--port", port),
    )  # fmt: skip
    words = (
        str(native.binary("concurve-load")), f"{address}:{port}", "--sessions", "4",
        "--transactions", str(REQUESTS), "--password-from", *PASSWORD,
        "--command", "LOCK ENQUEUE {run}-{session}-{count} E",
    )  # fmt: skip
    loads = (
        RoleSpec(name=f"load-{n}", host=host, env=PASSWORD, argv=("sh", "-c", _LOGGED, "-", *words))
        for n, host in enumerate(others, 1)
    )
    record = asked.run(spec(server, *loads)).record
    assert record.outcome.kind == "ok", record.outcome
    _, *roles = record.roles
    latencies = [latencies_of(role) for role in roles]
    assert [len(found) for found in latencies] == [REQUESTS, REQUESTS]
    pooled = decode(encoded([value for found in latencies for value in found]))
    reported = [
        decode(line.encoded)
        for role in roles
        for line in role.histograms
        if line.histogram == "latency" and line.worker is None
    ]
    assert merged(reported) == pooled
    table = program("load")
    assert table is not None
    figures = merged_figures(record, [Copied("load", table.copies)], {}).values
    assert figures["load.latency_ns_p99"] == pooled.quantile(0.99)


ANY = """
[study]
name = "over-any"
question = "Is it the same everywhere?"

[factors]
amount = [1, 2]

[[roles]]
name = "target"
command = ["sh", "-c", "sleep 0.0{amount}"]

[effort.quick]
repeats = 6
"""
BLOCKS = 6

SEED = 7


def ran(cluster: Cluster, folder: Path, study: str, *more: str) -> Store:
    """The store of a run, as a user starts it on the laboratory's host.

    Raises:
        AssertionError: it failed.
    """
    file, database = folder / "study.toml", folder / f"runs-{len(more)}.db"
    file.write_text(study)
    words = [
        sys.executable, "-c", "from concurve.cli import main; main()", "run", str(file),
        "--effort", "quick", "--max-time", "20m", "--seed", str(SEED), "--db", str(database), *more,
    ]  # fmt: skip
    done = subprocess.run(
        cluster.laboratory(words), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return Store(str(database))


def test_the_blocks_of_a_sweep_take_turns_on_the_hosts(cluster: Cluster, tmp_path: Path) -> None:
    """Hosts that say that they differ are refused: that is what this test can see of them."""
    try:
        store = ran(cluster, tmp_path, ANY, "--hosts", str(cluster.file), "--place", "*=any")
    except AssertionError as refused:
        if not cluster.is_one_machine and "are not alike" in str(refused):
            pytest.skip(str(refused).splitlines()[0])
        raise
    places: dict[int, set[str]] = {}
    for key, packed in store.records(store.runs()[-1].id):
        record = decode_record(packed)
        places.setdefault(key.block, set()).add(record.roles[0].host or "")
    assert all(len(names) == 1 for names in places.values()), "a block has one host"
    used = {name for names in places.values() for name in names}
    assert len(used) == min(BLOCKS, len(cluster.inventory.hosts))


def test_simulations_say_the_same_on_any_hosts(cluster: Cluster, tmp_path: Path) -> None:
    over = ran(cluster, tmp_path, SIMULATED, "--hosts", str(cluster.file))
    here = ran(cluster, tmp_path, SIMULATED)
    run = here.runs()[-1].id
    assert said_of(over, over.runs()[-1].id) == said_of(here, run) != []


#: Joins alone, and says why not.
_JOIN = """
import sys
from concurve.definition.hosts_file import load_hosts
from concurve.errors import ConcurveError
from concurve.hosts.ray_cluster import connected
from pathlib import Path

inventory = load_hosts(Path(sys.argv[1]))
try:
    with connected(inventory, inventory.hosts):
        print("joined")
except ConcurveError as error:
    print(error)
"""


def test_a_wrong_token_is_refused_by_the_name_of_the_host(cluster: Cluster, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text(uuid.uuid4().hex)
    wrong.chmod(0o600)
    done = subprocess.run(
        cluster.laboratory([sys.executable, "-c", _JOIN, str(cluster.file)]),
        env={**os.environ, "RAY_AUTH_TOKEN_PATH": str(wrong)},
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"host {cluster.hosts[0]}: Ray at ")
    assert "refuses the token of this machine" in done.stdout
    assert done.stderr == "", "Ray says it for each time that it tries"


def agents(cluster: Cluster) -> dict[str, list[int]]:
    """The agents of each host and what keeps them."""
    return {
        host: [pid for pid, line in found.items() if AGENT in line or KEEPER in line]
        for host, found in cluster.processes().items()
    }


def test_nothing_is_left_when_the_laboratory_is_killed(cluster: Cluster) -> None:
    with contextlib.suppress(BrokenPipeError), laboratory(cluster) as killed:
        killed.run(on_all(cluster, "true"))
        assert all(len(found) == 2 for found in agents(cluster).values())
        killed.process.kill()
        killed.process.wait()
        begin = time.monotonic()
        while any(agents(cluster).values()):
            assert time.monotonic() < begin + real.PATIENCE
            time.sleep(0.05)
        print(f"gone after {time.monotonic() - begin:.1f} s")
