"""The load generator beside the logs of planted servers, and in turns with redis-benchmark."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from measuring.estimates import median, ratio_of_medians
from measuring.figures import Bound, Figure, MissingToolError
from measuring.planted import (
    Rule,
    answers_one_in_ten,
    pauses,
    planted,
    quantile,
    stops_after,
)
from measuring.ports import free_port, wait_for
from measuring.running import interleaved
from measuring.showing import alone
from measuring.tools import require
from server import on

from concurve.host import native

SESSIONS = 50
ROUNDS = 15
REQUESTS = {1: 200_000, 16: 2_000_000}
RATE = {1: 1.0, 16: 1.1}
"""Throughput over redis-benchmark's, at least; by requests under way a session."""
CPU = {1: 1.0, 16: 0.7}
"""CPU time of the client for a request over that of redis-benchmark, at most."""
OFF_MAX = 0.01
"""Farthest from the log of a server, of p50, p99, p99.9 and the share unanswered."""
PLANTED_RATE = 200


def figures(quick: bool) -> Iterator[Figure]:
    """Both."""
    yield from beside_logs(quick)
    yield from beside_redis_benchmark(quick)


def beside_logs(quick: bool) -> Iterator[Figure]:
    """An open loop on servers that hang, pause, and answer one in ten."""
    seconds, rounds = (4, 1) if quick else (10, 5)
    servers: dict[str, Rule] = {
        "stops answering at half time": stops_after(seconds / 2),
        "pauses 200 ms a second": pauses,
        "answers one in ten": answers_one_in_ten,
    }
    for name, rule in servers.items():
        off = [farthest_from_log(rule, seconds) for _ in range(rounds)]
        yield Figure(
            f"load: a server that {name}",
            f"p50, p99, p99.9 and share unanswered, farthest from the server's log; "
            f"{PLANTED_RATE}/s, {seconds} s, {rounds} rounds",
            median(off),
            Bound(high=OFF_MAX),
        )


def farthest_from_log(rule: Rule, seconds: int) -> float:
    """The greatest relative deviation from what the log of a server says."""
    with planted(rule) as server:
        text, _ = run(
            [str(native.binary("concurve-load")), f"127.0.0.1:{server.port}", "--workload", "ping",
             "--sessions", "40", "--rate", str(PLANTED_RATE), "--duration", f"{seconds}s", "--json"]
        )  # fmt: skip
        found = json.loads(text)
        begin_ns, end_ns = found["measured_from_ns"], found["measured_to_ns"]
        interval_ns = 1_000_000_000 // PLANTED_RATE
        dues = list(range(begin_ns + interval_ns, end_ns, interval_ns))
        latencies, unanswered = server.latencies_ns(dues, end_ns)
    percentiles: dict[str, int] = found["latency_ns"]
    off = [
        abs(percentiles[name] / quantile(latencies, share) - 1)
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999))
    ]
    counts: dict[str, int] = found
    return max(*off, abs(counts["unanswered"] - unanswered) / counts["due"])


def beside_redis_benchmark(quick: bool) -> Iterator[Figure]:
    """GET from 50 sessions on one client thread, one request under way and sixteen: where the
    kernel places client and server, and with a CPU for each."""
    try:
        other = require("redis-benchmark", "redis-tools")
        require("redis-server", "redis-server")
    except MissingToolError as error:
        yield Figure("load beside redis-benchmark", "GET, 50 sessions", missing=str(error))
        return
    cpus = sorted(os.sched_getaffinity(0))
    yield from at_place("sharing", None, None, other, quick)
    if len(cpus) < 2:
        missing = "a second CPU"
        yield Figure("load beside redis-benchmark, apart", "a CPU each", missing=missing)
    else:
        yield from at_place("apart", cpus[0], cpus[-1], other, quick)


