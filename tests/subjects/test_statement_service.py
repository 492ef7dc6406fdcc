"""The statement service seen by clients: prepared statements, caches, transactions, errors."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.host import native
from tests.helpers.real import wait_until
from tests.helpers.resp import (
    DEADLINE_S,
    Client,
    ReplyError,
    Server,
    encode,
    has_something_to_read,
    missing,
    serving,
)

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

VARIANTS = {
    "worker": ("--execution", "worker", "--statement-cache", "single", "--durability", "group"),
    "inline": ("--execution", "inline", "--io-threads", "2", "--latching", "record"),
    "answering": ("--replies", "engine", "--io-threads", "2", "--engine-count", "2"),
    "uncached": ("--io-threads", "2", "--statement-cache", "off", "--durability", "none"),
    "processes": ("--engines", "processes", "--engine-count", "2", "--latching", "record",
                  "--shared-memory", "256", "--cache-mib", "16"),
}  # fmt: skip
BALANCE = "GET {} balance KEY ?"
ALL = "FROM -9223372036854775808 TO 9223372036854775807"


@pytest.fixture(scope="module", params=VARIANTS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("statements")
    variant = VARIANTS[request.param]
    with serving("--service", "statements", "--folder", str(folder), *variant) as running:
        yield running


_names = itertools.count()


@pytest.fixture
def file(server: Server) -> str:
    """A new file of three balances."""
    name = f"f{next(_names)}"
    with contextlib.closing(Client(server.port)) as client:
        assert client("CREATE", name, "id", "balance", "BYTES", 100) == "OK"
        assert client("FILL", name, 1, 3, 10) == "OK"
    return name


@pytest.fixture
def clients(server: Server) -> Iterator[list[Client]]:
    three = [Client(server.port) for _ in range(3)]
    yield three
    for client in three:
        client.close()


def figures(client: Client, *sections: str) -> dict[str, str]:
    """The fields of INFO."""
    lines = client("INFO", *sections).splitlines()
    return dict(line.split(":", maxsplit=1) for line in lines if ":" in line)


def balance(client: Client, file: str, key: int) -> int:
    return int(client("RUN", BALANCE.format(file), key))


# -- statements ---------------------------------------------------------------------------------


def test_each_statement_has_its_effect_prepared_or_not(clients: list[Client], file: str) -> None:
    one = clients[0]
    steps: list[tuple[str, list[int], object]] = [
        (BALANCE.format(file), [2], 10),
        (f"ADD {file} balance ? KEY ?", [-12, 2], -2),
        (f"SUM {file} balance FROM ? TO ?", [1, 2], 8),
        (f"INSERT {file} ? ?", [9, 7], "OK"),
        (f"COUNT {file} {ALL}", [], 4),
        (f"count {file} /* but the last */ from 1 to ?", [8], 3),
        (f"DELETE {file} KEY ?", [9], "OK"),
        (f"DELETE {file} KEY ?", [9], None),
        (BALANCE.format(file), [9], None),
        (f"ADD {file} balance 1 KEY ?", [9], None),
    ]
    for number, (text, values, expected) in enumerate(steps):
        if number % 2:
            assert one("RUN", text, *values) == expected, text
        else:
            assert one("PREPARE", "s", text) == len(values)
            assert one("EXECUTE", "s", *values) == expected, text
    assert one("FIELDS", file) == ["id", "balance"]
    assert file in one("LIST")
    assert one("FILES", file) == 1
    assert one("DEALLOCATE", "*") == 1


def test_every_error_says_what_is_wrong(clients: list[Client], file: str) -> None:
    one = clients[0]
    one("PREPARE", "get", BALANCE.format(file))
    refusals: dict[tuple[str | int, ...], str] = {
        ("RUN", "GET nowhere balance KEY 1"): "FILENOTFOUND there is no file named nowhere",
        (
            "RUN",
            f"GET {file} x KEY 1",
        ): f"FIELDNOTFOUND file {file} has no field named x: it has id",
        ("RUN", "SELECT 1"): "ERR 'SELECT 1': 'SELECT' is not one of GET, ADD",
        ("RUN", f"ADD {file} id 1 KEY 1"): "ERR ",
        ("RUN", BALANCE.format(file)): "PARAMETERS the statement has 1 parameters and was given 0",
        ("RUN", BALANCE.format(file), "x"): "ERR 'x' is not a 64-bit integer",
        ("RUN", BALANCE.format(file), 2**63): "ERR '9223372036854775808' is not a 64-bit integer",
        ("RUN", f"INSERT {file} 1 1"): "DUPLICATEKEY 5",
        ("RUN", f"ADD {file} balance {2**63 - 1} KEY 1"): "OVERFLOW the sum of 10",
        ("EXECUTE", "get"): "PARAMETERS",
        ("EXECUTE", "get", 1, 2): "PARAMETERS",
        ("EXECUTE", "other", 1): "NOSTATEMENT there is no statement named other",
        ("DEALLOCATE", "other"): "NOSTATEMENT",
        ("PREPARE", "bad", "GET"): "ERR 'GET': it ends where",
        ("CREATE", file, "id"): "FILEEXISTS 59",
        ("CREATE", "x", "a", "a"): "ERR two fields are named a",
        ("CREATE", "x-y", "a"): "ERR 'x-y' is not a valid name of a file",
        ("CREATE", "x", "a", "BYTES", 7): "ERR BYTES 7: 1 fields need 8",
        ("CREATE", "x", "a", "BYTES", "y"): "ERR BYTES y",
        ("FILL", file, 1, 2, 3): "DUPLICATEKEY 5",
        ("FILL", file, 5, 6): f"ERR file {file} has 2 fields (id, balance)",
        ("FILL", "nowhere", 5, 6): "FILENOTFOUND",
        ("DROP", "nowhere"): "FILENOTFOUND 12",
        ("FIELDS", "nowhere"): "FILENOTFOUND 12",
        ("COMPARE", file, "balance", "WITH", file): "ERR wrong number of arguments",
        ("COMPARE", file, "balance", "WITH", file, "x"): "FIELDNOTFOUND",
        ("SET", "NOTHING", "x"): "ERR option 'NOTHING' is not one of USER, DATABASE",
        ("SET", "USER", "a b"): "ERR 'a b' is not a valid name of a user",
        ("GET", "EQUAL", file, 0, 1): "ERR unknown command",
        ("END",): "NOTRANSACTION 39",
    }
    for words, why in refusals.items():
        with pytest.raises(ReplyError) as refused:
            one(*words)
        assert str(refused.value).startswith(why), words
    assert balance(one, file, 1) == 10
    # A refused statement holds no lock.
    assert clients[1]("RUN", f"ADD {file} balance 1 KEY 1") == 11
    one("BEGIN")
    for words in (("CREATE", "y", "id"), ("DROP", file), ("FILL", file, 8, 9, 0)):
        assert one.refused(*words) == "TRANSACTIONACTIVE"
    one("ABORT")


def test_a_database_and_a_user_have_plans_of_their_own(clients: list[Client], file: str) -> None:
    one, other, _ = clients
    text = BALANCE.format(file)
    assert other("SET", "DATABASE", "bank") == "OK"
    assert other("CREATE", file, "id", "x", "balance") == "OK"
    other("RUN", f"INSERT {file} 1 5 77")
    for client in clients:
        client("PREPARE", "get", text)
    assert [one("EXECUTE", "get", 1), other("EXECUTE", "get", 1)] == [10, 77]
    assert other("SET", "USER", "ann") == "OK"
    assert other("EXECUTE", "get", 1) == 77
    assert other("LIST", file) == [file]
    assert other("DROP", f"{file}*") == 1
    assert other.refused("EXECUTE", "get", 1) == "FILENOTFOUND"
    assert other("SET", "DATABASE", "") == "OK"
    assert other("EXECUTE", "get", 1) == 10


def test_a_file_that_is_created_again_has_new_plans(clients: list[Client], file: str) -> None:
    one, other, _ = clients
    one("PREPARE", "get", BALANCE.format(file))
    assert one("EXECUTE", "get", 1) == 10
    assert other("DROP", file) == 1
    assert one.refused("EXECUTE", "get", 1) == "FILENOTFOUND"
    other("CREATE", file, "id", "more", "balance")
    other("RUN", f"INSERT {file} 1 2 3")
    assert one("EXECUTE", "get", 1) == 3


# -- transactions and waiting -------------------------------------------------------------------


def test_a_transaction_is_atomic(clients: list[Client], file: str) -> None:
    one, other, _ = clients
    for end, expected in (("ABORT", 10), ("END", 17)):
        assert one("BEGIN") == "OK"
        assert one("RUN", f"ADD {file} balance 7 KEY 1") == 17
        one("RUN", f"INSERT {file} 7 7")
        one("RUN", f"DELETE {file} KEY 2")
        assert one(end) == "OK"
        assert balance(other, file, 1) == expected
    assert other("RUN", f"COUNT {file} {ALL}") == 3


def test_a_transaction_with_a_failed_statement_is_not_committed(
    clients: list[Client], file: str
) -> None:
    one, other, _ = clients
    for wrong in (f"INSERT {file} 1 1", "GET nowhere x KEY 1", f"ADD {file} balance ? KEY 1"):
        # All at once, in one round trip.
        for words in (
            ("BEGIN",),
            ("RUN", f"ADD {file} balance 1 KEY 1"),
            ("RUN", wrong),
            ("RUN", f"ADD {file} balance 1 KEY 2"),
            ("END",),
            ("ABORT",),
        ):
            one.send(*words)
        assert [one.reply(), one.reply()] == ["OK", 11]
        codes = []
        for _ in range(3):
            with pytest.raises(ReplyError) as refused:
                one.reply()
            codes.append(refused.value.code)
        assert codes[0] in {"DUPLICATEKEY", "FILENOTFOUND", "PARAMETERS"}
        assert codes[1:] == ["FAILED", "FAILED"]
        assert one.reply() == "OK"
        assert [balance(other, file, key) for key in (1, 2)] == [10, 10]


def test_two_that_read_for_update_wait_for_each_other_and_do_not_deadlock(
    clients: list[Client], file: str
) -> None:
    one, other, third = clients
    locking = f"{BALANCE.format(file)} FOR UPDATE"
    for client in (one, other):
        assert client("BEGIN") == "OK"
    assert one("RUN", locking, 2) == 10
    other.send("RUN", locking, 2)
    assert not has_something_to_read(other.socket, 0.05)
    assert third("RUN", locking, 1) == 10, "another record is free"
    assert one("RUN", f"ADD {file} balance 5 KEY 2") == 15
    assert one("END") == "OK"
    assert other.reply() == 15
    assert other("RUN", f"ADD {file} balance 5 KEY 2") == 20
    assert other("END") == "OK"
    assert one("RUN", locking, 2) == 20
    assert other("RUN", f"ADD {file} balance 1 KEY 2") == 21, "no lock outlives a statement"
    assert other("RUN", locking, 99) is None


def test_a_waiting_client_is_answered_when_the_other_ends(clients: list[Client], file: str) -> None:
    one, other, third = clients
    one("BEGIN")
    one("RUN", f"ADD {file} balance 1 KEY 2")
    waiting = {
        other: (f"ADD {file} balance 5 KEY 2", 16),
        third: (f"SUM {file} balance FROM 1 TO 3", None),
    }
    for client, (text, _) in waiting.items():
        client.send("RUN", text)
        client.send("PING")
    assert not any(has_something_to_read(client.socket, 0.05) for client in waiting)
    one("END")
    assert other.reply() == 16
    assert third.reply() in (31, 36)
    assert [client.reply() for client in waiting] == ["PONG", "PONG"]


def test_a_pipeline_is_answered_in_order_with_the_right_answers(
    clients: list[Client], file: str
) -> None:
    one = clients[0]
    one("PREPARE", "add", f"ADD {file} balance 1 KEY ?")
    rounds = 30
    requests = [encode("EXECUTE", "add", 1), encode("RUN", BALANCE.format(file), 1), encode("PING")]
    one.socket.sendall(b"".join(requests) * rounds)
    for number in range(11, 11 + rounds):
        assert [one.reply() for _ in requests] == [number, number, "PONG"]


def test_concurrent_transfers_keep_the_sum(server: Server, file: str) -> None:
    errors: list[BaseException] = []

    def trade(seed: int) -> None:
        draw = random.Random(seed)
        try:
            with contextlib.closing(Client(server.port)) as client:
                client("PREPARE", "add", f"ADD {file} balance ? KEY ?")
                for _ in range(15):
                    transfer(client, draw)
        except BaseException as error:
            errors.append(error)

    def transfer(client: Client, draw: random.Random) -> None:
        client("BEGIN")
        try:
            for key, by in zip(draw.sample(range(1, 4), 2), (-1, 1), strict=True):
                client("EXECUTE", "add", by, key)
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
        assert client("RUN", f"SUM {file} balance {ALL}") == 30
        assert client("COMPARE", file, "balance", "BY", "id", "WITH", file, "balance") > 0


def test_data_are_consistent_after_a_load_in_every_shape(server: Server) -> None:
    load = [str(native.binary("concurve-load")), f"statements://127.0.0.1:{server.port}"]
    for options in (
        ["--workload", "loop", "--new-statements", "0.3", "--sessions", "6"],
        ["--workload", "tpcb-strict", "--round-trips", "one", "--files", "2", "--sessions", "4"],
    ):
        done = subprocess.run(
            [*load, *options, "--scale", "3", "--accounts", "20", "--init", "--verify",
             "--transactions", "120", "--json"],
            capture_output=True, text=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["errors_by_kind"].keys() <= {"DEADLOCK"}
        assert found["acknowledged"] + found["errors"] == 120


# -- caches -------------------------------------------------------------------------------------


def counters(client: Client) -> dict[str, int]:
    found = figures(client, "statements")
    names = ("cached", "dropped", "found", "compiled", "exhausted")
    return {name: int(found[name]) for name in names}


@pytest.mark.parametrize("caching", ["off", "single", "striped"])
def test_the_caches_count_their_use(tmp_path: Path, caching: str) -> None:
    options = ("--statement-cache", caching, "--procedure-cache", "16", "--spin", "only")
    service = ("--service", "statements", "--folder", str(tmp_path), *options)
    with serving(*service) as server, contextlib.closing(Client(server.port)) as client:
        client("CREATE", "f", "id", "x")
        client("PREPARE", "get", "GET f x KEY ?")
        for number in range(20):
            client("EXECUTE", "get", number)
            # A new text each time; the cache has pages for 8 plans.
            assert client("RUN", f"GET f x KEY {number}") is None
        done = counters(client)
        in_use = figures(client, "utilisation")
        # A plan that needs more pages than there are.
        with pytest.raises(ReplyError) as refused:
            client("RUN", f"GET f x KEY {' ' * 20_000}1")
        assert str(refused.value).startswith("EXHAUSTED 701: ")
        assert "--procedure-cache" in str(refused.value)
        assert client("EXECUTE", "get", 1) is None
        assert counters(client)["exhausted"] == 1
    cached = caching != "off"
    assert done["compiled"] == (21 if cached else 41)
    assert done["found"] == (20 if cached else 0)
    assert done["cached"] == (21 if cached else 0)
    assert done["cached"] - done["dropped"] == (8 if cached else 0)
    assert done["exhausted"] == 0
    assert in_use["procedure cache"] == f"used={8 if cached else 0},size=8"
    used, size = (int(part.partition("=")[2]) for part in in_use["record cache"].split(","))
    assert 0 < used < size
    facts = server.facts()
    assert (facts["statement_cache"], facts["procedure_cache_kib"]) == (caching, 16)
    assert facts["spin"] == "only"


def test_the_prepared_statements_of_a_connection_are_limited(server: Server, file: str) -> None:
    with contextlib.closing(Client(server.port)) as client:
        for number in range(1000):
            client.send("PREPARE", f"s{number}", BALANCE.format(file))
        assert [client.reply() for _ in range(1000)] == [1] * 1000
        assert client.refused("PREPARE", "more", BALANCE.format(file)) == "ERR"
        assert client("PREPARE", "s7", BALANCE.format(file)) == 1
        assert client("DEALLOCATE", "*") == 1000


# -- starts and ends ----------------------------------------------------------------------------


def test_acknowledged_data_and_field_names_survive_a_kill(
    tmp_path: Path,
) -> None:
    options = ("--service", "statements", "--folder", str(tmp_path), "--durability", "group")
    with serving(*options) as server:
        client = Client(server.port)
        client("CREATE", "f", "id", "x", "y")
        client("CREATE", "gone", "id")
        client("DROP", "gone")
        client("RUN", "INSERT f 1 2 3")
        client("BEGIN")
        client("RUN", "ADD f x 100 KEY 1")
        server.end(signal.SIGKILL)
        client.close()
    with serving(*options) as server, contextlib.closing(Client(server.port)) as client:
        assert client("LIST") == ["f"]
        assert client("FIELDS", "f") == ["id", "x", "y"]
        assert client("RUN", "GET f x KEY 1") == 2


def test_killed_engines_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    options = (
        "--service",
        "statements",
        "--folder",
        str(tmp_path / "data"),
        *VARIANTS["processes"],
    )
    with serving(*options) as server:
        address = f"statements://127.0.0.1:{server.port}"
        load = [str(native.binary("concurve-load")), address, "--workload", "loop",
                "--scale", "4", "--accounts", "20"]  # fmt: skip
        finished([*load, "--init-only"])
        for number in range(3):
            ledger = ("--ledger", str(tmp_path / f"ledger-{number}"))
            before = loops(server.port)
            process = subprocess.Popen(
                [
                    *load,
                    "--sessions",
                    "8",
                    "--new-statements",
                    "0.2",
                    "--duration",
                    "600s",
                    *ledger,
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                wait_until(
                    lambda: loops(server.port) > before + 50,  # noqa: B023
                    "work",
                    of=process,
                )
                os.kill(random.Random(number).choice(server.engines()), signal.SIGKILL)
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(DEADLINE_S)
            wait_until(lambda: loops(server.port) >= 0, "engines that serve", of=server)
            finished([*load, "--verify-only", *ledger])
    assert server.process.returncode == 0


def loops(port: int) -> int:
    """The number of finished loops of a load; -1 if no engine answers."""
    try:
        with contextlib.closing(Client(port)) as client:
            return int(client("RUN", f"COUNT concurve_history_1 {ALL}"))
    except OSError:
        return -1


def finished(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr


def test_invalid_options_are_refused(tmp_path: Path) -> None:
    folder = ("--folder", str(tmp_path))
    refusals = {
        ("--service", "statements"): "--service statements needs --folder",
        ("--service", "statements", *folder, "--backup", "x"): "--backup is not for",
        ("--service", "statements", *folder, "--durability", "power"): "take none, group or each",
        ("--service", "statements", *folder, "--spin", "x"): "or only",
        ("--service", "statements", *folder, "--statement-cache", "x"): "striped",
        ("--service", "statements", *folder, "--procedure-cache", "1"): "2..",
    }
    for options, why in refusals.items():
        server = Server(*options)
        assert server.process.wait(DEADLINE_S) == 2
        assert why in server.end(signal.SIGKILL), options


def test_a_load_refuses_what_it_cannot_do() -> None:
    load = str(native.binary("concurve-load"))
    for words, why in (
        (["records://127.0.0.1:1", "--workload", "loop", "--new-statements", "0.5"], "prepared"),
        (["statements://127.0.0.1:1", "--new-statements", "1.5"], "a share from 0 to 1"),
        (["statements://127.0.0.1:1", "--workload", "lop"], "update, loop"),
        (["statements://nobody"], "write statements://HOST:PORT"),
    ):
        done = subprocess.run(
            [load, *words], capture_output=True, text=True, check=False, timeout=DEADLINE_S
        )
        assert done.returncode == 2
        assert why in done.stderr, done.stderr
