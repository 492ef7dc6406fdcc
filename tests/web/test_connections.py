"""Connections to a real server, of browsers and of whoever has no token."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from concurve.store import Store
from concurve.web import aside, connections
from concurve.web.connections import (
    BACKLOG,
    CONNECTIONS_MAX,
    UNREAD_SECONDS,
    BoundedConnection,
    Seldom,
    most_connections,
)
from concurve.web.quiet import Quiet
from concurve.web.security import HEAD_BYTES_MAX, new_access
from concurve.web.server import config_of, listen
from concurve.web.site import Site
from tests.helpers.real import wait_until

#: Whatever is sure to come comes within this time.
PATIENCE = 120

ROOM = 8


class Running:
    """A server in a thread, with room for few connections; what it tells on standard error."""

    def __init__(self, db: Path) -> None:
        listening = listen("127.0.0.1", 0)
        self.port = listening.getsockname()[1]
        self.access = new_access(("127.0.0.1",), self.port)
        quiet = Quiet(lambda run: None, look=lambda: "", move=lambda cpus: None)
        config = config_of(Site(str(db), self.access, quiet))
        config.http.most = ROOM  # type: ignore[union-attr]
        config.timeout_keep_alive = PATIENCE
        self.server = uvicorn.Server(config)
        self.told: list[str] = []
        self._thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [listening]}, daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        self.server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def head(self, line: str, **headers: str) -> bytes:
        """The head of a request, with our host and origin."""
        own = f"127.0.0.1:{self.port}"
        given = {"host": own, "origin": f"http://{own}", **headers}
        lines = [line, *(f"{name.replace('_', '-')}: {value}" for name, value in given.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def browser(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, link: http.client.HTTPConnection, path: str = "/static/web.css") -> int:
        cookie = f"{self.access.cookie}={self.access.session}"
        link.request("GET", path, headers={"cookie": cookie, "accept": "application/json"})
        answer = link.getresponse()
        answer.read()
        return answer.status


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Running]:
    Store(str(tmp_path / "web.db")).close()
    found = Running(tmp_path / "web.db")

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.told.append(self.format(record))

    handler = Listening(logging.ERROR)
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    try:
        yield found
    finally:
        found.end()
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).removeHandler(handler)


def rest(link: socket.socket) -> bytes:
    """All that comes until the other end closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := link.recv(65536):
            found += part
    return found


def drip(link: socket.socket, until: float = PATIENCE) -> None:
    """Send byte by byte until the connection is closed."""
    end = time.monotonic() + until
    with contextlib.suppress(OSError):
        while time.monotonic() < end:
            link.sendall(b"x")
            time.sleep(0.02)
        pytest.fail("the connection was not closed")


