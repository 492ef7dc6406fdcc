"""Processes that count in the dictionary of a Manager: each access is a request to the one process
of the manager, which needs longer for it than who asks."""

import multiprocessing
import sys
from multiprocessing.managers import DictProxy

ACCESSES = 12_000


def count(shared: "DictProxy[int, int]", accesses: int) -> None:
    for access in range(accesses):
        shared[access % 64] = access


def main() -> None:
    processes = int(sys.argv[1])
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        workers = [
            multiprocessing.Process(target=count, args=(shared, ACCESSES // processes))
            for _ in range(processes)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main()
