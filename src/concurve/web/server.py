"""The server: a listening socket, and uvicorn behind it."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable, Sequence

import uvicorn

from concurve.errors import ConcurveError, HostError
from concurve.web.app import app_of
from concurve.web.connections import BACKLOG, bound_reading, connections_of, tell_seldom
from concurve.web.security import HEAD_BYTES_MAX, new_access
from concurve.web.site import Site

#: So long connections that are still open are waited for at the end.
END_SECONDS = 1

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class PlaceError(ConcurveError):
    """An address that cannot be listened to as asked."""

    exit_code = 2


class _Server(uvicorn.Server):
    """Ends the streams of browsers before it waits for its connections."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in order."""
        self._site.end()
        logging.getLogger("uvicorn.error").addFilter(_is_no_cut)
        await super().shutdown(sockets)


def _is_no_cut(record: logging.LogRecord) -> bool:
    """uvicorn tells as an error that answers are cut off after :data:`END_SECONDS`, as is meant."""
    return "graceful shutdown exceeded" not in record.getMessage()


def names_of(bind: str, others: Sequence[str]) -> tuple[str, ...]:
    """The names by which browsers may ask for a server that listens to an address, first the one
    that is printed: at another one somebody else may listen.

    Raises:
        PlaceError: it is no address, or it is reached from elsewhere and no name is given.
    """
    try:
        address = ipaddress.ip_address(bind)
    except ValueError as error:
        raise PlaceError(
            f"--bind {bind!r} is no address", "127.0.0.1, which is the default, or an address"
        ) from error
    first = f"[{address.compressed}]" if address.version == 6 else address.compressed
    if address.is_loopback:
        return (*dict.fromkeys((first, *_LOOPBACK_NAMES)), *others)
    if address.is_unspecified and not others:
        raise PlaceError(
            f"--bind {bind} listens to all addresses: by which names will browsers ask?",
            f"--bind {bind} --host {socket.gethostname()}",
        )
    own = () if address.is_unspecified else (first,)
    return (*own, *others)


def listen(bind: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        HostError: the port is in use, or may not be listened to.
    """
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((bind, port))
        bound_reading(listening)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise HostError(
            f"port {port} of {bind} cannot be listened to: {error.strerror}",
            "--port 0 for a free one, or another --bind",
        ) from error
    return listening


def config_of(site: Site) -> uvicorn.Config:
    """How uvicorn serves a site."""
    return uvicorn.Config(
        app_of(site),
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http=connections_of(site.access),
        backlog=BACKLOG,
        loop="asyncio",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=END_SECONDS,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
    )


def serve(
    db: str | None, listening: socket.socket, names: Sequence[str], tell: Callable[[str], None]
) -> list[str]:
    """Answer browsers until a signal ends it; ``tell`` gets the address with the token. What is
    measured still, as its command lines."""
    port = listening.getsockname()[1]
    access = new_access(names, port)
    site = Site(db, access)
    config = config_of(site)
    tell_seldom()
    tell(f"http://{names[0]}:{port}/#token={access.token}")
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal that ended it again
        _Server(config, site).run(sockets=[listening])
    return [item.run or item.line for item in site.measurements.under_way()]
