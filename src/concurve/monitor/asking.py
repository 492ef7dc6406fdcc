"""Reads a running server over one connection, which ends when the server is restarted."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from concurve.errors import ConcurveError
from concurve.monitor.reading import NotOurServerError, Reading, parse

_CONNECT_SECONDS = 10.0

#: Seconds to wait for an answer; on an overloaded machine it may come late.
_PATIENCE_SECONDS = 60.0

#: The greatest length of an answer in bytes.
_ANSWER_BYTES_MAX = 1 << 24


class UnreachableError(ConcurveError):
    """No server answers at the address, or it no longer answers."""


class Watched:
    """A connection to a monitored server."""

    def __init__(self, link: socket.socket, replies: BinaryIO, place: str) -> None:
        self._link = link
        self._replies = replies
        self.place = place

    def log_in(self, password: str) -> None:
        """Send the password.

        Raises:
            UnreachableError: it is wrong, or the connection is lost.
        """
        self._ask("AUTH", password)

    def read(self) -> Reading:
        """All counters now.

        Raises:
            UnreachableError: the connection is lost, or a password is needed.
            NotOurServerError: the program that answers is no reference server.
        """
        return parse(self._ask("INFO"), self.place)

    def _ask(self, *words: str) -> str:
        bulks = (word.encode() for word in words)
        request = b"".join(b"$%d\r\n%s\r\n" % (len(bulk), bulk) for bulk in bulks)
        try:
            self._link.sendall(b"*%d\r\n" % len(words) + request)
            return self._answer()
        except TimeoutError:
            raise UnreachableError(
                f"{self.place} did not answer for {_PATIENCE_SECONDS:.0f} s",
                "is it the right port? A server that hangs shows in concurve machine check or top",
            ) from None
        except OSError:
            raise UnreachableError(
                f"{self.place}: the connection was lost: the server has ended or was restarted",
                "monitor it again once it is up; its log says why it ended",
            ) from None

    def _answer(self) -> str:
        line = self._replies.readline(_ANSWER_BYTES_MAX)
        if not line:
            raise ConnectionResetError
        if line.startswith(b"-"):
            raise UnreachableError(
                f"{self.place} refused: {line[1:].decode(errors='replace').strip()}",
                "--password-from VARIABLE names the environment variable with its password",
            )
        if line.startswith(b"+"):
            return line[1:].decode(errors="replace").strip()
        if not line.startswith(b"$") or not line[1:].strip().isdigit():
            raise NotOurServerError(
                f"{self.place} is no concurve-server: it answered {line[:20]!r}",
                "the port that concurve-server printed at its start",
            )
        length = int(line[1:])
        return self._replies.read(min(length, _ANSWER_BYTES_MAX) + 2).decode(errors="replace")


@contextmanager
def watching(host: str, port: int) -> Iterator[Watched]:
    """A connection to a server, closed at the end.

    Raises:
        UnreachableError: no server answers there.
    """
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        link = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreachableError(
            f"no server answers at {place}: {why}",
            "check that the server runs on this port; concurve-server prints its port at its start",
        ) from None
    link.settimeout(_PATIENCE_SECONDS)
    with link, link.makefile("rb") as replies:
        yield Watched(link, replies, place)
