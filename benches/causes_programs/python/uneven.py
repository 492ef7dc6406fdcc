"""Processes that share nothing; the first has 70 % of the work."""

import multiprocessing
import sys


def compute(iterations: int) -> int:
    seed = 1
    for _ in range(iterations):
        seed = (seed * 1103515245 + 12345) % 2147483648
    return seed


if __name__ == "__main__":
    processes, work = int(sys.argv[1]), 10_000_000
    shares = [work]
    if processes > 1:
        shares = [work * 7 // 10, *[work * 3 // 10 // (processes - 1)] * (processes - 1)]
    workers = [multiprocessing.Process(target=compute, args=(share,)) for share in shares]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
