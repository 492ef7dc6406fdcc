"""Trials over network namespaces that a real Ray connects. Long: marked for the soak.

Ray is started in each namespace by the command of ``concurve hosts up``, without OpenSSH, and ended
by the mark of its processes.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from concurve.definition.inventory import Cluster, Inventory
from concurve.hosts import commands, daemons
from tests.helpers import real
from tests.helpers.agents import Namespaces, inventory_of, no_namespaces

pytestmark = [
    pytest.mark.soak,
    pytest.mark.real,
    pytest.mark.skipif(real.missing() is not None, reason=str(real.missing())),
    pytest.mark.skipif(no_namespaces() is not None, reason=str(no_namespaces())),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="Ray is not installed: concurve[ray]"
    ),
]

#: Measures within the namespace of the head, where the laboratory must be.
_MEASURE = """
import sys
from concurve.definition.hosts_file import load_hosts
from concurve.hosts.ray_cluster import connected
from concurve.wire import decode_record
from concurve.wire.spec import RoleSpec, TrialSpec
from pathlib import Path

inventory = load_hosts(Path(sys.argv[1]))
with connected(inventory, inventory.hosts) as engine:
    roles = tuple(
        RoleSpec(name=f"load-{i}", argv=("true",), host=host.name)
        for i, host in enumerate(inventory.hosts)
    )
    for number in range(int(sys.argv[2])):
        record = decode_record(engine.run(TrialSpec(trial=f"t{number}", roles=roles)))
        offsets = [abs(host.clock_offset_ns) - host.clock_error_ns for host in record.hosts]
        assert max(offsets) <= 0, record.hosts
        print(record.outcome.kind, *(host.start_late_ns for host in record.hosts), flush=True)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Namespaces, Inventory, Path]]:
    token = tmp_path / "token"
    token.write_text(uuid.uuid4().hex)
    token.chmod(0o600)
    with Namespaces(["head", "other", "third"]) as namespaces:
        ray = Cluster(head="head", port=7300, python=sys.executable, token=str(token))
        inventory = msgspec.structs.replace(inventory_of(namespaces.addresses), cluster=ray)
        file = tmp_path / "lab.toml"
        hosts = "".join(
            f'[hosts.{name}]\naddress = "{address}"\n'
            for name, address in namespaces.addresses.items()
        )
        file.write_text(
            f'[ray]\nhead = "head"\nport = 7300\npython = "{sys.executable}"\n'
            f'token = "{token}"\n{hosts}'
        )
        try:
            namespaces.start_ray(inventory, tmp_path)
            yield namespaces, inventory, file
        finally:
            daemons.stop(commands.mark_of(inventory))


def test_trials_over_three_hosts_of_ray(cluster: tuple[Namespaces, Inventory, Path]) -> None:
    namespaces, inventory, file = cluster
    done = subprocess.run(
        [*namespaces.enter("head"), sys.executable, "-c", _MEASURE, str(file), "5"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok"] * 5
    left = [pid for pid in daemons.marked(commands.mark_of(inventory)) if _is_agent(pid)]
    assert left == []
    assert Path("/tmp/concurve-ray-7300").stat().st_mode & 0o077 == 0


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


def test_a_wrong_token_is_refused_by_the_name_of_the_host(
    cluster: tuple[Namespaces, Inventory, Path], tmp_path: Path
) -> None:
    namespaces, _, file = cluster
    wrong = tmp_path / "wrong"
    wrong.write_text(uuid.uuid4().hex)
    wrong.chmod(0o600)
    done = subprocess.run(
        [*namespaces.enter("head"), sys.executable, "-c", _JOIN, str(file)],
        env={**os.environ, "RAY_AUTH_TOKEN_PATH": str(wrong)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("host head: Ray at ")
    assert "refuses the token of this machine" in done.stdout
    # Ray says it for each time that it tries.
    assert 1 <= done.stderr.count("Authentication token is missing or incorrect") < 7
    assert "SIGTERM" not in done.stderr


def test_nothing_is_left_when_the_laboratory_is_killed(
    cluster: tuple[Namespaces, Inventory, Path],
) -> None:
    namespaces, inventory, file = cluster
    process = subprocess.Popen(
        [*namespaces.enter("head"), sys.executable, "-c", _MEASURE, str(file), "1000"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ok")
    process.kill()
    process.wait()
    killed = time.monotonic()
    while any(_is_agent(pid) for pid in daemons.marked(commands.mark_of(inventory))):
        assert time.monotonic() < killed + real.PATIENCE
        time.sleep(0.05)
    print(f"gone after {time.monotonic() - killed:.1f} s")


def _is_agent(pid: int) -> bool:
    try:
        return b"concurve.hosts.agent" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
