"""Measure real programs, and write what ``concurve explain`` says of them: docs/explain-gallery/.

    write_gallery.py [NAME …]    all programs, or those of these names

Each page has the command, when it was measured, what was printed, as it was, a picture of what was
lost or of where the time goes, and why the answer is believed. A program that is not installed is
left out, and named. A page is for a reader who asks what an answer looks like: run this on a quiet
machine, and read the pages before they are committed. DuckDB is a package of Python: pip install
duckdb.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import NamedTuple

from concurve.assemble import report_of
from concurve.report.charts.composition import composition
from concurve.report.charts.image import to_svg
from concurve.report.charts.waterfall import waterfall
from concurve.store import Store

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "explain-gallery"
CONCURVE = Path(sys.executable).parent / "concurve"
#: Wide enough for the tables, and narrow enough for a page.
COLUMNS = "100"
LIMIT_SECONDS = 900


class Subject(NamedTuple):
    """A real program: the tools it takes (``python:NAME`` is a package of Python), what prepares
    its input in an empty folder, the options of ``concurve sweep`` with the command, what the
    program does, and why the answer is believed: what is known of the program from elsewhere."""

    name: str
    title: str
    tools: tuple[str, ...]
    prepare: str
    sweep: tuple[str, ...]
    about: str
    why: str


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
_DUCKDB = """\
import sys
import duckdb
db = duckdb.connect("numbers.duckdb", read_only=True)
db.execute(f"SET threads = {sys.argv[1]}")
sums = "SELECT k, sum(v) AS s FROM t GROUP BY k"
print(db.execute(f"SELECT count(*), sum(s) FROM ({sums})").fetchall())
"""
_DUCKDB_TABLE = """\
import duckdb
db = duckdb.connect("numbers.duckdb")
db.execute("CREATE TABLE t AS SELECT (i * 7919) % 1000003 AS k, i AS v FROM range(6000000) r(i)")
"""
_JAVA = """\
import java.util.concurrent.*;

public final class Service {
    static byte[][] live = new byte[40_000][];

    static int request(int number) {
        int sum = 0;
        for (int i = 0; i < 4000; i++) {
            byte[] answer = new byte[200];
            answer[i % 200] = (byte) (number + i);
            sum += answer[i % 200];
            live[(number * 31 + i) % live.length] = answer;
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(arguments[0]));
        for (int i = 0; i < 4000; i++) {
            int number = i;
            pool.submit(() -> request(number));
        }
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.HOURS);
    }
}
"""
# Both servers refuse to run as root; each has a user of its own where a distribution installs it.
_AS = 'as() { u=$1; shift; if [ "$(id -u)" = 0 ]; then setpriv --reuid="$u" --regid="$u" \
--clear-groups "$@"; else "$@"; fi; }\n'
_POSTGRES = f"""{_AS}PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
mkdir home; [ "$(id -u)" != 0 ] || chown postgres home
as postgres env HOME="$PWD/home" initdb -D "$PWD/home/data" -U postgres -A trust -N >/dev/null
echo "update hot set value = value + 1 where id = 1;" > hot.sql
cat > serve <<END
#!/bin/sh
PATH=$PATH; export HOME=$PWD/home
exec $([ "$(id -u)" != 0 ] || echo setpriv --reuid=postgres --regid=postgres --clear-groups) \\
    postgres -D $PWD/home/data -p \\$1 -c listen_addresses=127.0.0.1 \\
    -c unix_socket_directories= -c synchronous_commit=off
END
chmod 755 serve
./serve 54329 >/dev/null 2>&1 & server=$!
until pg_isready -q -h 127.0.0.1 -p 54329; do sleep 0.2; done
psql -q -h 127.0.0.1 -p 54329 -U postgres -c "create table hot(id int primary key, value int)" \\
    -c "insert into hot values (1, 0)"
kill -INT $server; wait $server || true
"""
_MARIADB = f"""{_AS}mkdir home; [ "$(id -u)" != 0 ] || chown mysql home
as mysql mariadb-install-db --no-defaults --datadir="$PWD/home" --skip-test-db \\
    --auth-root-authentication-method=normal >/dev/null 2>&1
