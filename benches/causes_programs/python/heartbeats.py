"""Eight sensors, dealt out to the threads, are asked every 25 ms, 24 times, by the clock.

An answer takes some 20 us, the lock about the readings 1 us, and the listener of `logging`, a
thread of its own, gets 8 lines in all: less than 1 % of the 0.6 s is work. Nothing needs to
run: none.
"""

import io
import logging
import logging.handlers
import queue
import sys
import threading
import time

SENSORS, ROUNDS, PERIOD = 8, 24, 0.025


def asked(sensor: int, number: int) -> float:
    value = float(sensor)
    for _ in range(200):
        value = value * 0.99 + number
    return value


def watch(sensors: range, start: float, readings: dict[int, float], lock: threading.Lock) -> None:
    for number in range(ROUNDS):
        for sensor in sensors:
            value = asked(sensor, number)
            with lock:
                readings[sensor] = value
            if number == 0:
                logging.info("sensor %d answers", sensor)
        time.sleep(max(0.0, start + (number + 1) * PERIOD - time.monotonic()))


def main() -> None:
    workers = int(sys.argv[1])
    lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    logging.basicConfig(level=logging.INFO, handlers=[logging.handlers.QueueHandler(lines)])
    listener = logging.handlers.QueueListener(lines, logging.StreamHandler(io.StringIO()))
    listener.start()
    readings: dict[int, float] = {}
    lock = threading.Lock()
    start = time.monotonic()
    threads = [
        threading.Thread(target=watch, args=(range(n, SENSORS, workers), start, readings, lock))
        for n in range(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listener.stop()
    print(len(readings))


main()
