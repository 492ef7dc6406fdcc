"""What the planted Python programs share. Each thread keeps in ``truth`` the number of the site at
which it waits. The lines with WAIT say which sites there are, with the function in a comment: WAIT
writes the number, and returns what the line then waits for, so that the wait is in the function
itself. The next line writes 0: between the two the interpreter gives its lock to no other thread.
The program says where ``truth`` stands, and runs until its standard input ends."""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

THREADS_MAX = 16
WORDS = 8
"""Of each thread: a cache line."""

Waited = TypeVar("Waited")
truth = (ctypes.c_uint64 * (WORDS * THREADS_MAX))()


def WAIT(thread: int, number: int, waited: Waited) -> Waited:  # noqa: N802
    truth[WORDS * thread] = number
    return waited


def plant(turn: Callable[[int, int], object]) -> None:
    """Runs ``turn`` in threads, again and again, with the number of the thread and of the round."""
    threads = int(sys.argv[1])
    begin = threading.Event()
    tids = [0] * threads

    def body(thread: int) -> None:
        tids[thread] = threading.get_native_id()
        begin.wait()
        round_ = thread
        while True:
            turn(thread, round_)
            round_ += 1

    for thread in range(threads):
        threading.Thread(target=body, args=(thread,), daemon=True).start()
    while not all(tids):
        time.sleep(0.001)
    print(f"truth {ctypes.addressof(truth):#x} {WORDS * 8}")
    for thread, tid in enumerate(tids):
        print(f"thread {thread} {tid}")
    print("ready", flush=True)
    begin.set()
    sys.stdin.read()
    os._exit(0)
