"""Threads that send requests at a limited rate: each takes the next time at which one may be sent,
and sleeps until then without holding anything. However many there are, the rate is the same."""

import sys
import threading
import time

REQUESTS, APART = 100, 0.004
lock = threading.Lock()
due = [time.monotonic()]


def reserved() -> float:
    with lock:
        due[0] = max(due[0] + APART, time.monotonic())
        return due[0]


def send(requests: int) -> None:
    for _ in range(requests):
        time.sleep(max(0.0, reserved() - time.monotonic()))


threads = int(sys.argv[1])
workers = [threading.Thread(target=send, args=(REQUESTS // threads,)) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
