"""Tests that change what the whole machine shares take turns, over all processes that run tests."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(what: str) -> Iterator[None]:
    """Wait until no other test has its turn at this."""
    path = Path(tempfile.gettempdir(), f"concurve-tests-{os.geteuid()}-{what}.lock")
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
