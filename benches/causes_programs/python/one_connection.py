"""Threads that borrow the only connection of a queue for each query: an answer comes after 2 ms,
and what a thread does with it takes a tenth of that."""

import queue
import sys
import threading
import time

QUERIES = 160


def work(pool: "queue.Queue[int]", queries: int) -> None:
    for _ in range(queries):
        connection = pool.get()
        time.sleep(0.002)
        pool.put(connection)
        sum(range(8_000))


def main() -> None:
    count = int(sys.argv[1])
    pool: queue.Queue[int] = queue.Queue()
    pool.put(1)
    threads = [threading.Thread(target=work, args=(pool, QUERIES // count)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
