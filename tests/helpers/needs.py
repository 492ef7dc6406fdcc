"""What some tests need of the machine, and why they are skipped without it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: For tests that mount, give their user up, or raise priorities.
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@contextmanager
def small_file_system(folder: Path, size_bytes: int) -> Iterator[Path]:
    """A new folder with a small file system in memory; the test is skipped where none can be
    mounted."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    folder.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "concurve-test", str(folder)]
    mounted = subprocess.run(line, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
