"""Free ports of loopback for the servers of a trial."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A TCP port of 127.0.0.1 on which no process listens now. Another process may take it before
    the server does; then the trial fails and is redone with another port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
