"""Does what Ray listens with still answer? It speaks HTTP/2, so whoever begins a connection is told
its settings at once. That a connection is accepted says nothing: the kernel does it for a process
that is stopped."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

#: Seconds between two looks.
LOOK_SECONDS = 0.5

#: So many late answers, one after the other, are a loss: one is a busy network's. So Ray asks its
#: own hosts. Together they take less than a host may be silent: to leave Ray takes longer then.
LATE_MAX = 3
ANSWER_SECONDS = 1.1

#: How a connection of HTTP/2 begins (RFC 9113): the preface, and settings, of which there are none.
_BEGIN = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))

#: The kind of a frame is in its fourth byte; the first frame of a server is that of its settings.
_KIND, _SETTINGS = 3, 4

#: The first byte of a record of TLS, which may only say that it expected one too.
_TLS = (0x15, 0x16)

#: The network has no way to the address: it may have one again.
_NO_WAY = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)


class Answer(NamedTuple):
    """Our own address on the way to where something answers, and the first that it says; nothing if
    it ends the connection, as what expects TLS does."""

    own_address: str
    said: bytes

    @property
    def is_of_ray(self) -> bool:
        """Can it be one of Ray's?"""
        said = self.said
        return not said or said[0] in _TLS or (len(said) > _KIND and said[_KIND] == _SETTINGS)


class SilentError(TimeoutError):
    """Something accepts connections and says nothing."""


def answer_at(address: str, seconds: float) -> Answer:
    """What is answered at an address.

    Raises:
        SilentError: a connection is accepted, and nothing is said within ``seconds``.
        OSError: there is no connection.
    """
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), seconds) as stream:
        own = str(stream.getsockname()[0])
        try:
            stream.sendall(_BEGIN)
            return Answer(own, stream.recv(64))
        except TimeoutError:
            raise SilentError(
                f"it accepts connections, and says nothing within {seconds:g} s"
            ) from None
        except OSError:  # it has ended the connection
            return Answer(own, b"")


def gone(address: str, seconds: float = ANSWER_SECONDS) -> tuple[str, bool]:
    """Why nothing answers at an address, and whether that is sure; empty if something does, or if
    we cannot tell."""
    try:
        answer_at(address, seconds)
    except TimeoutError as error:
        return error.strerror or str(error), False
    except ConnectionError as error:
        return error.strerror or str(error), True
    except OSError as error:
        return (error.strerror or str(error), False) if error.errno in _NO_WAY else ("", False)
    return "", False


@contextlib.contextmanager
def watched(
    address: str,
    tell: Callable[[str], None],
    seconds: float = LOOK_SECONDS,
    answer_seconds: float = ANSWER_SECONDS,
) -> Iterator[None]:
    """Have it told, once, why nothing answers at an address any more."""
    ends = threading.Event()

    def watch() -> None:
        late, silent_since, pause = 0, 0.0, seconds
        while not ends.wait(pause):
            begin = time.monotonic()
            reason, is_sure = gone(address, answer_seconds)
            if not reason:
                late, pause = 0, seconds
                continue
            late, silent_since = late + 1, silent_since if late else begin
            now = time.monotonic()
            is_long = late >= LATE_MAX and now - silent_since >= LATE_MAX * answer_seconds
            if is_sure or is_long:
                tell(reason)
                return
            # What is refused at once is looked at no more often than what is late.
            pause = max(0.0, answer_seconds - (now - begin))

    thread = threading.Thread(target=watch, name=f"concurve-watch-{address}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
