"""A ProcessPoolExecutor with a chunk of tasks for each process; a task is the longer the later it
stands in the list."""

import sys
from concurrent.futures import ProcessPoolExecutor

TASKS = 60


def work(task: int) -> int:
    total = 0
    for step in range(4_000 * task):
        total += step * step % 7
    return total


if __name__ == "__main__":
    processes = int(sys.argv[1])
    with ProcessPoolExecutor(processes) as pool:
        assert sum(pool.map(work, range(TASKS), chunksize=TASKS // processes)) > 0
