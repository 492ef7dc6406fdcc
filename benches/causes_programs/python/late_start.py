"""A pool of processes for even work, after the parent has read its input for 40 % of the time."""

import sys
from multiprocessing import get_context


def part(steps: int) -> int:
    total = 0
    for step in range(steps):
        total += step * step % 7
    return total


if __name__ == "__main__":
    workers = int(sys.argv[1])
    part(6_000_000)
    with get_context("fork").Pool(workers) as pool:
        pool.map(part, [9_000_000 // workers] * workers, chunksize=1)
