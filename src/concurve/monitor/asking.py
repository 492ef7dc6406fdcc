"""Reads a running server over one connection, which ends when the server is restarted."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from concurve.errors import ConcurveError
from concurve.monitor.reading import NotOurServerError, Reading, parse

_CONNECT_SECONDS = 10.0

#: Seconds to wait for a whole answer; on an overloaded machine it may come late.
_PATIENCE_SECONDS = 60.0

#: The greatest length of an answer in bytes.
_ANSWER_BYTES_MAX = 1 << 24

_READ_BYTES = 1 << 16

#: The same of its first line.
_LINE_BYTES_MAX = 1 << 16

#: A port, and the length of an answer.
_PORT = re.compile(r"[0-9]{1,5}")
_LENGTH = re.compile(rb"[0-9]{1,9}")


class UnreachableError(ConcurveError):
    """No server answers at the address, or it no longer answers."""


class PlaceError(ConcurveError):
    """A text that is no address of a server."""

    exit_code = 2


def address_of(text: str) -> tuple[str, int]:
    """``HOST:PORT``, or ``:PORT`` or a port alone for this host.

    Raises:
        PlaceError: it is something else.
    """
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = "", text
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise PlaceError(f"{text!r} is no HOST:PORT", "127.0.0.1:7379, or :7379 for this host")
    return host.strip("[]") or "127.0.0.1", int(port)


class Watched:
    """A connection to a monitored server."""

    def __init__(self, link: socket.socket, place: str) -> None:
        self._link = link
        self._read = bytearray()
        self.place = place

    @property
    def is_near(self) -> bool:
        """Does it run on this machine? A connection to another one has another address here."""
        try:
            return bool(self._link.getpeername()[0] == self._link.getsockname()[0])
        except OSError:  # it has ended
            return False

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
        bulks = (word.encode(errors="surrogateescape") for word in words)
        request = b"".join(b"$%d\r\n%s\r\n" % (len(bulk), bulk) for bulk in bulks)
        until = time.monotonic() + _PATIENCE_SECONDS
        try:
            self._link.settimeout(_PATIENCE_SECONDS)
            self._link.sendall(b"*%d\r\n" % len(words) + request)
            return self._answer(until)
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

    def _answer(self, until: float) -> str:
        line = self._line(until)
        if line.startswith(b"-"):
            raise UnreachableError(
                f"{self.place} refused: {line[1:400].decode(errors='replace').strip()}",
                "--password-from VARIABLE names the environment variable with its password",
            )
        if line.startswith(b"+"):
            return line[1:].decode(errors="replace").strip()
        if not line.startswith(b"$") or not _LENGTH.fullmatch(line[1:].strip()):
            raise self._foreign(line)
        whole = self._taken(min(int(line[1:]), _ANSWER_BYTES_MAX) + 2, until)
        return whole.decode(errors="replace")

    def _foreign(self, line: bytes) -> NotOurServerError:
        return NotOurServerError(
            f"{self.place} is no concurve-server: it answered {line[:20]!r}",
            "the port that concurve-server printed at its start",
        )

    def _line(self, until: float) -> bytes:
        while (end := self._read.find(b"\n")) < 0:
            if len(self._read) > _LINE_BYTES_MAX:
                raise self._foreign(bytes(self._read))
            self._receive(until)
        return self._taken(end + 1, until)

    def _taken(self, count: int, until: float) -> bytes:
        while len(self._read) < count:
            self._receive(until)
        taken = bytes(self._read[:count])
        del self._read[:count]
        return taken

    def _receive(self, until: float) -> None:
        left = until - time.monotonic()
        if left <= 0:  # however many bytes come, the answer is late
            raise TimeoutError
        self._link.settimeout(left)
        part = self._link.recv(_READ_BYTES)
        if not part:
            raise ConnectionResetError
        self._read += part


@contextmanager
def watching(host: str, port: int) -> Iterator[Watched]:
    """A connection to a server, closed at the end.

    Raises:
        UnreachableError: no server answers there.
    """
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        link = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:  # a name that DNS cannot have is a ValueError
        why = getattr(error, "strerror", None) or str(error)
        raise UnreachableError(
            f"no server answers at {place}: {why}",
            "check that the server runs on this port; concurve-server prints its port at its start",
        ) from None
    with link:
        yield Watched(link, place)
