"""Sixteen sessions that ask a server for a second: ``client.py PORT``."""

from __future__ import annotations

import socket
import sys
import threading
import time

SESSIONS = 16
SECONDS = 1.0


def session(port: int, answers: list[int]) -> None:
    """Ask, wait for the answer, ask again."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        count, end = 0, time.monotonic() + SECONDS
        while time.monotonic() < end:
            connection.sendall(b"query\n")
            if not connection.recv(16):
                raise ConnectionError("the server closed the connection")
            count += 1
    answers.append(count)


def main(port: int) -> None:
    """Run all sessions, and print their rate."""
    answers: list[int] = []
    begin = time.monotonic()
    threads = [threading.Thread(target=session, args=(port, answers)) for _ in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(answers) < SESSIONS:
        sys.exit("a session failed")
    print(f"{sum(answers) / (time.monotonic() - begin):.1f} answers per second")


if __name__ == "__main__":
    main(int(sys.argv[1]))
