"""Busy processes beside what is measured, which no trial knows of."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_processes(number: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes compute until the block ends, each at most for one CPU."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(number)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
