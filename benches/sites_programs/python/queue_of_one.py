"""A queue with room for one, and a condition: their waits are in the standard library."""

import queue
import threading
import time

from plant import WAIT, WORDS, plant, truth

room: queue.Queue[int] = queue.Queue(1)
changed = threading.Condition()


def put(thread: int) -> None:
    WAIT(thread, 1, room).put(thread)  # put
    truth[WORDS * thread] = 0


def take(thread: int) -> None:
    WAIT(thread, 2, room).get()  # take
    truth[WORDS * thread] = 0
    time.sleep(0.001)


def hear(thread: int) -> None:
    with changed:
        WAIT(thread, 3, changed).wait(0.02)  # hear
        truth[WORDS * thread] = 0


def turn(thread: int, round_: int) -> None:
    if thread == 0:
        hear(thread)
    elif thread % 2:
        put(thread)
    else:
        take(thread)


plant(turn)
