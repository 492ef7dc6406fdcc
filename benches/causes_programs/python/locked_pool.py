"""Processes that do most of each task while they hold one lock."""

import multiprocessing
import sys
from multiprocessing.synchronize import Lock


def compute(iterations: int) -> int:
    seed = 1
    for _ in range(iterations):
        seed = (seed * 1103515245 + 12345) % 2147483648
    return seed


def work(lock: Lock, tasks: int) -> None:
    for _ in range(tasks):
        compute(5_000)
        with lock:
            compute(35_000)


if __name__ == "__main__":
    processes = int(sys.argv[1])
    lock = multiprocessing.Lock()
    workers = [
        multiprocessing.Process(target=work, args=(lock, 240 // processes))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
