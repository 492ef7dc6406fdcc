"""The load generator beside pgbench: the same PostgreSQL, SQL, sessions and threads, in turns."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from load import run
from measuring.estimates import ratio_of_medians
from measuring.figures import Bound, Figure, MissingToolError
from measuring.running import interleaved
from measuring.showing import alone
from postgres_server import Postgres, find_tools, quietly, running

from concurve.host import native

SESSIONS = (8, 32, 96)
ROUNDS = 9
SECONDS = 5.0
"""Long: pgbench prepares a statement when a session first comes to it."""
SCALE = 100
"""Branches: no fewer than sessions, or they wait for each other's."""
THROUGHPUT = 1.0
"""Over pgbench's, at least."""
CPU = {"read": 0.9, "tpcb-like": 1.0}
"""Client CPU per transaction over pgbench's, at most."""

_SCRIPTS = {
    "read": r"""\set aid random(1, 100000 * :scale)
SELECT abalance FROM concurve.accounts_1 WHERE aid = :aid;
""",
    "tpcb-like": r"""\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE concurve.accounts_1 SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM concurve.accounts_1 WHERE aid = :aid;
UPDATE concurve.tellers_1 SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE concurve.branches_1 SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO concurve.history_1 (tid, bid, aid, delta, mtime)
    VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
""",
}
"""pgbench's own scripts (pgbench -b, "select-only" and "tpcb-like"), on our tables."""


class Server(NamedTuple):
    """A PostgreSQL with the data."""

    own: Postgres
    scale: int


def figures(quick: bool) -> Iterator[Figure]:
    """Throughput and client CPU of both, for each number of sessions."""
    rounds, seconds, scale = (2, 0.3, 1) if quick else (ROUNDS, SECONDS, SCALE)
    try:
        tools = find_tools()
    except MissingToolError as error:
        yield Figure("load beside pgbench", "PostgreSQL, prepared", missing=str(error))
        return
    with postgres(tools, scale) as server:
        for workload in _SCRIPTS:
            for sessions in SESSIONS:
                yield from compared(server, workload, sessions, rounds, seconds)


def compared(
    server: Server, workload: str, sessions: int, rounds: int, seconds: float
) -> Iterator[Figure]:
    """Both in turns, each with the tables as the other finds them. Where the server is the limit,
    both can only be equally fast."""
    found = interleaved(
        rounds,
        {
            "ours": lambda: ours(server, workload, sessions, seconds),
            "theirs": lambda: theirs(server, workload, sessions, seconds),
        },
    )
    how = f"{workload}, {sessions} sessions, one thread, prepared, {rounds} rounds in turns"
    yield Figure(
        f"load / pgbench: throughput, {workload}, {sessions}",
        how,
        ratio_of_medians(found["ours rate"], found["theirs rate"]),
        Bound(low=THROUGHPUT, parity=workload != "read"),
    )
    yield Figure(
        f"load / pgbench: client CPU, {workload}, {sessions}",
        f"{how}; user and system time of the whole process a transaction",
        ratio_of_medians(found["ours cpu"], found["theirs cpu"]),
        Bound(high=CPU[workload]),
    )


def ours(server: Server, workload: str, sessions: int, seconds: float) -> Mapping[str, float]:
    """Transactions a second, and CPU seconds of the client's process for each."""
    settle(server)
    text, cpu = run(
        [str(native.binary("concurve-load")), server.own.url, "--workload", workload,
         "--scale", str(server.scale), "--sessions", str(sessions), "--threads", "1",
         "--duration", f"{seconds}s", "--json"]
    )  # fmt: skip
    figures = json.loads(text)
    if figures["errors"]:
        raise SystemExit(f"{workload}: errors {figures['errors_by_kind']}")
    return {"rate": figures["rate_per_second"], "cpu": cpu / figures["acknowledged"]}


def theirs(server: Server, workload: str, sessions: int, seconds: float) -> Mapping[str, float]:
    """The same of pgbench, which takes whole seconds."""
    settle(server)
    script = server.own.folder / f"{workload}.sql"
    script.write_text(_SCRIPTS[workload])
    text, used = run(
        [str(server.own.tools / "pgbench"), *server.own.options(), "-n", "-M", "prepared",
         "-f", str(script), "-D", f"scale={server.scale}", "-c", str(sessions), "-j", "1",
         "-T", str(max(1, round(seconds))), "postgres"]
    )  # fmt: skip
    done = re.search(r"actually processed: (\d+)", text)
    rate = re.search(r"tps = ([\d.]+) \(without initial connection time\)", text)
    if done is None or rate is None:
        raise SystemExit(f"pgbench says something else: {text[-300:]}")
    return {"rate": float(rate[1]), "cpu": used.cpu_seconds / int(done[1])}


def settle(server: Server) -> None:
    """Leave neither side the other's dead rows."""
    statements = (
        "VACUUM concurve.branches_1",
        "VACUUM concurve.tellers_1",
        "TRUNCATE concurve.history_1",
    )
    words = [word for statement in statements for word in ("-c", statement)]
    quietly([str(server.own.tools / "psql"), *server.own.options(), "-q", *words, "postgres"])


@contextmanager
def postgres(tools: Path, scale: int) -> Iterator[Server]:
    """A PostgreSQL with the data of both workloads, on a Unix socket alone.

    It need not survive a loss of power: what is compared is the clients, not the disk.
    """
    settings = {"listen_addresses": "", "shared_buffers": "2GB", "fsync": "off"}
    with running(tools, settings) as own:
        server = Server(own, scale)
        quietly([str(native.binary("concurve-load")), own.url, "--workload", "tpcb-like",
                 "--scale", str(scale), "--init-only"])  # fmt: skip
        yield server


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
