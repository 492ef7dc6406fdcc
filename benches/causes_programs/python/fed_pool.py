"""Processes that take tasks from a queue; making a task costs the parent more than doing it costs
one of them."""

import sys
from multiprocessing import Process, Queue


def work(tasks: "Queue[list[int] | None]") -> None:
    while (task := tasks.get()) is not None:
        sum(task)


def main() -> None:
    workers = int(sys.argv[1])
    tasks: Queue[list[int] | None] = Queue(8)
    processes = [Process(target=work, args=(tasks,)) for _ in range(workers)]
    for process in processes:
        process.start()
    for number in range(60):
        tasks.put([value * value % 97 for value in range(number, 120_000 + number)])
    for _ in processes:
        tasks.put(None)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
