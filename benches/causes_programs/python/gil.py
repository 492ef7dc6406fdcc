"""Threads that compute in Python: one at a time holds the interpreter's lock."""

import sys
import threading


def compute(iterations: int) -> int:
    seed = 1
    for _ in range(iterations):
        seed = (seed * 1103515245 + 12345) % 2147483648
    return seed


threads = int(sys.argv[1])
workers = [threading.Thread(target=compute, args=(8_000_000 // threads,)) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
