"""Processes that ask one more process by sockets, which has a thread for each of them, and needs
twice as long for an answer as who asks does for what follows from it."""

import multiprocessing
import socket
import sys
import threading

QUESTIONS = 1_000


def compute(rounds: int) -> bytes:
    value = 1
    for _ in range(rounds):
        value = (value * 48271) % 2147483647
    return value.to_bytes(4, "big")


def answer(asker: socket.socket) -> None:
    while asker.recv(4):
        asker.sendall(compute(4_000))


def serve(askers: list[socket.socket]) -> None:
    threads = [threading.Thread(target=answer, args=(asker,)) for asker in askers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ask(server: socket.socket, questions: int) -> None:
    for _ in range(questions):
        server.sendall(compute(2_000))
        server.recv(4)
    server.shutdown(socket.SHUT_WR)


def main() -> None:
    processes = int(sys.argv[1])
    pairs = [socket.socketpair() for _ in range(processes)]
    all_processes = [
        multiprocessing.Process(target=serve, args=([theirs for _, theirs in pairs],)),
        *(
            multiprocessing.Process(target=ask, args=(own, QUESTIONS // processes))
            for own, _ in pairs
        ),
    ]
    for process in all_processes:
        process.start()
    for process in all_processes:
        process.join()


if __name__ == "__main__":
    main()
