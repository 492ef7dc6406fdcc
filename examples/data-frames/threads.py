"""A fixed amount of pure Python code, divided among threads: ``threads.py THREADS``."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

STEPS = 8_000_000


def say(**line: Any) -> None:
    """Report a line to Concurve; nothing if the program runs without it."""
    if "CONCURVE_REPORT" in os.environ:
        os.write(int(os.environ["CONCURVE_REPORT"]), (json.dumps(line) + "\n").encode())


def compute(steps: int) -> None:
    """Some of the work."""
    total = 0
    for step in range(steps):
        total += step


def main(count: int) -> None:
    """Do all of it in the measured phase, on a CPU that has worked for a while: the first tenths of
    a second may be slower, and a lone thread would have them all to itself."""
    compute(STEPS)
    say(phase="measure", edge="begin")
    threads = [threading.Thread(target=compute, args=(STEPS // count,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(phase="measure", edge="end")


if __name__ == "__main__":
    main(int(sys.argv[1]))
