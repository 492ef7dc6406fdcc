"""Workers that wait for a disk, and for each other: ``workers.py WORKERS``.

An operation is 8 ms of waiting that all can do at once, and 0.4 ms under a lock. So the rate grows
with the workers, a little less with each, on any number of CPUs. It reports how many operations
were done in a second and a half.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from typing import Any

SECONDS = 1.5
APART_SECONDS = 0.008
LOCKED_SECONDS = 0.0004


def say(**line: Any) -> None:
    """Report a line to Concurve; nothing if the program runs without it."""
    if "CONCURVE_REPORT" in os.environ:
        os.write(int(os.environ["CONCURVE_REPORT"]), (json.dumps(line) + "\n").encode())


def work(number: int, lock: threading.Lock, end: float, counts: list[int]) -> None:
    """Do operations until the end."""
    draw = random.Random(number)
    count = 0
    while time.monotonic() < end:
        time.sleep(APART_SECONDS * draw.uniform(0.5, 1.5))
        with lock:
            time.sleep(LOCKED_SECONDS * draw.uniform(0.5, 1.5))
        count += 1
    counts.append(count)


def main(workers: int) -> None:
    """Start the workers, and report what they did."""
    lock, counts = threading.Lock(), list[int]()
    say(phase="measure", edge="begin")
    end = time.monotonic() + SECONDS
    threads = [
        threading.Thread(target=work, args=(number, lock, end, counts)) for number in range(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(phase="measure", edge="end")
    say(indicator="operations", value=sum(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]))
