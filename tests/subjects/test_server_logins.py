"""What a server allows to clients before their login, and to the buffers of all clients together.

No test asserts a speed: what is closed must be closed in the end, and what must wait is timed from
below alone.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.engine_kills import PROCESSES
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

PASSWORD = "open sesame"

MODELS = {
    "worker": ("--io-threads", "2"),
    "inline": ("--execution", "inline", "--io-threads", "2"),
    "engine replies": ("--replies", "engine", "--engine-count", "2"),
    "processes": PROCESSES,
}

SERVICES = ("locks", "records", "statements")


def guarded(*options: str) -> contextlib.AbstractContextManager[Server]:
    return serving(*options, CONCURVE_PASSWORD=PASSWORD)


@contextlib.contextmanager
def connected(server: Server, count: int) -> Iterator[list[Client]]:
    """Clients that have not logged in."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Client(server.port))) for _ in range(count)]


@contextlib.contextmanager
def logged_in(server: Server) -> Iterator[Client]:
    with connected(server, 1) as (client,):
        assert client("AUTH", PASSWORD) == "OK"
        yield client


def clients_of(watcher: Client) -> dict[str, int]:
    """The section Clients of INFO."""
    lines = [line for line in watcher("INFO", "clients").splitlines() if ":" in line]
    return {name: int(value) for name, value in (line.split(":") for line in lines)}


def has_empty_buffers(watcher: Client) -> bool:
    """Whether nothing waits but the request that asks."""
    return clients_of(watcher)["buffered_bytes"] < 100


def service_options(service: str, folder: Path) -> tuple[str, ...]:
    return () if service == "locks" else ("--service", service, "--folder", str(folder / "data"))


# -- time --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_who_does_not_log_in_is_closed_whatever_it_sends(model: tuple[str, ...]) -> None:
    with (
        guarded("--login-timeout-s", "2", *model) as server,
        logged_in(server) as watcher,
        logged_in(server) as sleeper,
    ):
        with connected(server, 4) as (idle, half, writer, refused):
            half.socket.sendall(b"*2\r\n$4\r\nAU")
            assert refused.refused("PING") == "NOAUTH"
            # One byte at a time: every one of them is progress, and none is a login.
            rest = iter(encode("AUTH", "x" * 3000))
            with contextlib.suppress(OSError):
                while not has_something_to_read(writer.socket, 0.05):
                    writer.socket.sendall(bytes([next(rest)]))
            with pytest.raises(ReplyError, match=r"NOAUTH .*--login-timeout-s"):
                idle.reply()
            for client in (idle, half, writer, refused):
                assert closed_by_server(client.socket)
            wait_until(lambda: clients_of(watcher)["closed_login_timeout"] == 4, "their count")
        assert sleeper("PING") == "PONG", "a client that has logged in may be idle"
        stderr = server.end()
    assert "closed: no login in time (--login-timeout-s)" in stderr
    assert "the last from 127.0.0.1" in stderr


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_limits_those_who_have_not_logged_in(service: str, tmp_path: Path) -> None:
    options = service_options(service, tmp_path)
    with (
        guarded("--login-timeout-s", "2", "--clients-max", "3", *options) as server,
        connected(server, 3) as idle,
        logged_in(server) as client,
    ):
        assert client("PING") == "PONG"
        assert client.refused("NOSUCH") == "ERR"
        if service != "locks":
            assert client("BEGIN") == "OK"
            assert client("END") == "OK"
        assert all([closed_by_server(it.socket) for it in idle])
        figures = clients_of(client)
        assert figures["closed_for_newcomers"] + figures["closed_login_timeout"] == 3


def test_without_a_password_nobody_must_log_in() -> None:
    with (
        serving("--login-timeout-s", "1", "--clients-max", "2") as server,
        connected(server, 2) as (idle, other),
        connected(server, 1) as (over,),
    ):
        time.sleep(2)
        assert idle("PING") == other("PING") == "PONG"
        with pytest.raises(ReplyError, match="max number of clients reached"):
            over.reply()
        assert clients_of(idle)["rejected_connections"] == 1


# -- size --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [b"*11\r\n", b"*2\r\n$4\r\nAUTH\r\n$16000\r\n", b"AUTH " + b"x" * 5_000],
    ids=["arguments", "length", "line"],
)
def test_a_large_request_is_refused_before_the_login_alone(text: bytes) -> None:
    with guarded() as server, logged_in(server) as watcher, connected(server, 1) as (client,):
        client.socket.sendall(text)
        with pytest.raises(ReplyError, match=r"Protocol error: .* before the login"):
            client.reply()
        assert closed_by_server(client.socket)
        assert clients_of(watcher)["closed_malformed"] == 1
        words = [str(number) for number in range(100)]
        assert watcher.refused("LOCK", *words) == "ERR"
        assert watcher("ECHO", "x" * 20_000) == "x" * 20_000
        assert watcher("AUTH", PASSWORD) == "OK"


