"""Threads that insert a few rows into one SQLite file with a log, each in a transaction of its own:
a tenth of a second in all. One at a time may write; the others sleep and try again."""

import sqlite3
import sys
import threading
from pathlib import Path

ROWS = 500


def insert(path: str, rows: int) -> None:
    database = sqlite3.connect(path, timeout=60, isolation_level=None)
    for row in range(rows):
        database.execute("insert into notes values (?)", (row,))
    database.close()


def main() -> None:
    threads, path = int(sys.argv[1]), str(Path(sys.argv[2], "notes.db"))
    database = sqlite3.connect(path)
    database.executescript(
        "pragma journal_mode = wal; drop table if exists notes; create table notes (number)"
    )
    database.close()
    writers = [
        threading.Thread(target=insert, args=(path, ROWS // threads)) for _ in range(threads)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


main()
