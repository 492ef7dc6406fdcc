"""Real servers as roles: found or named with their package, ready when they answer, then gone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concurve.attendants import servers
from concurve.attendants.servers.attend import under_load
from concurve.attendants.servers.redis import parse_info
from concurve.attendants.servers.server import Reading, Session
from concurve.errors import HostError
from concurve.host.temporary import free_port
from concurve.measuring import packaged
from tests.helpers.attended import PATIENCE, Attended, refused
from tests.helpers.resp import Client

REDIS = servers.SERVERS["redis-server"].find()
needs_redis = pytest.mark.skipif(REDIS is None, reason="redis-server is not installed")


@pytest.fixture
def redis() -> Iterator[Attended]:
    attended = Attended("redis-server", str(REDIS), free_port(), "--io-threads", "2")
    yield attended
    attended.process.terminate()
    attended.process.wait(PATIENCE)


@needs_redis
def test_a_server_is_ready_when_it_answers_and_gone_when_it_is_stopped(redis: Attended) -> None:
    redis.wait_until_ready()
    client = Client(redis.port)
    assert client("SET", "k", "v", "NX") == "OK"
    load_until_read(client, readings=3)
    client.close()
    redis.stop()
    assert redis.process.returncode == 0
    assert refused(redis.port)
    facts, figures = redis.of("fact"), redis.of("indicator")
    assert facts["io_threads"] == 2 and facts["redis_version"][0].isdigit()
    assert figures["io_threads_active"] == 1, "one client is too few for Redis to switch them on"
    assert figures["io_threads_active_share"] == 0
    assert figures["io_threaded_writes_share"] == 0


def load_until_read(client: Client, readings: int) -> None:
    """Send requests without a pause until the attendant has read the server this often."""
    deadline = time.monotonic() + PATIENCE
    begun, own, asked = None, 0, 0
    while begun is None or asked - begun < 2 * readings + 1:  # two questions a reading
        for _ in range(50):
            client("GET", "k")
        own += 1
        calls = parse_info(client("INFO", "commandstats"))["cmdstat_info"].split(",")[0]
        asked = int(calls.removeprefix("calls=")) - own
        begun = asked if begun is None else begun
        assert time.monotonic() < deadline


@needs_redis
def test_a_server_that_dies_is_told(redis: Attended) -> None:
    redis.wait_until_ready()
    client = Client(redis.port)
    pid = int(parse_info(client("INFO", "server"))["process_id"])
    client.close()
    os.kill(pid, signal.SIGKILL)
    said = redis.end()
    assert redis.process.returncode == 1
    assert re.search("redis-server: it (ended unexpectedly with -9|no longer answers)", said)


@needs_redis
def test_a_killed_attendant_leaves_no_server(redis: Attended) -> None:
    redis.wait_until_ready()
    redis.process.kill()
    redis.process.wait()
    deadline = time.monotonic() + PATIENCE
    while not refused(redis.port):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@needs_redis
def test_a_taken_port_is_told(redis: Attended) -> None:
    redis.wait_until_ready()
    second = Attended("redis-server", str(REDIS), redis.port)
    said = second.end()
    assert second.process.returncode == 1
    assert said == f"redis-server: port {redis.port} is taken\n"
    assert second.lines == []


@needs_redis
def test_a_server_that_refuses_its_arguments_is_told_with_its_words() -> None:
    attended = Attended("redis-server", str(REDIS), free_port(), "--io-threads", "many")
    said = attended.end()
    assert attended.process.returncode == 1
    assert "argument must be" in said or "FATAL CONFIG" in said
    assert "redis-server: it ended unexpectedly with 1; its output is above" in said
    assert attended.lines == []


def test_a_server_that_cannot_start_is_told(tmp_path: Path) -> None:
    attended = Attended("redis-server", str(tmp_path), free_port())
    assert "cannot be started" in attended.end()
    assert attended.process.returncode == 1


def test_wrong_usage_is_told() -> None:
    for arguments in ([], ["no-such-server", "/x", "--port", "1"], ["redis-server", "/x"]):
        said = subprocess.run(
            [sys.executable, "-m", "concurve.attendants.servers.attend", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert said.returncode == 2
        assert "NAME is one of redis-server" in said.stderr


def test_a_server_that_is_not_installed_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONCURVE_REDIS_SERVER", str(tmp_path / "nothing"))
    with pytest.raises(HostError, match="redis-server is not installed") as caught:
        packaged.command("redis-server", "role target")
    assert caught.value.remedy.startswith("apt-get install redis-server")


def test_info_is_lines_of_name_and_value() -> None:
    text = "# Server\r\nredis_version:7.0.15\r\nexecutable:/usr/bin/redis-server\r\n\r\n# Stats\r\n"
    assert parse_info(text) == {
        "redis_version": "7.0.15",
        "executable": "/usr/bin/redis-server",
    }


def test_readings_under_load_have_requests_before_and_after() -> None:
    counts = [0, 4, 5_000, 9_000, 12_000, 12_004, 12_008]
    readings = [Reading(count, {}) for count in counts]
    by_requests = Counting()
    loaded = under_load(readings, by_requests)
    assert [reading.requests for reading in loaded] == [5_000, 9_000]
    assert under_load(readings[:2], by_requests) == []


class Counting(Session):
    """A session that is busy only by its number of requests."""

    def facts(self) -> dict[str, Any]:
        return {}

    def read(self) -> Reading:
        return Reading(0, {})

    def indicators(self, *_: object) -> dict[str, float]:
        return {}

    def protect(self, password: str) -> None: ...

    def stop(self, process: subprocess.Popen[bytes]) -> None: ...
