"""A server that answers at once, and a client that takes its time between requests.

echo.py serve SOCKET                      a thread a connection, until SIGTERM
echo.py ask SOCKET CLIENTS SECONDS THINK  CLIENTS connections, THINK seconds between requests
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path


def main() -> None:
    """Be the one or the other."""
    role, path, *rest = sys.argv[1:]
    if role == "serve":
        serve(path)
    else:
        ask(path, int(rest[0]), float(rest[1]), float(rest[2]))


def serve(path: str) -> None:
    """Accept and answer until stopped."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Path(path).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        report('{"ready":true}')
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    """One connection to its end."""
    with connection:
        while request := connection.recv(64):
            connection.sendall(request)


def ask(path: str, clients: int, seconds: float, think: float) -> None:
    """All clients for a while; then report their operations."""
    done = [0] * clients

    def client(number: int) -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                connection.sendall(b"x" * 64)
                connection.recv(64)
                done[number] += 1
                time.sleep(think)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(f'{{"indicator":"operations","value":{sum(done)}}}')


def report(line: str) -> None:
    """A line to the runner, if there is one."""
    channel = os.environ.get("CONCURVE_REPORT")
    if channel:
        os.write(int(channel), f"{line}\n".encode())


if __name__ == "__main__":
    main()
