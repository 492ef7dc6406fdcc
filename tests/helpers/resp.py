"""The reference server as the tests start it, and a small client that can send it anything."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from concurve.errors import HostError
from concurve.host import native

#: Long enough for any loaded machine; nothing here takes a second on an idle one.
DEADLINE_S = 60.0

Reply = Any


def missing() -> str | None:
    """Why the server cannot be started here, or ``None``."""
    try:
        native.binary("concurve-server")
    except HostError as error:
        return str(error)
    return None


class ReplyError(Exception):
    """An error reply; ``code`` is its first word."""

    @property
    def code(self) -> str:
        return str(self).split(" ", maxsplit=1)[0]


class Client:
    """A connection that speaks RESP2."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), timeout=DEADLINE_S)
        self.reader = self.socket.makefile("rb")

    def __call__(self, *words: str | int) -> Reply:
        """Send a command and read its reply.

        Raises:
            ReplyError: the reply is an error.
        """
        self.send(*words)
        return self.reply()

    def send(self, *words: str | int) -> None:
        self.socket.sendall(encode(*words))

    def reply(self) -> Reply:
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("the server closed the connection")
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            raise ReplyError(text.decode())
        if kind == b"+":
            return text.decode()
        if kind == b":":
            return int(text)
        if kind == b"$":
            return self.bulk(int(text))
        assert kind == b"*", line
        return [self.reply() for _ in range(int(text))]

    def bulk(self, size: int) -> str | None:
        if size < 0:
            return None
        found = self.reader.read(size + 2)
        if len(found) < size + 2:
            raise ConnectionResetError("the server closed the connection amid a reply")
        return found[:-2].decode()

    def refused(self, *words: str | int) -> str:
        """The code of the error that a command ends with."""
        try:
            reply = self(*words)
        except ReplyError as error:
            return error.code
        raise AssertionError(f"{words} was answered {reply!r}")

    def table(self, *words: str | int) -> dict[str, Reply]:
        """The reply to a command that answers names and values."""
        flat = self(*words)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def locks(self, *filters: str | int) -> list[dict[str, Reply]]:
        """All pages of LOCKS."""
        found, cursor = [], "0"
        while True:
            cursor, page = self("LOCKS", "CURSOR", cursor, "COUNT", 1000, *filters)
            found += [dict(zip(row[::2], row[1::2], strict=True)) for row in page]
            if cursor == "0":
                return found

    def close(self) -> None:
        self.reader.close()
        self.socket.close()


def encode(*words: str | int) -> bytes:
    parts = [str(word).encode() for word in words]
    bulks = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"*%d\r\n" % len(parts) + bulks


class Server:
    """A running server; ``lines`` are those of its report channel, once it has stopped."""

    def __init__(self, *options: str, **environment: str) -> None:
        reads, writes = os.pipe()
        self.reports = os.fdopen(reads, "rb")
        self.process = subprocess.Popen(
            [str(native.binary("concurve-server")), "--port", "0", *options],
            env={**os.environ, "CONCURVE_REPORT": str(writes), **environment},
            pass_fds=[writes],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        os.close(writes)
        self.lines: list[dict[str, Any]] = []
        self._said: str | None = None
        self.readiness = threading.Event()
        self.follower = threading.Thread(target=self.follow)
        self.follower.start()

    def follow(self) -> None:
        for line in self.reports:
            self.lines.append(json.loads(line))
            if "ready" in self.lines[-1]:
                self.readiness.set()
        self.readiness.set()

    def wait_until_ready(self) -> None:
        assert self.readiness.wait(DEADLINE_S)
        if {"ready": True} not in self.lines:
            raise AssertionError(self.end(signal.SIGKILL))

    @property
    def port(self) -> int:
        return int(self.facts()["port"])

    def facts(self) -> dict[str, Any]:
        return {line["fact"]: line["value"] for line in self.lines if "fact" in line}

    def indicators(self) -> dict[tuple[str, str | None], float]:
        found = [line for line in self.lines if "indicator" in line]
        return {(line["indicator"], line.get("worker")): line["value"] for line in found}

    def processes(self) -> list[int]:
        """The one that was started, that of a generation, and the engines, if they are some."""
        found = [self.process.pid]
        for parent in found:
            found += children(parent)
        return found

    def engines(self) -> list[int]:
        """Engines that are processes and live."""
        return self.processes()[2:]

    def end(self, by: signal.Signals = signal.SIGTERM) -> str:
        """Stop it; what it wrote to standard error."""
        if self._said is not None:
            return self._said
        if self.process.poll() is None:
            self.process.send_signal(by)
        _, stderr = self.process.communicate(timeout=DEADLINE_S)
        self.follower.join(DEADLINE_S)
        if not self.reports.closed:
            self.reports.close()
        self._said = stderr.decode()
        return self._said

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        return self.process.poll()

    def communicate(self) -> tuple[str, str]:
        """As :meth:`end`, for who waits for something of it."""
        return "", self.end()


def children(parent: int) -> list[int]:
    """Processes that a process has forked; none, if it has ended."""
    found: list[int] = []
    for thread in Path(f"/proc/{parent}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in thread.read_text().split()]
    return found


@contextmanager
def serving(*options: str, **environment: str) -> Iterator[Server]:
    """A server that is ready, and stopped at the end."""
    server = Server(*options, **environment)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.end()


def closed_by_server(connection: socket.socket) -> bool:
    """Whether the server ends a connection before the deadline, whatever it says before."""
    connection.settimeout(DEADLINE_S)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def has_something_to_read(connection: socket.socket, seconds: float) -> bool:
    return bool(select.select([connection], [], [], seconds)[0])
