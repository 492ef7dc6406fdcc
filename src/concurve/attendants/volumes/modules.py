"""Modules of the kernel."""

from __future__ import annotations

import shutil
import subprocess


def would_load(name: str) -> bool:
    """Is there a module of this name, which the kernel would load when it is needed?"""
    if shutil.which("modprobe") is None:
        return False
    tried = subprocess.run(
        ["modprobe", "--dry-run", "--quiet", name],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0
