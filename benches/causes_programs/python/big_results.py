"""Processes that send large results to their parent, which unpickles and adds them up. That takes
it longer than making them takes one process."""

import sys
from multiprocessing import Process, Queue

RESULTS = 24


def make(results: "Queue[dict[int, int]]", shares: int) -> None:
    for share in range(shares):
        results.put(dict.fromkeys(range(150_000), share))


def main() -> None:
    workers = int(sys.argv[1])
    results: Queue[dict[int, int]] = Queue(2)
    processes = [Process(target=make, args=(results, RESULTS // workers)) for _ in range(workers)]
    for process in processes:
        process.start()
    totals: dict[int, int] = {}
    for _ in range(RESULTS // workers * workers):
        for key, value in results.get().items():
            totals[key] = totals.get(key, 0) + value
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
