"""The statement service beside PostgreSQL's prepared statements: the same code loop, the same
driver, in turns."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from load import run
from measuring.estimates import ratio_of_medians
from measuring.figures import Bound, Figure, MissingToolError
from measuring.ports import free_port
from measuring.running import SCRATCH, interleaved, scratch
from measuring.showing import alone
from postgres_server import find_tools, running
from server import serving

from concurve.host import native

ROUNDS = 9
SECONDS = 3.0
SESSIONS = 64
BRANCHES = 64
ACCOUNTS = 1000
"""Of each branch: both hold everything in memory."""
OVER_POSTGRES = 2.0

DURABILITIES = {
    "none": ("none", "off", Bound(low=OVER_POSTGRES)),
    "group": ("group", "on", None),
}
"""What an acknowledged commit survives, as the service (--durability) and as PostgreSQL
(synchronous_commit) say it: the end of the process, the loss of power."""

OPTIONS = ("--execution", "inline", "--io-threads", "2", "--latching", "record",
         "--statement-cache", "striped")  # fmt: skip


def figures(quick: bool) -> Iterator[Figure]:
    """Loops a second over PostgreSQL's, for each durability."""
    rounds, seconds = (2, 0.3) if quick else (ROUNDS, SECONDS)
    try:
        tools = find_tools()
    except MissingToolError as error:
        yield Figure("statements / PostgreSQL", "prepared", missing=str(error))
        return
    with scratch() as folder:
        for durability in DURABILITIES:
            yield compared(tools, folder, durability, rounds, seconds)


def compared(tools: Path, folder: Path, durability: str, rounds: int, seconds: float) -> Figure:
    """Both servers are up all the time; who has no load sleeps."""
    ours, theirs, bound = DURABILITIES[durability]
    with ExitStack() as stack:
        service = stack.enter_context(
            serving(
                str(native.binary("concurve-server")), "--service", "statements",
                "--folder", str(folder / durability), "--durability", ours, *OPTIONS
            )
        )  # fmt: skip
        port = free_port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "shared_buffers": "256MB",
            "synchronous_commit": theirs,
        }
        stack.enter_context(running(tools, settings, SCRATCH, port))
        urls = {
            "ours": f"statements://127.0.0.1:{service.port}",
            "theirs": f"postgresql://postgres@127.0.0.1:{port}/postgres",
        }
        found = interleaved(
            rounds, {side: partial(rate, url, seconds) for side, url in urls.items()}
        )
    return Figure(
        f"statements / PostgreSQL: {durability}, {SESSIONS} sessions",
        f"loops of 7 prepared statements a second over those of version {tools.parent.name}, both "
        f"over TCP, {rounds} rounds in turns",
        ratio_of_medians(found["ours rate"], found["theirs rate"]),
        bound,
    )


def rate(url: str, seconds: float) -> Mapping[str, float]:
    """Loops a second on new data, which are verified afterwards.

    Raises:
        SystemExit: there were errors, or the data are not what they must be.
    """
    text, _ = run(
        [str(native.binary("concurve-load")), url, "--workload", "loop", "--init", "--verify",
         "--scale", str(BRANCHES), "--accounts", str(ACCOUNTS), "--sessions", str(SESSIONS),
         "--duration", f"{seconds}s", "--warm-up", f"{seconds / 10}s", "--json"]
    )  # fmt: skip
    found = json.loads(text)
    if found["errors"]:
        raise SystemExit(f"{url}: {found['errors_by_kind']}")
    return {"rate": found["rate_per_second"]}


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
