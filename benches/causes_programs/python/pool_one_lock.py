"""A pool of processes whose tasks do most of their work while they hold one lock."""

import multiprocessing
import sys
from multiprocessing.synchronize import Lock

TASKS = 240
held: list[Lock] = []


def compute(iterations: int) -> int:
    seed = 1
    for _ in range(iterations):
        seed = (seed * 1103515245 + 12345) % 2147483648
    return seed


def begin(lock: Lock) -> None:
    held.append(lock)


def task(number: int) -> int:
    prepared = compute(3_000 + number)
    with held[0]:
        return prepared ^ compute(30_000)


if __name__ == "__main__":
    processes = int(sys.argv[1])
    lock = multiprocessing.Lock()
    with multiprocessing.Pool(processes, initializer=begin, initargs=(lock,)) as pool:
        assert sum(pool.imap_unordered(task, range(TASKS))) > 0
