"""Measure real programs, and write what ``concurve explain`` says of them: docs/explain-gallery/.

    write_gallery.py [NAME …]    all programs, or those of these names

Each page has the command and what was printed, as it was. A program that is not installed is left
out, and named. A page is for a reader who asks what an answer looks like: run this on a quiet
machine, and read the pages before they are committed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "explain-gallery"
CONCURVE = Path(sys.executable).parent / "concurve"
#: Wide enough for the tables, and narrow enough for a page.
COLUMNS = "100"
LIMIT_SECONDS = 900


class Subject(NamedTuple):
    """A real program: the tools it takes, what prepares its input in an empty folder, and the
    options of ``concurve sweep`` with the command."""

    name: str
    title: str
    tools: tuple[str, ...]
    prepare: str
    sweep: tuple[str, ...]
    about: str


_LINES = (
    "seq -f '%.0f line of text with some words in it' 1 1500000 | "
    "sort -R --random-source=/dev/zero > input"
)
_POOL = """\
import sys
from concurrent.futures import ThreadPoolExecutor
def work(number):
    return sum(i * i for i in range(200_000 + number))
with ThreadPoolExecutor(int(sys.argv[1])) as pool:
    print(sum(pool.map(work, range(40))))
"""
_NODE = """\
const { Worker, isMainThread, workerData } = require('node:worker_threads');
if (isMainThread) {
  const count = Number(process.argv[2]);
  for (let i = 0; i < count; i++) new Worker(__filename, { workerData: 3e8 / count });
} else {
  let sum = 0;
  for (let i = 0; i < workerData; i++) sum = (sum + i * i) % 1000003;
}
"""
_SQLITE = """\
import sqlite3, sys, threading
sqlite3.connect("db").executescript(
    "PRAGMA journal_mode=WAL; DROP TABLE IF EXISTS t; CREATE TABLE t(a)")
def write(count):
    db = sqlite3.connect("db", timeout=60, isolation_level=None)
    for number in range(count):
        db.execute("INSERT INTO t VALUES(?)", (number,))
