"""A pool of like processes that hold one lock for a tenth of each task."""

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
    prepared = compute(31_000 + number)
    with held[0]:
        return prepared ^ compute(3_500)


if __name__ == "__main__":
    processes = int(sys.argv[1])
    lock = multiprocessing.Lock()
    with multiprocessing.Pool(processes, initializer=begin, initargs=(lock,)) as pool:
        assert sum(pool.imap_unordered(task, range(TASKS))) > 0
