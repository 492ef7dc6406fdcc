"""Threads that ask something outside again and again, which answers after a time by chance: they
sleep for it."""

import random
import sys
import threading
import time

REQUESTS = 160


def ask(times: list[float]) -> None:
    for seconds in times:
        time.sleep(seconds)


threads = int(sys.argv[1])
chance = random.Random(7)
times = [chance.uniform(0.0005, 0.0055) for _ in range(REQUESTS)]
askers = [threading.Thread(target=ask, args=(times[n::threads],)) for n in range(threads)]
for asker in askers:
    asker.start()
for asker in askers:
    asker.join()
