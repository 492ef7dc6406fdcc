"""A server with a pool of connections to a slow database: ``server.py PORT CONNECTIONS``.

Each line that a client sends is answered after a query of 10 ms, for which a connection is needed.
"""

from __future__ import annotations

import socketserver
import sys
import threading
import time

QUERY_SECONDS = 0.01


class Session(socketserver.StreamRequestHandler):
    """Answers the lines of one client."""

    def handle(self) -> None:
        """Wait for a connection, ask the database, answer."""
        for _ in self.rfile:
            with pool:
                time.sleep(QUERY_SECONDS)
            self.wfile.write(b"done\n")


class Server(socketserver.ThreadingTCPServer):
    """A thread for each client; none keeps the server from its end."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


if __name__ == "__main__":
    pool = threading.BoundedSemaphore(int(sys.argv[2]))
    with Server(("127.0.0.1", int(sys.argv[1])), Session) as server:
        server.serve_forever()
