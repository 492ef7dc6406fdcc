"""Ports of servers on loopback."""

from __future__ import annotations

import socket
import time


def free_port() -> int:
    """A port that no process listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, seconds: float = 30) -> None:
    """Wait until a process listens on the port.

    Raises:
        SystemExit: no process did.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"nothing listens on port {port} after {seconds} s")
