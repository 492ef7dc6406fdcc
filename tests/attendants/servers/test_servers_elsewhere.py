"""Real servers that are reached from another machine, and ask it for a password; machines are
network namespaces."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.attendants import servers
from concurve.attendants.servers.postgresql import VERSIONS
from concurve.attendants.servers.server import addresses
from concurve.host.temporary import free_port, remove_abandoned
from tests.helpers import real
from tests.helpers.agents import Namespaces, no_namespaces
from tests.helpers.attended import PATIENCE, Attended


def usable(name: str) -> bool:
    server = servers.SERVERS[name]
    return server.find() is not None and server.lacks() is None


#: The oldest and the newest PostgreSQL, and what else is installed.
INSTALLED = [f"postgresql-{version}" for version in VERSIONS if usable(f"postgresql-{version}")]
NAMES = [
    *(name for name in ("redis-server", "mariadb") if usable(name)),
    *dict.fromkeys([*INSTALLED[:1], *INSTALLED[-1:]]),
]

URLS = {"mariadb": "mysql://root@{}/", "redis-server": "{}"}
LOADS = {"redis-server": ("--command", "SET k v")}
TPCB = ("--workload", "tpcb-rw3", "--accounts", "100", "--init")

PASSWORD = "a w0rd' of \"tests\\"


@pytest.fixture
def hosts() -> Iterator[Namespaces]:
    with Namespaces(["server", "load"]) as made:
        yield made


def loaded(
    hosts: Namespaces, name: str, port: int, password: str
) -> subprocess.CompletedProcess[str]:
    """A few operations of a load on the other machine."""
    url = URLS.get(name, "postgresql://postgres@{}/postgres")
    address = url.format(f"{hosts.addresses['server']}:{port}")
    words = [
        *hosts.enter("load"), real.program("concurve-load"), address, "--transactions", "20",
        *LOADS.get(name, TPCB), "--password-from", "GIVEN",
    ]  # fmt: skip
    return subprocess.run(
        words, env={**os.environ, "GIVEN": password}, capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip


@pytest.mark.real
@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
@pytest.mark.skipif(no_namespaces() is not None, reason=str(no_namespaces()))
@pytest.mark.skipif(not NAMES, reason="no real server is installed")
@pytest.mark.parametrize("name", NAMES or ["none"])
def test_a_load_elsewhere_is_asked_for_the_password(
    hosts: Namespaces, name: str, tmp_path: Path
) -> None:
    file, address = str(servers.program(name, "here")), hosts.addresses["server"]
    attended = Attended(
        name, file, 20_001, "--bind", address, before=hosts.enter("server"),
        CONCURVE_PASSWORD=PASSWORD, XDG_CACHE_HOME=str(tmp_path),
    )  # fmt: skip
    try:
        attended.wait_until_ready()
        done = loaded(hosts, name, attended.port, PASSWORD)
        assert done.returncode == 0, done.stderr
        for wrong in ("", "wrong"):
            refused = loaded(hosts, name, attended.port, wrong)
            assert refused.returncode != 0, f"{name} takes the password {wrong!r}"
        said = attended.stop()
        assert attended.process.returncode == 0, said
        assert PASSWORD not in said
    finally:
        attended.process.terminate()
        attended.process.wait(PATIENCE)
        remove_abandoned()


@pytest.mark.parametrize(
    ("bind", "says"),
    [
        ("10.77.0.1", "a server that listens beyond loopback needs a password: set CONCURVE_PASS"),
        ("0.0.0.0", "needs a password"),
        ("server1", "not an IP address, such as 10.0.0.11"),
    ],
)
def test_a_server_that_anyone_could_reach_is_not_started(
    bind: str, says: str, tmp_path: Path
) -> None:
    attended = Attended(
        "redis-server", str(tmp_path / "none"), free_port(), "--bind", bind, CONCURVE_PASSWORD=""
    )
    said = attended.end()
    assert attended.process.returncode == 1
    assert said.startswith(f"redis-server: --bind {bind}: ") and says in said


@pytest.mark.parametrize(
    ("bind", "there"),
    [
        ("127.0.0.1", ("127.0.0.1",)),
        ("10.0.0.7", ("127.0.0.1", "10.0.0.7")),
        ("0.0.0.0", ("0.0.0.0",)),
        ("::1", ("127.0.0.1", "::1")),
    ],
)
def test_a_server_is_on_loopback_for_its_attendant(bind: str, there: tuple[str, ...]) -> None:
    assert addresses(bind) == there


@pytest.mark.parametrize("name", ["redis-server", "mariadb", "postgresql-15"])
def test_a_command_line_has_the_address(name: str) -> None:
    server = servers.SERVERS[name]
    for bind in ("127.0.0.1", "10.0.0.7"):
        line = " ".join(server.argv(Path("/x"), Path("/f"), 4711, (), bind))
        assert ("10.0.0.7" in line) == (bind == "10.0.0.7") and "127.0.0.1" in line
