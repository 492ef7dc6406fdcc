"""Threads that share the one connection of a pool to a database, which is a process of its own and
sleeps for each query."""

import os
import queue
import socket
import sys
import threading
import time

QUERIES = 250


def database(connection: socket.socket) -> None:
    with connection.makefile("rwb") as file:
        for query in file:
            time.sleep(0.003)
            file.write(b"row " + query)
            file.flush()


class Connection:
    def __init__(self, connection: socket.socket) -> None:
        self.file = connection.makefile("rwb")

    def ask(self, query: str) -> bytes:
        self.file.write(query.encode() + b"\n")
        self.file.flush()
        return self.file.readline()


def handle(pool: "queue.Queue[Connection]", numbers: range) -> None:
    for number in numbers:
        body = "".join(chr(97 + number * place % 26) for place in range(200))
        connection = pool.get()
        try:
            connection.ask(f"select {body}")
        finally:
            pool.put(connection)


def main() -> None:
    threads = int(sys.argv[1])
    own, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        own.close()
        database(theirs)
        os._exit(0)
    theirs.close()
    pool: queue.Queue[Connection] = queue.Queue()
    connection = Connection(own)
    pool.put(connection)
    workers = [
        threading.Thread(target=handle, args=(pool, range(first, QUERIES, threads)))
        for first in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    connection.file.close()
    own.close()
    os.waitpid(child, 0)


main()
