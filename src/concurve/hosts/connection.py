"""A connection to the agent of a host: the seam between the engine and what carries messages."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import Any, Protocol

from concurve.engine import TrialLostError
from concurve.errors import ConcurveError, RunError, error_of
from concurve.hosts.messages import Clock, Done, Failed, Request, answer_of, packed, receive
from concurve.secrets import KNOWN

#: Seconds for an answer that takes no time. A host of which nothing is heard for so long is lost:
#: the lease of its agent has ended by then.
QUICK_SECONDS = 4.0

#: Seconds that an agent may take to answer: it looks for programs, and asks the runner.
ANSWER_SECONDS = 30.0


class HostLostError(TrialLostError):
    """A host, or the way to it, is gone. What was measured is stored, and the trial that ran is
    marked as lost."""


class NamedHostLostError(HostLostError):
    """A loss whose host is named already: not always the one that was asked for something."""


class Connection(Protocol):
    """Carries requests to the agent of a host. One request at a time; several connections to a host
    serve several threads."""

    def exchange(self, body: bytes, seconds: float) -> bytes:
        """Send a packed request, and give the body of its answer.

        Raises:
            HostLostError: no answer came within ``seconds``, or the way is gone.
        """
        ...

    def clock(self) -> int:
        """The monotonic clock of the host, by the shortest way, in ns.

        Raises:
            HostLostError: as of :meth:`exchange`.
        """
        ...

    def another(self) -> Connection:
        """A further connection to the same agent."""
        ...

    def interrupt(self) -> None:
        """Have a request that waits for its answer fail soon; called in another thread. The
        connection is of no use afterwards."""
        ...

    def close(self) -> None:
        """Give it back; nothing is said to the agent."""
        ...


def ask(
    connection: Connection, host: str, request: Request, seconds: float = ANSWER_SECONDS
) -> Any:
    """The value of the answer to a request.

    Raises:
        HostLostError: there is no answer.
        ConcurveError: the agent could not do it; the error names the host.
    """
    try:
        answer = answer_of(connection.exchange(packed(request), seconds))
    except HostLostError as error:
        raise lost(host, error) from error
    except ValueError as error:
        raise NamedHostLostError(
            f"host {host} does not answer as this version does: {error}",
            f"concurve of one version on all hosts; concurve hosts down, then up, for {host}",
        ) from error
    if isinstance(answer, Failed):
        raise _error_of(answer, host)
    return answer.value if isinstance(answer, Done) else None


def lost(host: str, error: HostLostError) -> HostLostError:
    """The loss of a connection as that of its host, with what to try."""
    if isinstance(error, NamedHostLostError):
        return error
    return NamedHostLostError(
        f"host {host} was lost: {error.what}",
        "once it is back, concurve hosts down FILE, then up; then concurve resume last",
    )


def _error_of(failed: Failed, host: str) -> ConcurveError:
    """The error of an agent, of the same kind here."""
    what, remedy = KNOWN.hide(failed.what), KNOWN.hide(failed.remedy)
    return error_of(failed.error, f"host {host}: {what}", remedy, RunError)


class SocketConnection:
    """A connection through the socket of an agent, on the same machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream: socket.socket | None = None

    def exchange(self, body: bytes, seconds: float) -> bytes:
        """See :meth:`Connection.exchange`."""
        try:
            stream = self._connected()
            stream.settimeout(seconds)
            stream.sendall(body)
            return receive(stream)
        except (OSError, EOFError, ValueError) as error:
            self.close()
            reason = f"no answer within {seconds:g} s" if isinstance(error, TimeoutError) else error
            raise HostLostError(f"its agent is gone: {reason}") from error

    def clock(self) -> int:
        """See :meth:`Connection.clock`."""
        answer = answer_of(self.exchange(packed(Clock()), QUICK_SECONDS))
        assert isinstance(answer, Done)
        return int(answer.value)

    def another(self) -> SocketConnection:
        """See :meth:`Connection.another`."""
        return SocketConnection(self._path)

    def interrupt(self) -> None:
        """See :meth:`Connection.interrupt`."""
        stream = self._stream
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """See :meth:`Connection.close`."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.close()
            self._stream = None

    def _connected(self) -> socket.socket:
        if self._stream is None:
            stream = socket.socket(socket.AF_UNIX)
            stream.connect(str(self._path))
            self._stream = stream
        return self._stream
