"""A planted server: it treats requests by a known rule, and logs when they came and were answered.

It speaks as much RESP as ``concurve-load --workload ping`` needs.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

PING = b"*1\r\n$4\r\nPING\r\n"
SERVICE_S = 0.05
"""What a request takes at least: far more than the machine adds to it."""

Rule = Callable[[int, float], float | None]
"""Seconds until the answer to the request with this number, at this time since the first;
``None``: never."""


@dataclass
class Planted:
    """A running server, and its log: when each request came and was answered, in ns of
    CLOCK_MONOTONIC."""

    rule: Rule
    port: int = 0
    log: list[tuple[int, int | None]] = field(default_factory=list)
    _first_ns: int | None = None
    _number: int = 0

    def latencies_ns(self, dues_ns: Sequence[int], end_ns: int) -> tuple[list[int], int]:
        """Latencies of the requests that were due then, in order, and how many were not answered
        by the end. Requests are sent in the order in which they are due. One without an answer
        has its age."""
        arrivals = sorted(self.log)
        answers = [answered for _, answered in arrivals[: len(dues_ns)]]
        answers += [None] * (len(dues_ns) - len(answers))
        in_time = [it if it is not None and it <= end_ns else None for it in answers]
        latencies = [(it or end_ns) - due for it, due in zip(in_time, dues_ns, strict=True)]
        return sorted(latencies), in_time.count(None)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        try:
            while await reader.readexactly(len(PING)):
                arrived_ns = time.monotonic_ns()
                self._first_ns = self._first_ns or arrived_ns
                delay = self.rule(self._number, (arrived_ns - self._first_ns) / 1e9)
                self._number += 1
                if delay is None:
                    self.log.append((arrived_ns, None))
                    continue
                await asyncio.sleep(delay)
                self.log.append((arrived_ns, time.monotonic_ns()))
                writer.write(b"+PONG\r\n")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # The client has ended, or the server is being ended in the middle of an answer.
        finally:
            writer.close()


def stops_after(seconds: float) -> Rule:
    """It answers for so long, then no more."""
    return lambda _, at: SERVICE_S if at < seconds else None


def pauses(_: int, at: float) -> float:
    """It answers nothing in the first 200 ms of each second."""
    return SERVICE_S + max(0.0, 0.2 - at % 1.0)


def answers_one_in_ten(number: int, _: float) -> float | None:
    """The connections of the others wait for ever."""
    return SERVICE_S if number % 10 == 0 else None


def quantile(ordered: Sequence[int], share: float) -> int:
    """The smallest value that at least this share of them does not exceed."""
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]


@contextmanager
def planted(rule: Rule) -> Iterator[Planted]:
    """A server on a free port of loopback, in a thread of this process."""
    server, ready = Planted(rule), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def listen() -> None:
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        server.port = listener.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        listener.close()

    def run() -> None:
        # The runner cancels the connections that are open at the end.
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(listen())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        ready.wait()
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
