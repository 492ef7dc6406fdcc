"""The end of a process that could not join or leave Ray: its head or its raylet is stopped."""

from __future__ import annotations

import atexit
import os
import sys
import threading

#: The name of a thread that waits to join Ray, or to leave it.
THREAD = "concurve-waits-for-ray"


def is_waited_for() -> bool:
    """Does this process still wait to join Ray, or to leave it?"""
    return any(thread.name == THREAD for thread in threading.enumerate())


def end_if_waited_for(code: int) -> None:
    """End this process with a code if it still waits for Ray: in an ordinary end, threads of
    Ray use what is taken down already, and may crash. What is registered for the end is called."""
    if is_waited_for():
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
