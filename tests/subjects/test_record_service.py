"""The record service seen by clients: transactions, waiting, status codes, misbehaving clients."""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import socket
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.real import wait_until
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

VARIANTS = {
    "worker": ("--execution", "worker", "--latching", "global", "--durability", "group"),
    "inline": ("--execution", "inline", "--io-threads", "2", "--latching", "record"),
    "processes": ("--engines", "processes", "--engine-count", "2", "--latching", "record"),
    "answering": ("--replies", "engine", "--engine-count", "2", "--latching", "record"),
    "file-none": ("--io-threads", "3", "--latching", "file", "--durability", "none"),
    "each": ("--execution", "inline", "--latching", "record", "--durability", "each"),
}


@pytest.fixture(scope="module", params=VARIANTS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("records")
    with serving(
        "--service", "records", "--folder", str(folder), *VARIANTS[request.param]
    ) as running:
        yield running


_names = itertools.count()


@pytest.fixture
def file(server: Server) -> str:
    """A new file of numbers with balances, with three records."""
    name = f"f{next(_names)}"
    with contextlib.closing(Client(server.port)) as client:
        client("CREATE", name, 24, "KEY", "0:12:text", "KEY", "12:12:text", "DUPLICATES")
        for number in range(3):
            client("INSERT", name, record(number, 0))
    return name


@pytest.fixture
def clients(server: Server) -> Iterator[list[Client]]:
    three = [Client(server.port) for _ in range(3)]
    yield three
    for client in three:
        client.close()


def record(number: int, balance: int) -> str:
    return f"{number:012}{balance:012}"


def get(file: str, number: int, *options: str) -> tuple[str | int, ...]:
    return ("GET", "EQUAL", file, 0, f"{number:012}", *options, "FIELD", 12, 12)


def balance(client: Client, file: str, number: int, *options: str) -> int:
    whole, found = client(*get(file, number, *options))
    assert whole == record(number, found)
    return int(found)


def change(client: Client, file: str, number: int, by: int) -> None:
    found = balance(client, file, number, "SINGLE")
    assert client("UPDATE", file, record(number, found + by)) == "OK"


# -- transactions -------------------------------------------------------------------------------


def test_a_transaction_is_atomic(clients: list[Client], file: str) -> None:
    one, other, _ = clients
    for end, expected in (("ABORT", 0), ("END", 7)):
        assert one("BEGIN") == "OK"
        change(one, file, 1, 7)
        one("INSERT", file, record(7, 7))
        assert one(end) == "OK"
        assert balance(other, file, 1) == expected
    assert other("COUNT", file) == 4
    assert other.table("STAT", file)["records"] == 4
    other("GET", "LAST", file, 0)
    other("DELETE", file)
    assert other("SUM", file, 12, 12) == 7


def test_every_error_has_its_status(clients: list[Client], file: str) -> None:
    one, other, _ = clients
    value = f"{1:012}"
    refusals = {
        ("GET", "EQUAL", "nowhere", 0, value): "FILENOTFOUND 12",
        ("GET", "EQUAL", file, 0, f"{9:012}"): "KEYNOTFOUND 4",
        ("GET", "EQUAL", file, 0, "1"): "KEYLENGTH 21",
        ("GET", "EQUAL", file, 2, value): "INVALIDKEYNUMBER 6",
        ("GET", "GREATER", file, 0, f"{9:012}"): "ENDOFFILE 9",
        ("GET", "NEXT", file): "INVALIDPOSITION 8",
        ("DELETE", file): "INVALIDPOSITION 8",
        ("INSERT", file, record(1, 0)): "DUPLICATEKEY 5",
        ("INSERT", file, "short"): "RECORDLENGTH 22",
        ("CREATE", file, 24, "KEY", "0:12:text"): "FILEEXISTS 59",
        ("CREATE", "../x", 24, "KEY", "0:12:text"): "ERR ",
        ("END",): "NOTRANSACTION 39",
        ("ABORT",): "NOTRANSACTION 39",
        ("GET", "SAME", file): "ERR GET 'SAME'",
        ("LOCK", "a", "b", "E"): "ERR unknown command",
        ("SET", "a", "b"): "ERR unknown command",
    }
    for words, code in refusals.items():
        with pytest.raises(ReplyError) as refused:
            one(*words)
        assert str(refused.value).startswith(code), words
    one("BEGIN", "EXCLUSIVE")
    assert one.refused("BEGIN") == "TRANSACTIONACTIVE"
    change(one, file, 1, 1)
    assert other.refused(*get(file, 2, "SINGLE", "NOWAIT")) == "FILEINUSE"
    one("END")
    one(*get(file, 1, "MULTIPLE"))
    assert other.refused(*get(file, 1, "MULTIPLE", "NOWAIT")) == "RECORDINUSE"
    assert one("UNLOCK", file) == "OK"
    other(*get(file, 1))
    change(one, file, 1, 1)
    assert other.refused("UPDATE", file, record(1, 5)) == "CONFLICT"


def test_records_are_read_in_order_and_many_at_once(clients: list[Client], file: str) -> None:
    one = clients[0]
    assert one("GET", "FIRST", file, 0) == record(0, 0)
    assert one("GET", "NEXT", file) == record(1, 0)
    assert one("GET", "PREVIOUS", file) == record(0, 0)
    assert one("GET", "NEXT", file, "COUNT", 9) == [record(1, 0), record(2, 0)]
    assert one("POSITION", file) > 0
    assert one("FILL", file, 3, 1002, f"{5:012}") == "OK"
    assert one("SUM", file, 12, 12) == 5000
    assert one("CHECKPOINT") == "OK"


# -- waiting ------------------------------------------------------------------------------------


def test_a_waiting_client_is_answered_when_the_other_ends_and_delays_no_one_else(
    clients: list[Client], file: str
) -> None:
    one, other, third = clients
    one("BEGIN")
    change(one, file, 1, 3)
    other("BEGIN")
    other.send(*get(file, 1, "SINGLE"))
    other.send("END")
    assert not has_something_to_read(other.socket, 0.05), "it waits"
    assert balance(third, file, 2) == 0, "and no other client does"
    assert one("END") == "OK"
    assert other.reply() == [record(1, 3), 3]
    assert other.reply() == "OK"


def test_a_deadlock_has_one_victim_and_the_others_continue(
    clients: list[Client], file: str
) -> None:
    for number, client in enumerate(clients):
        client("BEGIN")
        change(client, file, number, 1)
    for number, client in enumerate(clients):
        client.send(*get(file, (number + 1) % 3, "SINGLE"))
    # The abort of the victim lets the client before it continue and end, and so on.
    victims = 0
    waiting = list(clients)
    while waiting:
        ready = [it for it in waiting if has_something_to_read(it.socket, 0.01)]
        for client in ready:
            waiting.remove(client)
            try:
                client.reply()
            except ReplyError as error:
                assert error.code == "DEADLOCK"
                assert client("ABORT") == "OK"
                victims += 1
            else:
                assert client("END") == "OK"
    assert victims == 1
    with contextlib.closing(Client(int(clients[0].socket.getpeername()[1]))) as client:
        assert client("SUM", file, 12, 12) == 2


@pytest.mark.parametrize("how", ["close", "quit", "half a request"])
def test_a_lost_connection_aborts_its_transaction(
    server: Server, clients: list[Client], file: str, how: str
) -> None:
    one = clients[0]
    lost, waiting = Client(server.port), Client(server.port)
    lost("BEGIN")
    change(lost, file, 1, 9)
    waiting("BEGIN")
    waiting.send(*get(file, 1, "SINGLE"))
    # In the queue, before the other client can be.
    wait_until(lambda: figures(one)["waiting"] == "1", "the one waits for the other's lock")
    if how == "quit":
        lost("QUIT")
    elif how == "half a request":
        lost.socket.sendall(encode("END")[:9])
    lost.close()
    one.send(*get(file, 1, "SINGLE"))
    assert waiting.reply() == [record(1, 0), 0]
    # A client that waits and disconnects is granted nothing.
    waiting.close()
    assert one.reply() == [record(1, 0), 0]
    one("UNLOCK", file)


def test_a_pipeline_is_answered_in_order(clients: list[Client], file: str) -> None:
    one = clients[0]
    rounds = 50
    requests = [encode("BEGIN"), encode(*get(file, 1, "SINGLE")), encode("END")]
    one.socket.sendall(b"".join(requests) * rounds)
    for _ in range(rounds):
        assert [one.reply() for _ in range(3)] == ["OK", [record(1, 0), 0], "OK"]


def test_concurrent_transfers_keep_the_sum(server: Server, file: str) -> None:
    errors: list[BaseException] = []

    def trade(seed: int) -> None:
        draw = random.Random(seed)
        try:
            with contextlib.closing(Client(server.port)) as client:
                for _ in range(15):
                    transfer(client, draw)
        except BaseException as error:
            errors.append(error)

    def transfer(client: Client, draw: random.Random) -> None:
        pair = draw.sample(range(3), 2)
        client("BEGIN")
        try:
            for number, by in zip(pair, (-1, 1), strict=True):
                change(client, file, number, by)
        except ReplyError as error:
            assert error.code == "DEADLOCK"
            client("ABORT")
        else:
            client("END")

    threads = [threading.Thread(target=trade, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert not errors
    with contextlib.closing(Client(server.port)) as client:
        assert client("SUM", file, 12, 12) == 0


# -- isolation ----------------------------------------------------------------------------------


class Histories:
    """The versions that committed transactions read and wrote: the number of the writer."""

    def __init__(self) -> None:
        self.readers: dict[tuple[int, int], set[int]] = defaultdict(set)
        self.next: dict[tuple[int, int], int] = {}
        self.lost: list[tuple[int, int]] = []

    def add(self, transaction: int, reads: dict[int, int], writes: set[int]) -> None:
        for number, version in reads.items():
            self.readers[number, version].add(transaction)
            if (
                number in writes
                and self.next.setdefault((number, version), transaction) != transaction
            ):
                self.lost.append((number, version))

    def has_cycle(self) -> bool:
        """Adya's serialisation graph: write-read, read-write and write-write edges."""
        if self.lost:
            return True
        edges: dict[int, set[int]] = defaultdict(set)
        for (number, version), readers in self.readers.items():
            following = self.next.get((number, version))
            for reader in readers:
                edges[version].add(reader)
                if following is not None:
                    edges[reader].add(following)
        left = {it: targets - {it} for it, targets in edges.items()}
        while left:
            ends = {it for it, targets in left.items() if not targets & left.keys()}
            if not ends:
                return True
            left = {it: targets for it, targets in left.items() if it not in ends}
        return False


def test_the_checker_finds_anomalies() -> None:
    skew = Histories()
    skew.add(1, {0: 0, 1: 0}, {0})
    skew.add(2, {0: 0, 1: 0}, {1})
    assert skew.has_cycle()
    lost = Histories()
    lost.add(1, {0: 0}, {0})
    lost.add(2, {0: 0}, {0})
    assert lost.has_cycle()
    serial = Histories()
    serial.add(1, {0: 0, 1: 0}, {0})
    serial.add(2, {0: 1, 1: 0}, {1})
    assert not serial.has_cycle()


@pytest.mark.parametrize("isolated", [True, False])
def test_random_operations_have_a_serial_order_in_transactions_only(
    server: Server, file: str, isolated: bool
) -> None:
    """A record's balance is its version: the number of the transaction that wrote it."""
    histories, guard, numbers = Histories(), threading.Lock(), itertools.count(1)

    def work(seed: int, found: threading.Event) -> None:
        draw = random.Random(seed)
        with contextlib.closing(Client(server.port)) as client:
            for _ in range(40 if isolated else 2000):
                if found.is_set():
                    return
                transact(client, draw)
                with guard:
                    if not isolated and histories.has_cycle():
                        found.set()

    def transact(client: Client, draw: random.Random) -> None:
        with guard:
            transaction = next(numbers)
        asked = draw.sample(range(3), 2)
        written = asked[1]
        reads = {}
        try:
            if isolated:
                client("BEGIN")
            for number in asked:
                reads[number] = balance(client, file, number)
            client("UPDATE", file, record(written, transaction))
            if isolated:
                client("END")
        except ReplyError as error:
            assert error.code in {"DEADLOCK", "CONFLICT"}
            if isolated:
                client("ABORT")
            return
        with guard:
            histories.add(transaction, reads, {written})

    found = threading.Event()
    threads = [threading.Thread(target=work, args=(seed, found)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert histories.has_cycle() is not isolated


# -- limits, statistics, misbehaving clients ------------------------------------------------------


def figures(client: Client) -> dict[str, str]:
    """The fields of INFO."""
    lines = client("INFO").splitlines()
    return dict(line.split(":", maxsplit=1) for line in lines if ":" in line)


def test_info_counts_operations(server: Server, clients: list[Client], file: str) -> None:
    before = figures(clients[1])
    clients[0]("BEGIN")
    change(clients[0], file, 1, 1)
    clients[0]("END")
    after = figures(clients[1])
    assert after["service"] == "records"
    assert int(after["begun"]) == int(before["begun"]) + 1
    assert int(after["commits"]) == int(before["commits"]) + 1
    assert int(after["cache_hits"]) > int(before["cache_hits"])
    listed = {row[0] for row in clients[0]("COMMAND", "LIST")}
    assert {"get", "begin", "ping", "info"} <= listed
    assert not {"lock", "set", "eval"} & listed


def test_misbehaving_clients_are_closed_and_the_others_served(tmp_path: Path) -> None:
    options = ("--stalled-s", "1", "--request-bytes-max", "4096", "--clients-max", "4")
    with serving("--service", "records", "--folder", str(tmp_path), *options) as server:
        well_behaved = Client(server.port)
        well_behaved("CREATE", "f", 24, "KEY", "0:12:text")
        well_behaved("INSERT", "f", record(1, 0))
        slow = Client(server.port)
        slow("BEGIN")
        slow(*get("f", 1, "SINGLE"))
        slow.socket.sendall(encode("END")[:5])
        huge = Client(server.port)
        huge.socket.sendall(b"*3\r\n$6\r\nINSERT\r\n$1\r\nf\r\n$99999999\r\n")
        assert closed_by_server(huge.socket)
        assert balance(well_behaved, "f", 1, "SINGLE") == 0, (
            "a stalled client is closed, and its lock released"
        )
        assert closed_by_server(slow.socket)
        well_behaved("UNLOCK", "f")
        crowd = [Client(server.port) for _ in range(5)]
        closed = [it for it in crowd if b"max number of clients" in first_bytes(it.socket)]
        assert closed
        assert well_behaved("PING") == "PONG"
        for client in (*crowd, slow, huge, well_behaved):
            client.close()
    assert server.process.returncode == 0
    indicators = {name for name, _ in server.indicators()}
    assert {"records_commits", "records_log_syncs", "records_lock_waits"} <= indicators


def first_bytes(connection: socket.socket) -> bytes:
    return connection.recv(100) if has_something_to_read(connection, 0.2) else b""


def test_a_password_is_required(tmp_path: Path) -> None:
    options = ("--service", "records", "--folder", str(tmp_path))
    with serving(*options, CONCURVE_PASSWORD="secret") as server:
        client = Client(server.port)
        assert client.refused("BEGIN") == "NOAUTH"
        assert client("AUTH", "secret") == "OK"
        assert client("BEGIN") == "OK"
        client.close()


def test_invalid_options_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with serving("--service", "records", "--folder", str(folder)) as first:
        assert first.facts()["durability"] == "group"
        refusals = {
            ("--service", "records", "--folder", str(folder)): (1, "in use by another engine"),
            ("--service", "records"): (2, "needs --folder"),
            ("--folder", str(folder)): (2, "--folder is not for locks"),
            ("--service", "records", "--folder", str(folder), "--durability", "power"): (
                2,
                "take none, group or each",
            ),
            ("--service", "records", "--folder", "/proc/nowhere"): (1, "/proc/nowhere"),
        }
        for options, (code, why) in refusals.items():
            server = Server(*options)
            assert server.process.wait(DEADLINE_S) == code
            assert why in server.end(signal.SIGKILL), options


def test_it_stops_during_transactions_and_recovers(tmp_path: Path) -> None:
    options = ("--service", "records", "--folder", str(tmp_path))
    for by, recovers in ((signal.SIGTERM, False), (signal.SIGKILL, True)):
        with serving(*options) as server:
            client = Client(server.port)
            if not recovers:
                client("CREATE", "f", 24, "KEY", "0:12:text")
                client("INSERT", "f", record(1, 0))
            change(client, "f", 1, 1)
            client("BEGIN")
            change(client, "f", 1, 100)
            if recovers:
                # Something that is in the log before the kill, and has not committed.
                change(client, "f", 1, 100)
                other = Client(server.port)
                other("INSERT", "f", record(2, 0))
                other.close()
            server.end(by)
            client.close()
        with serving(*options) as server:
            assert (server.facts()["recovered_records"] > 0) is recovers
            with contextlib.closing(Client(server.port)) as client:
                assert balance(client, "f", 1) == (2 if recovers else 1)
