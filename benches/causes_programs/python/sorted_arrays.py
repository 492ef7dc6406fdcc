"""A pool of threads that sort arrays: numpy lets go of the interpreter's lock meanwhile, so that
nothing but the start limits it."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

NUMBERS = np.random.default_rng(1).permutation(400_000).astype(np.int32)


def median(task: int) -> float:
    return float(np.sort(NUMBERS[task:], kind="heapsort")[len(NUMBERS) // 2])


with ThreadPoolExecutor(int(sys.argv[1])) as pool:
    assert sum(pool.map(median, range(48))) > 0