threads = int(sys.argv[1])
writers = [threading.Thread(target=write, args=(3000 // threads,)) for _ in range(threads)]
[it.start() for it in writers]
[it.join() for it in writers]
"""
_MAKE = (
    "for i in $(seq 24); do printf 'int f%d(int a){return a;}\\n' $i > f$i.c; done; "
    "printf 'all: $(patsubst %%.c,%%.o,$(wildcard f*.c))\\n' > Makefile"
)

SUBJECTS = (
    Subject(
        "sort",
        "sort --parallel",
        ("sort", "seq"),
        _LINES,
        ("-P", "threads", "1,2", "--work", "fixed", "--",
         "env", "LC_ALL=C", "sort", "--parallel={threads}", "-S", "500M", "-o", "/dev/null",
         "input"),
        "GNU sort reads its input, sorts parts of it with threads, and merges them.",
    ),
    Subject(
        "xz",
        "xz -T",
        ("xz", "seq", "sort"),
        _LINES,
        ("-P", "threads", "1,2", "--work", "fixed", "--",
         "xz", "-1", "-k", "-c", "--block-size=4MiB", "-T{threads}", "input"),
        "xz compresses blocks with threads; its first thread reads and writes.",
    ),
    Subject(
        "zstd",
        "zstd -T",
        ("zstd", "seq", "sort"),
        _LINES,
        ("-P", "threads", "1,2", "--work", "fixed", "--",
         "zstd", "-9", "-q", "-f", "-T{threads}", "input", "-o", "output.zst"),
        "zstd compresses jobs with threads; a thread of its own reads and writes.",
    ),
    Subject(
        "pigz",
        "pigz -p",
        ("pigz", "seq", "sort"),
        _LINES,
        ("-P", "threads", "1,2", "--work", "fixed", "--", "pigz", "-k", "-c", "-p", "{threads}",
         "input"),
        "pigz compresses blocks with threads, and one more thread writes.",
    ),
    Subject(
        "make",
        "make -j",
        ("make", "cc"),
        _MAKE,
        ("-P", "jobs", "1,2,4", "--work", "jobs", "--", "make", "-s", "-B", "-j{jobs}"),
        "make starts compilers, as many at once as it may.",
    ),
    Subject(
        "python-threads",
        "A thread pool in Python",
        ("python3",),
        f"cat > pool.py <<'END'\n{_POOL}END",
        ("-P", "threads", "1,2", "--work", "fixed", "--", sys.executable, "pool.py", "{threads}"),
        "Threads of CPython that compute share its interpreter lock.",
    ),
    Subject(
        "node-workers",
        "Worker threads of Node.js",
        ("node",),
        f"cat > pool.js <<'END'\n{_NODE}END",
        ("-P", "threads", "1,2", "--work", "fixed", "--", "node", "pool.js", "{threads}"),
        "Each worker has a heap and an interpreter of its own.",
    ),
    Subject(
        "sqlite-writers",
        "SQLite with several writers",
        ("python3",),
        f"cat > write.py <<'END'\n{_SQLITE}END",
        ("-P", "threads", "1,2", "--work", "fixed", "--", sys.executable, "write.py", "{threads}"),
        "One connection at a time may write to a database of SQLite; the others ask again.",
    ),
)  # fmt: skip


def main(names: list[str]) -> int:
    """Write the pages; the exit code."""
    known = {subject.name for subject in SUBJECTS}
    if unknown := [name for name in names if name not in known]:
        print(f"no such program: {', '.join(unknown)}; one of {', '.join(sorted(known))}")
        return 2
    FOLDER.mkdir(exist_ok=True)
    failed = 0
    for subject in SUBJECTS:
        if names and subject.name not in names:
            continue
        missing = [tool for tool in subject.tools if shutil.which(tool) is None]
        if missing:
            print(f"{subject.name}: left out, {', '.join(missing)} is not installed")
            continue
        page = _page(subject)
        if page is None:
            failed += 1
            continue
        (FOLDER / f"{subject.name}.md").write_text(page, encoding="utf-8")
        print(f"{subject.name}: written")
    _write_index()
    return 1 if failed else 0


def _page(subject: Subject) -> str | None:
    """The page of a program; ``None`` if it could not be measured."""
    with tempfile.TemporaryDirectory(prefix="concurve-gallery-") as folder:
        environment = {
            **os.environ,
            "COLUMNS": COLUMNS,
            "NO_COLOR": "1",
            "CONCURVE_DB": str(Path(folder) / "gallery.db"),
        }
        work = Path(folder) / "work"
        work.mkdir()

        def run(*command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command, cwd=work, env=environment, capture_output=True, text=True, check=False,
                timeout=LIMIT_SECONDS,
            )  # fmt: skip

        for step in (
            ("sh", "-c", subject.prepare),
            (str(CONCURVE), "sweep", "--effort", "quick", "--max-time", "90s", *subject.sweep),
        ):
            done = run(*step)
            if done.returncode:
                print(f"{subject.name}: {done.stderr.strip()[-400:]}")
                return None
        said = run(str(CONCURVE), "explain")
    if said.returncode:
        print(f"{subject.name}: {said.stderr.strip()[-400:]}")
        return None
    return _text(subject, said.stdout)


def _text(subject: Subject, said: str) -> str:
    command = " ".join(_quoted(word) for word in subject.sweep)
    # What differs from one measurement to the next and tells a reader nothing.
    said = re.sub(r"\d{8}-\d{6}-[0-9a-f]{4}", "RUN", said)
    return (
        f"# {subject.title}\n\n{subject.about}\n\n```console\n$ concurve sweep --effort quick "
        f"{command}\n$ concurve explain\n{said.rstrip()}\n```\n"
    )


def _quoted(word: str) -> str:
    word = "python3" if word == sys.executable else word
    return f"'{word}'" if "{" in word else word


def _write_index() -> None:
    lines = [
        f"- [{subject.title}]({subject.name}.md): {subject.about}"
        for subject in SUBJECTS
        if (FOLDER / f"{subject.name}.md").exists()
    ]
    (FOLDER / "README.md").write_text(
        "# What `explain` says of real programs\n\n"
        "Programs as a distribution installs them, measured with one and two workers on two CPUs "
        "at effort quick. `scripts/write_gallery.py` writes these pages.\n\n"
        + "\n".join(lines)
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
