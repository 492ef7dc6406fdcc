"""A pool of processes that share nothing; the parent waits."""

import multiprocessing
import sys


def compute(iterations: int) -> int:
    seed = 1
    for _ in range(iterations):
        seed = (seed * 1103515245 + 12345) % 2147483648
    return seed


if __name__ == "__main__":
    with multiprocessing.Pool(int(sys.argv[1])) as pool:
        pool.map(compute, [250_000] * 64, chunksize=1)