def test_a_request_has_to_come_in_time_however_many_bytes_of_it_do(
    served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    with served.connect() as silent:
        assert rest(silent) == b""
    with served.connect() as slow:
        slow.sendall(b"GET /")
        drip(slow)
    with served.connect() as refused:  # its body is read by nobody
        refused.sendall(served.head("POST /login HTTP/1.1", host="evil", content_length="60000"))
        drip(refused)
    monkeypatch.setattr(connections, "REQUEST_SECONDS", PATIENCE)
    with served.connect() as again:
        again.sendall(served.head("GET /report.css HTTP/1.1", connection="close"))
        assert rest(again).startswith(b"HTTP/1.1 200 ")


def test_connections_without_a_session_make_room(served: Running) -> None:
    first = served.browser()
    assert served.ask(first) == 200
    silent = [served.connect() for _ in range(5 * ROOM)]
    assert served.ask(served.browser()) == 200
    assert served.ask(first) == 200, "one with a session stays"
    left = []
    for link in silent:
        link.setblocking(False)
        try:
            assert link.recv(10) == b""
        except BlockingIOError:
            left.append(link)
        except ConnectionResetError:
            pass
    assert len(left) <= ROOM
    for link in silent:
        link.close()


def test_the_server_goes_on_whatever_a_stranger_sends(served: Running) -> None:
    """And it tells nothing of it: standard error could be filled."""
    login = served.head("POST /login HTTP/1.1", transfer_encoding="chunked")
    long = served.head("POST /login HTTP/1.1", content_length="100")
    for sent in (
        b"\0" * 1000,
        b"x" * 200_000,
        login + b"5\r\nabcde\r\nno chunk",
        login + b"ffffffffffffffffffff\r\n",
        long + b"half",
        long[:-10],
        served.head("GET /login HTTP/1.1") * 200,
        served.head("GET / HTTP/1.1", upgrade="websocket", connection="upgrade"),
        served.head("GET / HTTP/9.9"),
        served.head("GET / HTTP/1.1", content_length="1, 2"),
    ):
        for half in (True, False):
            with served.connect() as link, contextlib.suppress(OSError):
                link.sendall(sent)
                if half:
                    link.shutdown(socket.SHUT_WR)
                    rest(link)
    assert served.ask(served.browser()) == 200
    assert served.told == []


def test_a_head_in_one_piece_is_bounded_too(served: Running) -> None:
    """A cookie of quotes and backslashes took minutes, and nobody else was answered."""
    cookie = f'{served.access.cookie}="' + "\\" * 150_000 + '"'
    for headers in ({"cookie": cookie}, {"x": "y" * 2 * HEAD_BYTES_MAX}):
        with served.connect() as link:
            with contextlib.suppress(OSError):  # it may be refused before all was sent
                link.sendall(served.head("GET /runs HTTP/1.1", connection="close", **headers))
            answer = rest(link)
        assert not answer or answer.split()[1] in (b"400", b"431")
    assert served.ask(served.browser()) == 200


def test_a_store_that_does_not_answer_keeps_nothing_else_waiting(
    served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_answer = threading.Event()

    def existing(url: str) -> Any:
        may_answer.wait(PATIENCE)
        return opened(url)

    opened = Store.existing
    monkeypatch.setattr(Store, "existing", existing)
    monkeypatch.setattr(aside, "PATIENCE_SECONDS", 0.5)
    answers: list[int] = []

    def ask() -> None:
        answers.append(served.ask(served.browser(), "/runs"))

    try:
        waiting = [threading.Thread(target=ask) for _ in range(7)]
        for thread in waiting:
            thread.start()
        assert served.ask(served.browser(), "/servers") == 200
        for thread in waiting:
            thread.join(PATIENCE)
        assert answers == [503] * 7
    finally:
        may_answer.set()
    wait_until(lambda: served.ask(served.browser(), "/runs") == 200, "the store")


def test_so_many_wait_at_once_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    free = threading.BoundedSemaphore(2)
    monkeypatch.setattr(aside, "_free", free)
    monkeypatch.setattr(aside, "PATIENCE_SECONDS", 0.05)

    async def third() -> None:
        for _ in range(2):
            with pytest.raises(aside.LateError, match="the store did not answer"):
                await aside.in_time("the store", may_end.wait)
        with pytest.raises(aside.LateError, match="wait already"):
            await aside.in_time("the store", may_end.wait)
        may_end.set()

    asyncio.run(third())
    wait_until(lambda: free.acquire(blocking=False), "the end of one that waited")
    free.release()
    monkeypatch.setattr(aside, "PATIENCE_SECONDS", 600.0)
    assert asyncio.run(aside.in_time("the store", divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(aside.in_time("the store", divmod, 7, 0))


def test_a_reader_that_reads_nothing_is_not_waited_for_for_ever() -> None:
    """The kernel gives it up: an accepted connection has the bound of the one that listens."""
    with (
        listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        found = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert found == UNREAD_SECONDS * 1000


@pytest.mark.parametrize(
    ("limit", "most"),
    [(resource.RLIM_INFINITY, CONNECTIONS_MAX), (1 << 20, CONNECTIONS_MAX),
     (1024, 1024 - 3 * BACKLOG), (64, BACKLOG)],
)  # fmt: skip
def test_connections_leave_descriptors_for_the_rest(
    limit: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert most_connections() == most


def test_an_error_is_told_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    seldom, record = Seldom(), logging.makeLogRecord({})
    assert [seldom.filter(record) for _ in range(3)] == [True, False, False]
    monkeypatch.setattr(connections, "_TELL_SECONDS", 0.0)
    assert [Seldom().filter(record) for _ in range(3)] == [True] * 3


def test_each_server_has_connections_of_its_own() -> None:
    made = [connections.connections_of(new_access(("127.0.0.1",), port)) for port in (1, 2)]
    assert made[0].access != made[1].access
    assert all(issubclass(kind, BoundedConnection) for kind in made)


def test_the_login_gives_a_session_and_a_key(served: Running) -> None:
    link = served.browser()
    own = f"http://127.0.0.1:{served.port}"
    body = json.dumps({"token": served.access.token})
    link.request("POST", "/login", body, {"origin": own})
    answer = link.getresponse()
    assert answer.status == 200
    assert json.loads(answer.read()) == {"key": served.access.key}
    assert served.access.session in str(answer.getheader("set-cookie"))