cat > serve <<END
#!/bin/sh
exec $([ "$(id -u)" != 0 ] || echo setpriv --reuid=mysql --regid=mysql --clear-groups) \\
    mariadbd --no-defaults --datadir=$PWD/home --port=\\$1 --bind-address=127.0.0.1 \\
    --socket=$PWD/home/s --innodb-flush-log-at-trx-commit=0
END
chmod 755 serve
./serve 54330 >/dev/null 2>&1 & server=$!
until mariadb-admin --no-defaults -h 127.0.0.1 -P 54330 -u root ping >/dev/null 2>&1
do sleep 0.2; done
mariadb --no-defaults -h 127.0.0.1 -P 54330 -u root -e "create database hot; \\
    create table hot.hot(id int primary key, value int); insert into hot.hot values (1, 0)"
kill $server; wait $server || true
"""
_FIXED = ("--work", "fixed", "--")

SUBJECTS = (
    Subject(
        "sort",
        "sort --parallel",
        ("sort", "seq"),
        _LINES,
        ("-P", "threads", "1,2", *_FIXED,
         "env", "LC_ALL=C", "sort", "--parallel={threads}", "-S", "500M", "-o", "/dev/null",
         "input"),
        "GNU sort reads its input, sorts parts of it with threads, and merges them.",
        "The threads of sort take nodes of a tree of merges, each with a mutex. The last merges "
        "are few, and a thread that finds its node taken waits for it.",
    ),
    Subject(
        "xz",
        "xz -T",
        ("xz", "seq", "sort"),
        _LINES,
        ("-P", "threads", "1,2", *_FIXED,
         "xz", "-1", "-k", "-c", "--block-size=4MiB", "-T{threads}", "input"),
        "xz compresses blocks with threads; its first thread reads and writes.",
        "Blocks of 4 MiB share nothing. What is left is the end, where the last blocks do not fill "
        "all threads, and more CPU time, of which no cause is named. The first thread waits at a "
        "condition for blocks that are done, and that is no lock.",
    ),
    Subject(
        "zstd",
        "zstd -T",
        ("zstd", "seq", "sort"),
        _LINES,
        ("-P", "threads", "1,2", *_FIXED,
         "zstd", "-9", "-q", "-f", "-T{threads}", "input", "-o", "output.zst"),
        "zstd compresses jobs with threads; a thread of its own reads and writes.",
        "A job is several megabytes at this level, so an input of this size has few of them, "
        "and threads have no work at the end. Jobs share no lock that is held for long, and none "
        "is named. That two threads take more CPU time for the same input is measured; what it "
        "goes to is not, as cache misses are not counted. `memory` is what the rules leave where "
        "so much memory is in use, and `coherency` cannot be told apart from it: of the cause "
        "itself this page proves nothing. `concurve explain --confirm` has the experiment, a "
        "process beside it that copies memory.",
    ),
    Subject(
        "pigz",
        "pigz -p",
        ("pigz", "seq", "sort"),
        _LINES,
        ("-P", "threads", "1,2", *_FIXED, "pigz", "-k", "-c", "-p", "{threads}", "input"),
        "pigz compresses blocks with threads, and one more thread writes.",
        "Blocks of 128 KiB are many and independent. With `-p 1` pigz starts no thread and "
        "works as gzip does. With two, blocks go from thread to thread: `time` counts some "
        "1,300 switches where there were 3, twice the page faults, and as much CPU time in user "
        "mode as before.",
    ),
    Subject(
        "make",
        "make -j",
        ("make", "cc"),
        _MAKE,
        ("-P", "jobs", "1,2,4", "--work", "jobs", "--", "make", "-s", "-B", "-j{jobs}"),
        "make starts compilers, as many at once as it may.",
        "The 24 files depend on nothing, so compilers run side by side until the CPUs are used up.",
    ),
    Subject(
        "python-threads",
        "A thread pool in Python",
        ("python3",),
        f"cat > pool.py <<'END'\n{_POOL}END",
        ("-P", "threads", "1,2", *_FIXED, sys.executable, "pool.py", "{threads}"),
        "Threads of CPython that compute share its interpreter lock.",
        "Only the thread that has the interpreter lock runs bytecode; the documentation of CPython "
        "says so.",
    ),
    Subject(
        "node-workers",
        "Worker threads of Node.js",
        ("node",),
        f"cat > pool.js <<'END'\n{_NODE}END",
        ("-P", "threads", "1,2", *_FIXED, "node", "pool.js", "{threads}"),
        "Each worker has a heap and an interpreter of its own.",
        "The workers exchange nothing. Starting the first interpreter, and one for each worker, is "
        "all that is not divided.",
    ),
    Subject(
        "duckdb",
        "DuckDB, an aggregation",
        ("python:duckdb",),
        f"cat > query.py <<'END'\n{_DUCKDB}END\ncat > table.py <<'END'\n{_DUCKDB_TABLE}END\n"
        f"{sys.executable} table.py",
        ("-P", "threads", "1,2", *_FIXED, sys.executable, "query.py", "{threads}"),
        "DuckDB divides the rows of a table among threads, and joins their hash tables at the end.",
        "The interpreter starts and loads the library in one thread, before the first row is "
        "read; the rest is divided. That thread works on rows, too, so it is the busiest of the "
        "workers: what goes by before the others begin is shown as uneven work.",
    ),
    Subject(
        "sqlite-writers",
        "SQLite with several writers",
        ("python3",),
        f"cat > write.py <<'END'\n{_SQLITE}END",
        ("-P", "threads", "1,2", *_FIXED, sys.executable, "write.py", "{threads}"),
        "One connection at a time may write to a database of SQLite; the others ask again.",
        "SQLite's write-ahead log has one writer at a time; a second one sleeps and asks again "
        "(`busy_timeout`), by its documentation.",
    ),
    Subject(
        "java-service",
        "A service on the JVM whose heap is small",
        ("java", "javac"),
        f"cat > Service.java <<'END'\n{_JAVA}END\njavac Service.java",
        ("-P", "threads", "1,2", *_FIXED, "java", "-XX:+UseSerialGC", "-Xmx24m", "-Xmn4m",
         "Service", "{threads}"),
        "Requests that allocate, beside a live heap that nearly fills the memory, under a "
        "collector that stops all threads.",
        "The serial collector works in one thread while the others stand still; `-Xlog:gc` has the "
        "same pauses.",
    ),
    Subject(
        "redis-io-threads",
        "Redis with more I/O threads than CPUs",
        ("redis-server",),
        "true",
        ("-P", "io-threads", "1,2,4", "--primary", "rate_per_second",
         "--server", "redis-server --port {free_port} --io-threads {io-threads} --save ''",
         "--ready", "tcp:{free_port}", "--",
         "concurve", "load", "redis://127.0.0.1:{free_port}", "--workload", "get", "--sessions",
         "64", "--duration", "0.7s"),
        "Redis executes commands in one thread; I/O threads read requests and write answers.",
        "The load generator and the server share two CPUs here. The I/O threads of Redis spin "
        "while they wait for work, so each one beyond the CPUs takes time from the others. The "
        "loop in which they do, in `IOThreadMain`, is known by its instructions: it reads a word "
        "until another thread changes it.",
    ),
    Subject(
        "postgresql-hot-row",
        "PostgreSQL with one hot row",
        ("psql", "pgbench"),
        _POSTGRES,
        ("-P", "clients", "1,2,8", "--extract", "pgbench", "--server", "./serve {free_port}",
         "--ready", "tcp:{free_port}", "--",
         "pgbench", "-n", "-h", "127.0.0.1", "-p", "{free_port}", "-U", "postgres", "-f", "hot.sql",
         "-c", "{clients}", "-j", "1", "-T", "1", "postgres"),
        "All clients update the same row, and commits do not wait for the disk.",
        "Eight servers and their client work on two CPUs, so CPUs are waited for, and the time of "
        "an operation shows how long. A server waits for the transaction that has changed the row "
        "in the same call in which it waits for its client, but at an epoll instance without a "
        "socket: how long is the share of wake-ups from inside. `pg_stat_activity` says the same, "
        "with `Lock`, `transactionid` and `tuple`.",
    ),
    Subject(
        "mariadb-hot-row",
        "MariaDB with one hot row",
        ("mariadbd", "mariadb-slap"),
        _MARIADB,
        ("-P", "clients", "1,2,8", "--work", "fixed", "--server", "./serve {free_port}",
         "--ready", "tcp:{free_port}", "--",
         "mariadb-slap", "--no-defaults", "-h", "127.0.0.1", "-P", "{free_port}", "-u", "root",
         "--create-schema=hot", "--query=update hot set value = value + 1 where id = 1",
         "--concurrency={clients}", "--number-of-queries=8000"),
        "All clients update the same row; InnoDB writes its log once a second.",
        "InnoDB locks the row until the transaction ends; `SHOW ENGINE INNODB STATUS` lists the "
        "transactions that wait for it. These wait in a function without a name that "
        "`handler::ha_index_read_map` calls, where the row is read to be changed. "
        "`wait_for_tasks`, in the table, is no lock: there threads of its pool wait for the next "
        "task.",
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
        missing = [tool for tool in subject.tools if not _is_there(tool)]
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


def _is_there(tool: str) -> bool:
    kind, _, package = tool.partition(":")
    if kind == "python":
        return importlib.util.find_spec(package) is not None
    return shutil.which(tool) is not None


def _page(subject: Subject) -> str | None:
    """The page of a program, after its picture is written; ``None`` if it could not be measured."""
    with tempfile.TemporaryDirectory(prefix="concurve-gallery-") as folder:
        db = Path(folder) / "gallery.db"
        environment = {
            **os.environ,
            "COLUMNS": COLUMNS,
            "NO_COLOR": "1",
            "CONCURVE_DB": str(db),
            "PATH": f"{CONCURVE.parent}:{os.environ['PATH']}",
        }
        # Servers run as users of their own.
        Path(folder).chmod(0o755)
        work = Path(folder) / "work"
        work.mkdir()

        def run(*command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command, cwd=work, env=environment, capture_output=True, text=True, check=False,
                timeout=LIMIT_SECONDS,
            )  # fmt: skip

        for step in (
            ("sh", "-ec", subject.prepare),
            (str(CONCURVE), "sweep", "--effort", "quick", "--max-time", "90s", *subject.sweep),
        ):
            done = run(*step)
            if done.returncode:
                print(f"{subject.name}: {done.stderr.strip()[-400:]}")
                return None
        said = run(str(CONCURVE), "explain")
        picture = _picture(subject, db)
    if said.returncode:
        print(f"{subject.name}: {said.stderr.strip()[-400:]}")
        return None
    return _text(subject, said.stdout, picture)


def _picture(subject: Subject, db: Path) -> str:
    """What was lost of the ideal speed-up, drawn, or of a server where the thread time of an
    operation goes; a line of Markdown."""
    store = Store(str(db))
    explanation = report_of(store, store.runs()[-1]).explanation
    chart = None
    if explanation is not None:
        chart = waterfall(explanation) or composition(explanation)
    file = FOLDER / f"{subject.name}.svg"
    if chart is None:
        file.unlink(missing_ok=True)
        return ""
    file.write_text(to_svg(chart), encoding="utf-8")
    return f"![{chart.title}]({file.name})\n\n"


def _text(subject: Subject, said: str, picture: str) -> str:
    command = " ".join(_quoted(word) for word in subject.sweep)
    # What differs from one measurement to the next and tells a reader nothing.
    said = re.sub(r"\d{8}-\d{6}-[0-9a-f]{4}", "RUN", said)
    measured = f"Measured on {_today()}, with the code of commit {_commit()}."
    return (
        f"# {subject.title}\n\n{subject.about}\n\n{measured}\n\n"
        f"```console\n$ concurve sweep --effort quick {command}\n"
        f"$ concurve explain\n{said.rstrip()}\n```\n\n{picture}"
        f"**Why we believe it.** {subject.why}\n"
    )


def _today() -> str:
    today = date.today()
    return f"{today.day} {today:%B %Y}"


def _commit() -> str:
    """The commit whose code measures."""
    command = ("git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _quoted(word: str) -> str:
    if word == sys.executable:
        return "python3"
    quote = '"' if "'" in word else "'"
    return f"{quote}{word}{quote}" if set(word) & set("{ '") else word


def _write_index() -> None:
    lines = [
        f"- [{subject.title}]({subject.name}.md): {subject.about}"
        for subject in SUBJECTS
        if (FOLDER / f"{subject.name}.md").exists()
    ]
    (FOLDER / "index.md").write_text(
        "# What `explain` says of real programs\n\n"
        "Programs as a distribution installs them, measured on two CPUs at effort quick. "
        "`scripts/write_gallery.py` writes these pages, and prepares the inputs that they name.\n\n"
        + "\n".join(lines)
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