@pytest.mark.parametrize("request_", [encode("PING"), b"\r\n", b"*0\r\n", encode("HELLO", 3)])
def test_a_flood_before_the_login_ends(request_: bytes) -> None:
    with guarded() as server, logged_in(server) as watcher, connected(server, 1) as (client,):
        with contextlib.suppress(OSError):
            for _ in range(100):
                client.socket.sendall(request_ * 1000)
        assert closed_by_server(client.socket)
        wait_until(
            lambda: clients_of(watcher)["closed_requests_before_login"] == 1, "the count of it"
        )
        assert has_empty_buffers(watcher)


def test_a_hundred_refusals_do_not_keep_a_client_out() -> None:
    with guarded() as server, connected(server, 1) as (client,):
        for _ in range(100):
            assert client.refused("CLIENT", "SETINFO", "LIB-NAME", "x") == "NOAUTH"
        assert client("AUTH", PASSWORD) == "OK"
        assert client("PING") == "PONG"


def test_a_login_with_pipelined_requests_is_answered_in_order() -> None:
    with guarded() as server, connected(server, 1) as (client,):
        requests = [encode("ECHO", number) for number in range(500)]
        client.socket.sendall(encode("PING") + encode("AUTH", PASSWORD) + b"".join(requests))
        with pytest.raises(ReplyError, match="NOAUTH"):
            client.reply()
        assert client.reply() == "OK"
        assert [client.reply() for _ in requests] == [str(number) for number in range(500)]


def test_hello_logs_in_and_names_the_connection() -> None:
    with guarded() as server, connected(server, 1) as (client,):
        for words in (("AUTH", "default"), ("SETNAME",), ("AUTH", "default", PASSWORD, "SETNAME")):
            assert client.refused("HELLO", 2, *words) == "ERR", words
        assert client.refused("HELLO", 2, "SETNAME", "me") == "NOAUTH"
        assert client.refused("HELLO", 2, "AUTH", "default", "x") == "WRONGPASS"
        assert client.refused("HELLO", 2, "AUTH", "other", PASSWORD) == "WRONGPASS"
        client("HELLO", 2, "SETNAME", "me" * 1000, "AUTH", "default", PASSWORD)
        assert client("CLIENT", "GETNAME") == ("me" * 1000)[:255]


# -- number ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_a_newcomer_makes_room_for_another_and_a_logged_in_client_does_not(
    model: tuple[str, ...],
) -> None:
    options = ("--clients-max", "6", "--login-timeout-s", "3600", *model)
    with (
        guarded(*options) as server,
        logged_in(server) as first,
        connected(server, 5) as idle,
        contextlib.ExitStack() as stack,
    ):
        others = []
        for left in reversed(range(5)):
            others.append(stack.enter_context(logged_in(server)))
            wait_until(
                lambda: clients_of(first)["clients_before_login"] == left,  # noqa: B023
                "the end of a newcomer",
            )
        for client in idle:
            with pytest.raises(ReplyError, match=r"NOAUTH .*--clients-max"):
                client.reply()
            assert closed_by_server(client.socket)
        with (
            connected(server, 1) as (over,),
            pytest.raises(ReplyError, match="max number of clients reached"),
        ):
            over.reply()
        assert all([it("PING") == "PONG" for it in (first, *others)])
        figures = clients_of(first)
        assert figures["closed_for_newcomers"] == 5
        assert figures["rejected_connections"] == 1


def test_the_oldest_newcomer_makes_room_first() -> None:
    """With one I/O thread; several agree on the order a little later."""
    options = ("--clients-max", "4", "--login-timeout-s", "3600")
    with (
        guarded(*options) as server,
        logged_in(server),
        connected(server, 3) as idle,
        contextlib.ExitStack() as stack,
    ):
        for number, client in enumerate(idle):
            stack.enter_context(logged_in(server))
            with pytest.raises(ReplyError, match=r"NOAUTH .*--clients-max"):
                client.reply()
            assert not any([has_something_to_read(it.socket, 0) for it in idle[number + 1 :]])


def can_log_in(server: Server) -> bool:
    try:
        with logged_in(server) as client:
            return bool(client("PING") == "PONG")
    except (ConnectionError, ReplyError):
        return False


def test_a_storm_of_connections_keeps_nobody_out() -> None:
    with guarded("--clients-max", "8", *PROCESSES) as server, logged_in(server) as first:
        for _ in range(30):
            with connected(server, 20):
                assert first("PING") == "PONG"
                # One that is refused in the middle of the storm comes again.
                wait_until(lambda: can_log_in(server), "a login", of=server)


# -- guesses -----------------------------------------------------------------------------------


