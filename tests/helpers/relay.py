"""A relay in user space that delays what goes through it: ``python -m tests.helpers.relay WAYS PATH
…``. For each socket of an agent it listens at a TCP port of loopback, passes bytes on in both ways,
each way as late as :class:`Way` has it, and prints the ports as JSON. It ends with its standard
input."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from concurve.hosts.connection import SocketConnection

_CHUNK = 1 << 16

_ROOT = Path(__file__).resolve().parents[2]


class Way(NamedTuple):
    """What is sent to a host, and what comes back, is late by so many ms: a normal distribution,
    cut at 0. Nothing overtakes what was sent before it."""

    there_ms: float
    back_ms: float
    spread_ms: float


class DelayedConnection(SocketConnection):
    """A connection to an agent through the relay."""

    def __init__(self, path: Path, port: int) -> None:
        super().__init__(path)
        self._port = port

    def another(self) -> DelayedConnection:
        return DelayedConnection(self._path, self._port)

    def _connected(self) -> socket.socket:
        if self._stream is None:
            self._stream = socket.create_connection(("127.0.0.1", self._port))
            self._stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._stream


@contextlib.contextmanager
def relayed(
    paths: Mapping[str, Path], ways: Mapping[str, Way]
) -> Iterator[dict[str, DelayedConnection]]:
    """Connections to agents, each by a way of its own."""
    words = [sys.executable, "-m", "tests.helpers.relay", json.dumps([ways[it] for it in paths])]
    folders = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    with subprocess.Popen(
        [*words, *map(str, paths.values())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            ports = json.loads(process.stdout.readline())
            yield {
                name: DelayedConnection(path, port)
                for (name, path), port in zip(paths.items(), ports, strict=True)
            }
        finally:
            process.stdin.close()


async def _passed_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late_ms: float, spread_ms: float
) -> None:
    """Pass what is read on, late, until there is no more."""
    loop, draw, last = asyncio.get_running_loop(), random.Random(), 0.0
    while data := await reader.read(_CHUNK):
        last = max(last, loop.time() + max(0.0, draw.gauss(late_ms, spread_ms)) / 1e3)
        loop.call_at(last, writer.write, data)
    loop.call_at(last, writer.close)


async def _served(paths: Sequence[str], ways: Sequence[Way]) -> None:
    servers = []
    for path, way in zip(paths, ways, strict=True):

        async def connect(
            reader: asyncio.StreamReader,
            writer: asyncio.StreamWriter,
            path: str = path,
            way: Way = way,
        ) -> None:
            answers, asks = await asyncio.open_unix_connection(path)
            with contextlib.suppress(OSError):  # one of both has gone
                await asyncio.gather(
                    _passed_on(reader, asks, way.there_ms, way.spread_ms),
                    _passed_on(answers, writer, way.back_ms, way.spread_ms),
                )

        servers.append(await asyncio.start_server(connect, "127.0.0.1", 0))
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    """Relay until standard input ends."""
    ways, *paths = sys.argv[1:]
    asyncio.run(_served(paths, [Way(*way) for way in json.loads(ways)]))


if __name__ == "__main__":
    main()
