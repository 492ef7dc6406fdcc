"""Connections of browsers, as far as uvicorn does not bound them.

A request has to come within some time, however many bytes of it come, and a connection on which no
session was seen makes room for the next one when there are too many: who has no token keeps nobody
out (decision 63). What goes wrong with a connection is told seldom, so that nobody fills a log.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import time
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from concurve.web.security import Access, asked_of

#: So long a whole request may take to come: from the connection, or from the answer before it.
REQUEST_SECONDS = 20.0

#: So long an answer may wait for its reader to take more of it.
UNREAD_SECONDS = 60

#: So many connections are open at once; a browser opens six.
CONNECTIONS_MAX = 1000

#: So many connections are accepted before anything else is done.
BACKLOG = 64

#: Descriptors for all but connections: stores, processes that are started, and what is accepted
#: before others were closed.
_OTHER_DESCRIPTORS = 3 * BACKLOG

#: An error is told at most so often.
_TELL_SECONDS = 10.0


def most_connections() -> int:
    """As many connections as the limit of descriptors leaves room for. The limit stays as it is:
    measured programs inherit it."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(BACKLOG, min(CONNECTIONS_MAX, limit - _OTHER_DESCRIPTORS))


def bound_reading(listening: socket.socket) -> None:
    """Close connections whose other end reads nothing of an answer; those that are accepted inherit
    it."""
    milliseconds = UNREAD_SECONDS * 1000
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


class BoundedConnection(H11Protocol):
    """A connection with these bounds. Of each server there is a subclass with its access."""

    access: ClassVar[Access]
    most: ClassVar[int] = CONNECTIONS_MAX

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._late: asyncio.TimerHandle | None = None
        self.has_session = False
        self.since = time.monotonic()

    def connection_made(  # type: ignore[override]
        self, transport: asyncio.Transport
    ) -> None:
        """Wait for a request, if there is room."""
        super().connection_made(transport)
        self._expect()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._expect_no_more()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Take what has come; a whole request is waited for no longer."""
        super().handle_events()
        if self.scope is not None and not self.has_session:
            self.has_session = self.access.is_session(asked_of(dict(self.scope)).cookies)
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and not self.cycle.more_body:
            self._expect_no_more()
        else:
            self._expect()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was refused."""
        super().on_response_complete()
        if self.cycle is None or self.cycle.response_complete:
            self._expect()

    def shutdown(self) -> None:
        """The server ends: answer what was asked, and wait for no rest of a request."""
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.transport.abort()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request; behind one that is being answered, just end."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
        else:
            super().send_400_response(msg)

    def _expect(self) -> None:
        if self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _expect_no_more(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _make_room(self) -> None:
        """End the oldest connection without a session, if there are too many."""
        there = [
            it
            for it in self.connections
            if isinstance(it, BoundedConnection) and not it.transport.is_closing()
        ]
        if len(there) > self.most:
            newcomers = (it for it in there if not it.has_session)
            min(newcomers, key=lambda it: it.since, default=self).transport.abort()


def connections_of(of: Access) -> type[BoundedConnection]:
    """The connections of a server."""

    class Connection(BoundedConnection):
        """A connection of this server."""

        access = of
        most = most_connections()

    return Connection


class Seldom(logging.Filter):
    """Passes a record only if none passed for some seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Is it told?"""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _TELL_SECONDS
        return True


def tell_seldom() -> None:
    """Bound what connections may have told on standard error."""
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(Seldom())