def from_address(server: Server, address: str) -> Client:
    """A client that connects from this address of the loopback network."""
    client = Client.__new__(Client)
    source = (address, 0)
    client.socket = socket.create_connection(("127.0.0.1", server.port), DEADLINE_S, source)
    client.reader = client.socket.makefile("rb")
    return client


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_guesses_wait_and_nobody_else_does(model: tuple[str, ...]) -> None:
    at_once, guesses, per_s = 5, 9, 2
    options = ("--wrong-passwords-per-s", str(per_s), "--login-timeout-s", "60")
    with guarded(*options, *model) as server:
        with (
            logged_in(server) as inside,
            contextlib.closing(from_address(server, "127.0.0.1")) as guesser,
            contextlib.closing(from_address(server, "127.0.0.2")) as elsewhere,
        ):
            begin = time.monotonic()
            for number in range(guesses):
                guesser.send("AUTH", f"guess {number}")
            for _ in range(100):
                assert inside("PING") == "PONG", "it is in, behind the same address"
            assert inside("AUTH", PASSWORD) == "OK"
            assert elsewhere("AUTH", PASSWORD) == "OK"
            with logged_in(server) as late:
                assert late("PING") == "PONG", "a guesser leaves attempts for other connections"
            codes = []
            for _ in range(guesses):
                with pytest.raises(ReplyError) as refused:
                    guesser.reply()
                codes.append(refused.value.code)
            waited_s = time.monotonic() - begin
            assert codes == ["WRONGPASS"] * guesses
            assert waited_s > (guesses - at_once) / per_s - 0.1
            assert guesser("AUTH", PASSWORD) == "OK", "it may log in at last"
            assert clients_of(inside)["wrong_passwords"] == guesses
        stderr = server.end()
    assert "sent a wrong password" in stderr


def test_a_waiting_guesser_that_goes_is_forgotten() -> None:
    with guarded("--wrong-passwords-per-s", "1") as server, logged_in(server) as watcher:
        for _ in range(20):
            with connected(server, 1) as (client,):
                client.socket.sendall(encode("AUTH", "x") * 9)
        wait_until(lambda: clients_of(watcher)["clients_before_login"] == 0, "their end")
        wait_until(lambda: has_empty_buffers(watcher), "their buffers' end")


def test_ten_wrong_passwords_end_a_connection() -> None:
    options = ("--wrong-passwords-per-s", "1000")
    with guarded(*options) as server, logged_in(server) as watcher:
        with connected(server, 1) as (guesser,):
            codes = [guesser.refused("AUTH", "guess") for _ in range(10)]
            assert codes == ["WRONGPASS"] * 9 + ["TOOMANYATTEMPTS"]
            assert closed_by_server(guesser.socket)
        figures = clients_of(watcher)
        assert (figures["wrong_passwords"], figures["closed_wrong_passwords"]) == (10, 1)


@pytest.mark.parametrize("bytes_", [1, 1024])
def test_a_password_of_any_allowed_length_lets_in(bytes_: int) -> None:
    password = "p" * bytes_
    with (
        serving("--request-bytes-max", "64", CONCURVE_PASSWORD=password) as server,
        connected(server, 1) as (client,),
    ):
        assert client.refused("AUTH", password + "p") == "WRONGPASS"
        assert client("AUTH", "default", password) == "OK"


def test_a_password_that_is_no_text_is_one() -> None:
    """A variable that is not UTF-8 must not mean that no password is needed."""
    with (
        serving(CONCURVE_PASSWORD=b"\xff\xfe".decode(errors="surrogateescape")) as server,
        connected(server, 1) as (client,),
    ):
        assert client.refused("PING") == "NOAUTH"
        client.socket.sendall(b"*2\r\n$4\r\nAUTH\r\n$2\r\n\xff\xfe\r\n")
        assert client.reply() == "OK"


# -- the buffers of all ------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_the_largest_buffers_go_first(model: tuple[str, ...]) -> None:
    """Half requests: what the server holds is what was sent."""
    options = ("--maxmemory-clients", str(1 << 16), *model)
    with serving(*options) as server, connected(server, 4) as (small, large, late, watcher):
        text = {small: "s" * 30_000, large: "x" * 60_000, late: "l" * 30_000}

        def send(client: Client, begin: int, end: int | None) -> None:
            client.socket.sendall(encode("ECHO", text[client])[begin:end])

        send(small, 0, 20_000)
        send(large, 0, 40_000)
        wait_until(lambda: clients_of(watcher)["buffered_bytes"] >= 60_000, "both")
        send(late, 0, 10_000)
        assert closed_by_server(large.socket)
        for client, sent in ((small, 20_000), (late, 10_000)):
            send(client, sent, None)
            assert client.reply() == text[client]
        wait_until(lambda: has_empty_buffers(watcher), "the end of the requests")
        figures = clients_of(watcher)
        assert figures["closed_for_memory"] == figures["closed_by_limits"] == 1
        stderr = server.end()
    assert "--maxmemory-clients" in stderr


def test_unread_replies_count_too() -> None:
    options = ("--maxmemory-clients", str(1 << 18), "--output-bytes-max", str(1 << 24))
    with serving(*options) as server, connected(server, 2) as (glutton, watcher):
        request = encode("ECHO", "x" * 60_000)
        with contextlib.suppress(OSError):
            # More than the buffers of both kernels take.
            for _ in range(2000):
                glutton.socket.sendall(request)
        wait_until(lambda: clients_of(watcher)["closed_for_memory"] == 1, "its end")
        wait_until(lambda: has_empty_buffers(watcher), "its buffers' end")
