"""Processes that insert rows into one SQLite database, a transaction each: one at a time holds the
lock of the file, and the others sleep for a while and try again."""

import multiprocessing
import sqlite3
import sys
from pathlib import Path

ROWS = 60


def connected(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=60, isolation_level=None)


def insert(path: str, rows: int) -> None:
    database = connected(path)
    for row in range(rows):
        database.execute("begin immediate")
        database.execute("insert into visits values (?, ?)", (row, "x" * 200))
        database.execute("commit")
    database.close()


def main() -> None:
    processes, path = int(sys.argv[1]), str(Path(sys.argv[2], "visits.db"))
    Path(path).unlink(missing_ok=True)
    database = connected(path)
    database.execute("create table visits (number integer, page text)")
    database.close()
    workers = [
        multiprocessing.Process(target=insert, args=(path, ROWS // processes))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    Path(path).unlink()


if __name__ == "__main__":
    main()
