"""The reference server as its clients meet it: polite ones, libraries, rude ones, and a crash."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.host import native
from tests.helpers.real import stop
from tests.helpers.resp import (
    DEADLINE_S,
    Client,
    ReplyError,
    Server,
    closed_by_server,
    encode,
    has_something_to_read,
    missing,
    serving,
)

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

THREAD_MODELS = {
    "worker": ("--execution", "worker"),
    "inline": ("--execution", "inline", "--io-threads", "2", "--latching", "record"),
    "spinning": ("--io-threads", "3", "--engine-count", "2", "--idle", "spin:50"),
    "answering": ("--replies", "engine", "--io-threads", "2", "--engine-count", "2"),
    "processes": ("--engines", "processes", "--engine-count", "2", "--latching", "record"),
}


@pytest.fixture(scope="module", params=THREAD_MODELS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with serving(*THREAD_MODELS[request.param]) as running:
        yield running


@pytest.fixture
def clients(server: Server) -> Iterator[tuple[Client, Client]]:
    pair = Client(server.port), Client(server.port)
    yield pair
    for client in pair:
        client.close()


def until(condition: object, *arguments: object) -> None:
    """Wait for something that another thread does."""
    assert callable(condition)
    deadline = time.monotonic() + DEADLINE_S
    while not condition(*arguments):
        assert time.monotonic() < deadline
        time.sleep(0.005)


# -- locks ------------------------------------------------------------------------------------


def test_a_lock_excludes_others_until_it_is_given_back(clients: tuple[Client, Client]) -> None:
    one, other = clients
    assert one("LOCK", "T", "AB@@", "E") == 1
    assert one("LOCK", "T", "AB@@", "E") == 2
    with pytest.raises(ReplyError, match=r"COLLISION T ABCD: E held by client-\d+"):
        other("LOCK", "T", "ABCD", "S")
    assert other("LOCK", "T", "ABC", "S") == 1, "other lengths do not overlap"
    assert one("UNLOCK", "T", "AB@@", "E") == 1
    assert one("UNLOCK", "T", "AB@@", "E") == 0
    assert one.refused("UNLOCK", "T", "AB@@", "E") == "NOTHELD"
    assert other("LOCK", "T", "ABCD", "X") == 1
    assert other.refused("LOCK", "T", "ABCD", "X") == "COLLISION", "X does not cumulate"
    assert other("UNLOCKALL") == 2


def test_locks_are_listed_by_filters_and_bad_ones_are_refused(
    clients: tuple[Client, Client],
) -> None:
    one, other = clients
    one("OWNER", "lister")
    for table, argument, mode in (("F", "a", "S"), ("F", "b", "E"), ("G", "a", "O")):
        one("LOCK", table, argument, mode)
    listed = {
        ("TABLE", "F"): {"a", "b"},
        ("TABLE", "F", "MODE", "E"): {"b"},
        ("TABLE", "G", "ARGUMENT", "a"): {"a"},
        ("OWNER", "lister", "MODE", "O"): {"a"},
        ("OWNER", "nobody"): set(),
    }
    for filters, expected in listed.items():
        assert {row["argument"] for row in other.locks(*filters)} == expected, filters
    for words in (("MODE", "Z"), ("TABLE",), ("COUNT", "-1"), ("WHERE", "x")):
        assert other.refused("LOCKS", *words) == "ERR", words
    assert one("UNLOCKALL") == 3


def test_one_optimistic_lock_of_several_is_promoted(clients: tuple[Client, Client]) -> None:
    one, other = clients
    assert one("LOCK", "T", "o", "O") == other("LOCK", "T", "o", "O") == 1
    assert one("LOCK", "T", "o", "R") == 1
    assert other.refused("LOCK", "T", "o", "R") == "NOTHELD", "the promotion ended it"
    assert one("UNLOCKALL") == 1


def test_a_lost_connection_ends_its_dialog_locks_alone(server: Server) -> None:
    first, watcher = Client(server.port), Client(server.port)
    first("OWNER", "lost")
    first("LOCK", "L", "dialog", "E")
    first("LOCK", "L", "both", "E", "SCOPE", 3)
    first("OWNER", "lost-too")
    first("LOCK", "L", "of another owner", "E")
    assert len(watcher.locks("TABLE", "L")) == 3
    first.close()
    until(lambda: len(watcher.locks("TABLE", "L")) == 1)
    (left,) = watcher.locks("TABLE", "L")
    assert (left["argument"], left["owner"], left["dialog"], left["update"]) == (
        "both",
        "lost",
        0,
        1,
    )
    watcher("OWNER", "lost", "UPDATE")
    assert watcher("UNLOCKALL") == 1
    watcher.close()


@pytest.mark.parametrize("last", [encode("PING"), encode("PING")[:7]])
def test_an_end_that_comes_with_the_last_bytes_is_noticed(server: Server, last: bytes) -> None:
    watcher, quitter = Client(server.port), Client(server.port)
    quitter("LOCK", "Q", "a", "E")
    for process in server.processes():
        stop(process)
    quitter.socket.sendall(last)
    quitter.socket.shutdown(socket.SHUT_WR)
    for process in server.processes():
        os.kill(process, signal.SIGCONT)
    until(lambda: watcher.locks("TABLE", "Q") == [])
    assert closed_by_server(quitter.socket)
    quitter.close()
    watcher.close()


def test_a_request_waits_for_a_lock_and_others_do_not(clients: tuple[Client, Client]) -> None:
    one, other = clients
    one("LOCK", "T", "w", "E")
    other.send("LOCK", "T", "w", "E", "WAIT", 30_000)
    other.send("PING")
    assert one("PING") == "PONG"
    assert not has_something_to_read(other.socket, 0.05), "requests are answered in order"
    one("UNLOCK", "T", "w", "E")
    assert (other.reply(), other.reply()) == (1, "PONG")
    one.send("LOCK", "T", "w", "E", "WAIT", 20)
    with pytest.raises(ReplyError, match="COLLISION"):
        one.reply()
    other("UNLOCKALL")


def test_a_waiting_client_that_goes_is_granted_nothing(clients: tuple[Client, Client]) -> None:
    one, other = clients
    one("LOCK", "T", "g", "E")
    other.send("LOCK", "T", "g", "E", "WAIT", 30_000)
    other.socket.shutdown(socket.SHUT_RDWR)
    until(lambda: has_something_to_read(other.socket, 1.0))
    one("UNLOCK", "T", "g", "E")
    assert one("LOCK", "T", "g", "E", "WAIT", 30_000) == 1
    one("UNLOCKALL")


def test_a_full_table_says_who_holds_most() -> None:
    with serving("--capacity", "3") as server:
        one, other = Client(server.port), Client(server.port)
        one("OWNER", "hoarder")
        for argument in ("a", "b"):
            one("LOCK", "T", argument, "S")
        other("LOCK", "T", "a", "S")
        for _ in range(5):
            assert other.refused("LOCK", "T", "c", "S") == "FULL"
        assert one("LOCK", "T", "a", "S") == 2, "cumulating needs no capacity"
        (overflow,) = other("OVERFLOWS")
        figures = dict(zip(overflow[::2], overflow[1::2], strict=True))
        assert figures["refused"] == 5
        assert figures["owners"][0] == ["hoarder", 2]
        assert figures["arguments"][0] == ["T", "a", 2]
        statistics = other.table("LOCKSTAT")
        assert (statistics["locks"], statistics["locks_peak"], statistics["capacity"]) == (3, 3, 3)
        assert (statistics["refused_full"], statistics["overflows"]) == (5, 1)
        one.close()
        other.close()


# -- libraries --------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_and_its_lock(server: Server, protocol: int) -> None:
    redis = pytest.importorskip("redis")
    client = redis.Redis(port=server.port, protocol=protocol)
    assert client.ping()
    assert client.set("key", "value", nx=True, px=60_000)
    assert not client.set("key", "other", nx=True)
    assert client.get("key") == b"value"
    assert client.delete("key") == 1
    assert client.execute_command("LOCK", "T", "redis-py", "E") == 1
    with pytest.raises(redis.exceptions.ResponseError, match="NOTHELD"):
        client.execute_command("UNLOCK", "T", "redis-py", "S")
    lock, rival = client.lock("name", timeout=60), client.lock("name", timeout=60)
    assert lock.acquire() and lock.owned()
    assert not rival.acquire(blocking=False)
    assert lock.extend(10) and lock.reacquire()
    lock.release()
    assert rival.acquire(blocking=False)
    rival.release()
    with pytest.raises(redis.exceptions.ResponseError, match="NOSCRIPTING"):
        client.eval("return 1", 0)
    client.close()


def test_a_redlock_library(server: Server) -> None:
    pottery = pytest.importorskip("pottery")
    redis = pytest.importorskip("redis")
    masters = {redis.Redis(port=server.port)}
    lock = pottery.Redlock(key="resource", masters=masters, auto_release_time=60)
    rival = pottery.Redlock(key="resource", masters=masters, auto_release_time=60)
    assert lock.acquire(blocking=False) and lock.locked() > 0
    assert not rival.acquire(blocking=False)
    lock.extend()
    lock.release()
    assert lock.locked() == 0
    assert rival.acquire(blocking=False)
    rival.release()


def test_a_key_ends_with_its_time(clients: tuple[Client, Client]) -> None:
    one, _ = clients
    assert one("SET", "short", "v", "PX", 30) == "OK"
    until(lambda: one("GET", "short") is None)
    assert one("SET", "short", "w", "NX") == "OK"
    assert one("DELEX", "short", "IFEQ", "v") == 0
    assert one("DELEX", "short", "IFEQ", "w") == 1


# -- rude clients -----------------------------------------------------------------------------


def test_rude_clients_do_not_stop_the_others(server: Server) -> None:
    rude = {
        b"*3\r\n$4\r\nLOCK\r\n$1\r\nT": False,
        b"*1\r\n$4294967295\r\n": True,
        b"*4294967295\r\n": True,
        b"*1000000\r\n": True,
        b"\x16\x03\x01\x02\x00": True,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n": True,
        b"x" * 100_000: True,
    }
    connections = []
    for text, is_refused in rude.items():
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S)
        with contextlib.suppress(OSError):
            connection.sendall(text)
        connections.append((connection, is_refused))
    polite = Client(server.port)
    for _ in range(50):
        assert polite("PING") == "PONG"
    for connection, is_refused in connections:
        if is_refused:
            assert closed_by_server(connection)
        connection.close()
    polite.close()


def test_a_client_that_never_reads_is_not_served_on(server: Server) -> None:
    glutton = socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S)
    glutton.setblocking(False)
    requests = memoryview(encode("ECHO", "x" * 16_359) * 512)
    sent, stuck_since = 0, time.monotonic()
    polite = Client(server.port)
    # The kernel's buffers are full, and so is the server's: it takes no more from us.
    while time.monotonic() - stuck_since < 0.3:
        try:
            sent += glutton.send(requests[sent % len(requests) :])
            stuck_since = time.monotonic()
        except BlockingIOError:
            assert polite("PING") == "PONG"
    assert sent < 64 << 20
    glutton.close()
    assert polite("PING") == "PONG"
    polite.close()


def test_large_replies_to_a_client_that_never_reads_take_little_memory(server: Server) -> None:
    holder, glutton = Client(server.port), Client(server.port)
    for number in range(1000):
        holder("LOCK", "BIG", f"{number:0200}", "S")
    before = peak_bytes(server)
    glutton.socket.sendall(encode("LOCKS", "COUNT", 1000) * 100)
    assert len(glutton.reply()[1]) == 1000
    for _ in range(50):
        assert holder("PING") == "PONG"
    assert peak_bytes(server) - before < 16 << 20, "all replies together are 35 MB"
    assert [len(glutton.reply()[1]) for _ in range(99)] == [1000] * 99, "none is lost"
    holder("UNLOCKALL")
    holder.close()
    glutton.close()


def peak_bytes(server: Server) -> int:
    """The most memory that its processes have had, with what they share in each."""
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in server.processes()]
    lines = [line for status in statuses for line in status.splitlines()]
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def test_a_long_pipeline_is_answered_whole_and_in_order(server: Server) -> None:
    pipeliner, polite = Client(server.port), Client(server.port)
    count = 5000
    text = b"".join(encode("ECHO", number) for number in range(count))
    sender = threading.Thread(target=pipeliner.socket.sendall, args=[text])
    sender.start()
    assert polite("PING") == "PONG"
    assert [pipeliner.reply() for _ in range(count)] == [str(n) for n in range(count)]
    sender.join()
    pipeliner.close()
    polite.close()


def test_half_a_request_is_closed_after_its_time() -> None:
    with serving("--stalled-s", "1") as server:
        half = socket.create_connection(("127.0.0.1", server.port))
        idle = Client(server.port)
        half.sendall(b"*1\r\n$4\r\nPI")
        assert closed_by_server(half)
        assert idle("PING") == "PONG", "an idle client is no stalled one"
        half.close()
        idle.close()
    assert server.indicators()["closed_by_limits", None] == 1


def test_two_thousand_idle_clients_and_one_more_than_allowed() -> None:
    wanted = 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * wanted:
        pytest.skip(f"the hard limit of descriptors is {hard}, of which 2 × {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * wanted), hard))
    try:
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(serving("--clients-max", str(wanted)))
            for _ in range(wanted - 1):
                idle = socket.create_connection(("127.0.0.1", server.port))
                stack.callback(idle.close)
            last = Client(server.port)
            stack.callback(last.close)
            assert last("LOCK", "T", "a", "E") == 1
            until(lambda: f"connected_clients:{wanted}\r\n" in last("INFO"))
            over = Client(server.port)
            with pytest.raises(ReplyError, match="max number of clients reached"):
                over.reply()
            over.close()
        assert server.indicators()["refused", None] == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- security ---------------------------------------------------------------------------------


def test_beyond_loopback_a_password_is_needed() -> None:
    server = Server("--bind", "0.0.0.0")
    server.process.wait(DEADLINE_S)
    assert "needs a password: give --password-file" in server.end()
    assert server.process.returncode == 2


def test_a_port_in_use_is_told_with_what_to_try() -> None:
    with serving() as server:
        line = [str(native.binary("concurve-server")), "--port", str(server.port)]
        other = subprocess.run(
            line, check=False, capture_output=True, text=True, timeout=DEADLINE_S
        )
    assert other.returncode == 1
    assert f"cannot listen on 127.0.0.1:{server.port}: Address already in use" in other.stderr
    assert "--port 0 for any free one" in other.stderr


def test_nothing_is_answered_before_the_password(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    with serving("--password-file", str(tmp_path / "password")) as server:
        client = Client(server.port)
        assert client.refused("LOCK", "T", "a", "E") == "NOAUTH"
        assert client.refused("HELLO", 3) == "NOAUTH"
        assert client.refused("AUTH", "open") == "WRONGPASS"
        assert client("AUTH", "open sesame") == "OK"
        assert client("LOCK", "T", "a", "E") == 1
        client.close()
        guesser = Client(server.port)
        for _ in range(10):
            guesser.send("AUTH", "guess")
        assert closed_by_server(guesser.socket)
        guesser.close()


# -- reports ----------------------------------------------------------------------------------


def test_the_report_channel_has_facts_and_figures() -> None:
    with serving("--io-threads", "2", "--idle", "spin:10") as server:
        facts = server.facts()
        assert (facts["io_threads"], facts["execution"]) == (2, "worker")
        assert (facts["latching"], facts["idle"]) == ("global", "spin:10")
        clients = [Client(server.port) for _ in range(2)]
        for client in clients:
            client("LOCK", "T", "a", "S")
    for client in clients:
        client.close()
    assert server.process.returncode == 0
    figures = server.indicators()
    assert figures["requests", None] == figures["accepted", None] == 2
    assert figures["worker_requests", "io-1"] == figures["worker_requests", "io-2"] == 1
    assert figures["worker_busy_seconds", None] > 0
    assert (figures["lock_locks_peak", None], figures["lock_arguments_peak", None]) == (2, 1)
    assert 100 <= figures["lock_memory_peak", None] <= 2 * 64 + 128
    assert server.facts()["io_threads_active"] == 2


# -- the backup file --------------------------------------------------------------------------

OWNERS, KEYS = 4, 12


class Owner(threading.Thread):
    """Locks and unlocks at random until the server is gone; knows what was acknowledged."""

    def __init__(self, name: str, port: int, held: set[str], ledger: dict[str, str]) -> None:
        super().__init__(name=name)
        self.client = Client(port)
        self.client("OWNER", name, "UPDATE")
        self.held, self.ledger = held, ledger
        self.in_doubt: str | None = None
        self.wrong: list[str] = []
        self.acknowledged = 0

    def run(self) -> None:
        draw = random.Random(self.name)
        with contextlib.suppress(OSError):
            while True:
                self.step(str(draw.randrange(KEYS)))

    def step(self, key: str) -> None:
        self.in_doubt = key
        if key in self.held:
            # Not held any more once the request is sent: another client may be granted it.
            del self.ledger[key]
            assert self.client("UNLOCK", "K", key, "E") == 0
            self.held.discard(key)
        else:
            try:
                self.client("LOCK", "K", key, "E", "BACKUP")
            except ReplyError as error:
                assert error.code == "COLLISION"
            else:
                if key in self.ledger:
                    self.wrong.append(f"{key} granted while {self.ledger[key]} holds it")
                self.ledger[key] = self.name
                self.held.add(key)
        self.in_doubt = None
        self.acknowledged += 1


def kill_under_load(backup: Path, rounds: int, *options: str) -> None:
    """What was acknowledged before each SIGKILL is what a restart finds."""
    held: dict[str, set[str]] = {f"owner-{number}": set() for number in range(OWNERS)}
    for kill in range(rounds):
        server = Server("--backup", str(backup), *options)
        try:
            server.wait_until_ready()
            ledger = {key: name for name, keys in held.items() for key in keys}
            assert found(server) == ledger, f"before kill {kill}"
            owners = [Owner(name, server.port, keys, ledger) for name, keys in held.items()]
            for owner in owners:
                owner.start()
            target = random.Random(kill).randrange(1, 200)
            until(lambda: sum(owner.acknowledged for owner in owners) >= target)  # noqa: B023
        finally:
            server.end(signal.SIGKILL)
        for owner in owners:
            owner.join(DEADLINE_S)
            owner.client.close()
            assert owner.wrong == []
        settle(backup, owners, held, *options)


def settle(backup: Path, owners: list[Owner], held: dict[str, set[str]], *options: str) -> None:
    """Only what was under way at the kill may have gone either way."""
    with serving("--backup", str(backup), *options) as server:
        after = found(server)
    for owner in owners:
        kept = {key for key, name in after.items() if name == owner.name}
        assert kept - {owner.in_doubt} == held[owner.name] - {owner.in_doubt}, owner.name
        held[owner.name] = kept


def found(server: Server) -> dict[str, str]:
    client = Client(server.port)
    rows = client.locks()
    client.close()
    by_key = {row["argument"]: row["owner"] for row in rows}
    assert len(by_key) == len(rows), "one owner a key"
    return by_key


@pytest.mark.parametrize("durability", ["process", "power"])
@pytest.mark.parametrize("model", THREAD_MODELS)
def test_kills_under_load_lose_nothing_and_bring_nothing_back(
    tmp_path: Path, model: str, durability: str
) -> None:
    # As many as it takes to find replies that leave before their record is on file.
    kill_under_load(tmp_path / "locks", 10, *THREAD_MODELS[model], "--durability", durability)


@pytest.mark.soak
@pytest.mark.parametrize("durability", ["process", "power"])
@pytest.mark.parametrize("model", THREAD_MODELS)
def test_twenty_kills_under_load(tmp_path: Path, model: str, durability: str) -> None:
    kill_under_load(tmp_path / "locks", 20, *THREAD_MODELS[model], "--durability", durability)


def test_dialog_parts_are_not_kept_and_a_backup_needs_a_file(tmp_path: Path) -> None:
    with serving("--backup", str(tmp_path / "locks")) as server:
        client = Client(server.port)
        client("OWNER", "me")
        client("LOCK", "T", "a", "E", "SCOPE", 3, "BACKUP")
        client("LOCK", "T", "b", "E", "SCOPE", 2)
        assert client.refused("LOCK", "T", "c", "E", "BACKUP") == "ERR"
        client.close()
        server.end(signal.SIGKILL)
    with serving("--backup", str(tmp_path / "locks")) as server:
        assert server.facts()["backup_locks_loaded"] == 1
        client = Client(server.port)
        (kept,) = client.locks()
        assert (kept["argument"], kept["owner"]) == ("a", "me")
        assert (kept["dialog"], kept["update"], kept["backup"]) == (0, 1, 1)
        client.close()
    with serving() as server:
        client = Client(server.port)
        assert client.refused("LOCK", "T", "a", "E", "SCOPE", 2, "BACKUP") == "NOBACKUP"
        client.close()
