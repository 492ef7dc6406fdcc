"""A lock that is taken in a function and in a method, and held while its holder sleeps."""

import threading
import time

from plant import WAIT, WORDS, plant, truth

lock = threading.Lock()


def add_left(thread: int) -> None:
    with WAIT(thread, 1, lock):  # add_left
        truth[WORDS * thread] = 0
        time.sleep(0.001)


class Table:
    def add_right(self, thread: int) -> None:
        taken = WAIT(thread, 2, lock).acquire()  # Table.add_right
        truth[WORDS * thread] = 0
        time.sleep(0.001)
        if taken:
            lock.release()


table = Table()


def turn(thread: int, round_: int) -> None:
    if round_ % 2:
        add_left(thread)
    else:
        table.add_right(thread)


plant(turn)
