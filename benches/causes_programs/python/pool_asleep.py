"""A pool of threads whose tasks sleep: they wait for an answer that takes so long."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

TASKS, ANSWER_S = 60, 0.02


def ask(task: int) -> int:
    time.sleep(ANSWER_S)
    return task


with ThreadPoolExecutor(int(sys.argv[1])) as pool:
    print(sum(pool.map(ask, range(TASKS))))
