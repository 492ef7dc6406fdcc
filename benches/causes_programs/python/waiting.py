"""Threads that ask a process which answers after 2 ms: they wait for the network."""

import os
import socket
import sys
import threading
import time

QUESTIONS = 200


def answer(end: socket.socket) -> None:
    while end.recv(1):
        time.sleep(0.002)
        end.sendall(b"a")


def ask(end: socket.socket, questions: int) -> None:
    for _ in range(questions):
        end.sendall(b"q")
        end.recv(1)
    end.close()


threads = int(sys.argv[1])
ends: list[socket.socket] = []
for _ in range(threads):
    own, other = socket.socketpair()
    if os.fork() == 0:
        own.close()
        for end in ends:
            end.close()
        answer(other)
        os._exit(0)
    other.close()
    ends.append(own)
askers = [threading.Thread(target=ask, args=(end, QUESTIONS // threads)) for end in ends]
for asker in askers:
    asker.start()
for asker in askers:
    asker.join()
