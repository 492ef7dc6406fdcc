"""A pool of processes; between its rounds the parent does a quarter of the work."""

import multiprocessing
import sys

ROUNDS, PARTS = 8, 8


def compute(iterations: int) -> int:
    seed = 1
    for _ in range(iterations):
        seed = (seed * 1103515245 + 12345) % 2147483648
    return seed


if __name__ == "__main__":
    with multiprocessing.Pool(int(sys.argv[1])) as pool:
        for _ in range(ROUNDS):
            pool.map(compute, [90_000] * PARTS, chunksize=1)
            compute(240_000)
