"""Renders scenes in a pool of processes: ``pool.py WORKERS none|lock``.

Under ``lock`` each scene is rendered while a lock is held that all workers share.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import sys
from typing import Any

SCENES = 16
STEPS = 600_000

#: What a worker keeps: the lock, if there is one.
shared: dict[str, Any] = {}


def keep(lock: Any) -> None:
    """Store the lock in a new worker."""
    shared["lock"] = lock


def render(scene: int) -> int:
    """A scene: some 20 to 50 ms of CPU time."""
    with shared["lock"] or contextlib.nullcontext():
        total = 0
        for step in range(STEPS):
            total += step ^ scene
        return total


def say(**line: Any) -> None:
    """Report a line to Concurve; nothing if the program runs without it."""
    if "CONCURVE_REPORT" in os.environ:
        os.write(int(os.environ["CONCURVE_REPORT"]), (json.dumps(line) + "\n").encode())


def main(workers: int, sync: str) -> None:
    """Start the pool, then render all scenes in the measured phase."""
    lock = multiprocessing.Lock() if sync == "lock" else None
    with multiprocessing.Pool(workers, keep, (lock,)) as pool:
        pool.map(abs, range(workers), chunksize=1)  # the workers have started
        say(phase="measure", edge="begin")
        pool.map(render, range(SCENES), chunksize=1)
        say(phase="measure", edge="end")


# Where processes are not forked, each worker imports this file: it must not start a pool itself.
if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
