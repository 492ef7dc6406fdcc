"""A file of a library is told from one of the program that is called alike."""

import pytest

from concurve.findings.places import place_of


@pytest.mark.parametrize(
    ("file", "line", "told"),
    [
        ("/home/me/pool.py", 24, "pool.py:24"),
        ("pool.py", 24, "pool.py:24"),
        ("/usr/lib/python3.11/multiprocessing/pool.py", 531, "multiprocessing/pool.py:531"),
        ("/venv/lib/python3.12/site-packages/redis/client.py", 7, "redis/client.py:7"),
        ("/usr/local/go/src/net/http/server.go", 1995, "http/server.go:1995"),
        ("/rustc/4eb1/library/std/src/sync/mutex.rs", 9, "sync/mutex.rs:9"),
        ("/home/me/pool.py", None, ""),
        (None, 24, ""),
    ],
)  # fmt: skip
def test_a_file_of_a_library_has_its_folder(file: str | None, line: int | None, told: str) -> None:
    assert place_of(file, line) == told