def at_place(
    place: str, server_cpu: int | None, client_cpu: int | None, other: str, quick: bool
) -> Iterator[Figure]:
    """With server and client on these CPUs, or (``None``) wherever the kernel puts them."""
    rounds = 2 if quick else ROUNDS
    with ExitStack() as stack:
        with on(server_cpu):
            port = stack.enter_context(redis_server())
        for pipeline, requests in REQUESTS.items():
            with on(client_cpu):
                found = interleaved(
                    rounds,
                    {
                        "ours": lambda p=pipeline, n=requests: ours(port, p, n),  # type: ignore[misc]
                        "theirs": lambda p=pipeline, n=requests: theirs(other, port, p, n),  # type: ignore[misc]
                    },
                )
            how = f"GET, {SESSIONS} sessions, {pipeline} under way each, {rounds} rounds"
            where = f"{place}, ×{pipeline}"
            yield Figure(
                f"load / redis-benchmark: throughput, {where}",
                how,
                ratio_of_medians(found["ours rate"], found["theirs rate"]),
                Bound(low=RATE[pipeline]),
            )
            yield Figure(
                f"load / redis-benchmark: client CPU, {where}",
                f"{how}; user and system time of the whole process, for a request",
                ratio_of_medians(found["ours cpu"], found["theirs cpu"]),
                Bound(high=CPU[pipeline]),
            )
            yield Figure(
                f"load / redis-benchmark: sleeps, {where}",
                f"{how}; voluntary switches for a request: each answer to a sleeper wakes it",
                ratio_of_medians(found["ours sleeps"], found["theirs sleeps"]),
            )
            yield Figure(
                f"load / redis-benchmark: p99 as each says, {where}",
                f"{how}; ours counts to three digits",
                ratio_of_medians(found["ours p99"], found["theirs p99"]),
            )


def ours(port: int, pipeline: int, requests: int) -> Mapping[str, float]:
    """Requests a second and p99 in ms as the load generator says, CPU time and voluntary switches
    of its process for a request."""
    text, used = run(
        [str(native.binary("concurve-load")), f"127.0.0.1:{port}", "--workload", "get",
         "--sessions", str(SESSIONS), "--threads", "1", "--pipeline", str(pipeline),
         "--transactions", str(requests), "--json"]
    )  # fmt: skip
    figures = json.loads(text)
    p99 = figures["latency_ns"]["p99"] / 1e6
    return {"rate": figures["rate_per_second"], "p99": p99} | used.of_each(requests)


def theirs(tool: str, port: int, pipeline: int, requests: int) -> Mapping[str, float]:
    """The same of redis-benchmark."""
    text, used = run(
        [tool, "-h", "127.0.0.1", "-p", str(port), "-t", "get", "-c", str(SESSIONS),
         "-P", str(pipeline), "-n", str(requests), "-r", "100000", "--csv"]
    )  # fmt: skip
    row = next(row for row in csv.DictReader(text.splitlines()) if row["test"] == "GET")
    rate, p99 = float(row["rps"]), float(row["p99_latency_ms"])
    return {"rate": rate, "p99": p99} | used.of_each(requests)


class Used(NamedTuple):
    """What a process used."""

    cpu_seconds: float
    voluntary_switches: int

    def of_each(self, requests: int) -> dict[str, float]:
        """For a request; a process that never slept counts as one that slept once."""
        sleeps = max(self.voluntary_switches, 1)
        return {"cpu": self.cpu_seconds / requests, "sleeps": sleeps / requests}


def run(argv: Sequence[str]) -> tuple[str, Used]:
    """Standard output, and what the process used.

    Raises:
        SystemExit: it failed.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode()
    if process.returncode != 0:
        raise SystemExit(f"{argv[0]} exited with {process.returncode}: {text[-300:]}")
    return text, Used(usage.ru_utime + usage.ru_stime, usage.ru_nvcsw)


@contextmanager
def redis_server() -> Iterator[int]:
    """A separate Redis on a free port of loopback; it leaves nothing behind."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
             "--dir", folder],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_for(port)
            yield port
        finally:
            process.terminate()
            process.wait(10)


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
