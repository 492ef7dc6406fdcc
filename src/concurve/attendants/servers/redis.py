"""Redis: one thread executes, ``io-threads`` read, parse and write where many clients wait.

Redis turns its I/O threads on and off: on when twice as many clients wait to be written to as there
are threads, off when fewer do (``stopThreadedIOIfNeeded`` in ``networking.c``). So fewer threads
may be active than configured, and ``io_threads_active`` of ``INFO`` is to be read under load.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concurve.attendants.attendant import AttendantError
from concurve.attendants.servers.server import LOOPBACK, Reading, Server, Session, addresses

#: Nothing is stored: the data of a trial end with it.
_SETTINGS = ("--daemonize", "no", "--save", "", "--appendonly", "no")

#: The file with the password, which no other user of the machine may read.
_PASSWORD_FILE = "password.conf"

_ALL_WRITES, _THREADED = "total_writes_processed", "io_threaded_writes_processed"
_FIGURES = ("io_threads_active", _ALL_WRITES, _THREADED)

#: Seconds to wait for an answer; on an overloaded machine a request may wait long.
_PATIENCE_SECONDS = 60.0


class Redis(Server):
    """``redis-server``, from Debian's package of that name."""

    name = "redis-server"
    program = "redis-server"
    remedy = "apt-get install redis-server"
    variable = "CONCURVE_REDIS_SERVER"

    def argv(
        self, file: Path, folder: Path, port: int, arguments: Sequence[str], bind: str = LOOPBACK
    ) -> list[str]:
        kept = folder / _PASSWORD_FILE
        read = [str(kept)] if kept.exists() else []  # before all options
        own = ["--bind", *addresses(bind), *_SETTINGS, "--dir", str(folder), "--port", str(port)]
        return [str(file), *read, *own, *arguments]

    def admit(self, folder: Path, password: str) -> None:
        """Before it listens, so that no client comes before the password."""
        kept = folder / _PASSWORD_FILE
        kept.touch(mode=0o600)
        quoted = "".join(f"\\x{byte:02x}" for byte in password.encode())
        kept.write_text(f'requirepass "{quoted}"\n', encoding="ascii")

    def connect(self, port: int) -> Session | None:
        try:
            link = socket.create_connection((LOOPBACK, port), timeout=_PATIENCE_SECONDS)
        except ConnectionRefusedError:
            return None
        session = _RedisSession(link)
        said = session.ask("PING")
        if said.startswith("-LOADING"):
            link.close()
            return None
        if said != "+PONG" and not said.startswith("-NOAUTH"):
            raise ValueError(said)
        return session


class _RedisSession(Session):
    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._replies = link.makefile("rb")
        self._io_threads = 1

    def ask(self, line: str) -> str:
        """An inline command; its reply, of which bulk strings without their heading."""
        self._link.sendall(f"{line}\r\n".encode())
        first = self._replies.readline()
        if not first.startswith(b"$"):
            return first.decode(errors="replace").strip()
        return self._replies.read(int(first[1:]) + 2).decode(errors="replace")

    def protect(self, password: str) -> None:
        """It has asked for the password since it started: log in."""
        sent = "".join(f"${len(it.encode())}\r\n{it}\r\n" for it in ("AUTH", password))
        self._link.sendall(f"*2\r\n{sent}".encode())
        said = self._replies.readline().decode(errors="replace").strip()
        if said != "+OK":
            raise AttendantError(
                f"{Redis.name} does not take the password with which it was started: {said}"
            )

    def facts(self) -> dict[str, Any]:
        version = parse_info(self.ask("INFO server")).get("redis_version", "")
        found: dict[str, Any] = {"redis_version": version}
        if self.ask("CONFIG GET io-threads") == "*2":  # two bulk strings follow: name, value
            self._io_threads = int([self._replies.readline() for _ in range(4)][3])
            found["io_threads"] = self._io_threads
        return found

    def read(self) -> Reading:
        info = parse_info(self.ask("INFO server") + self.ask("INFO stats"))
        figures = {name: float(info[name]) for name in _FIGURES if name in info}
        return Reading(int(info.get("total_commands_processed", 0)), figures)

    def indicators(
        self, first: Reading, under_load: Sequence[Reading], last: Reading
    ) -> dict[str, float]:
        """``io_threads_active``: threads that read and write, the main one among them, at the last
        reading under load; ``io_threads_active_share``: share of these readings with all of them;
        ``io_threaded_writes_share``: share of the writes that an I/O thread made, exact over the
        trial. Figures that this version does not report are left out."""
        found: dict[str, float] = {}
        states = [r.figures["io_threads_active"] for r in under_load
                  if "io_threads_active" in r.figures]  # fmt: skip
        if states:
            found["io_threads_active"] = self._io_threads if states[-1] else 1
            found["io_threads_active_share"] = sum(states) / len(states)
        if {_ALL_WRITES, _THREADED} <= last.figures.keys():
            written = last.figures[_ALL_WRITES] - first.figures[_ALL_WRITES]
            threaded = last.figures[_THREADED] - first.figures[_THREADED]
            if written > 0:
                found["io_threaded_writes_share"] = threaded / written
        return found

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(OSError):  # Redis closes the connection instead of answering
            self.ask("SHUTDOWN NOSAVE")


def parse_info(text: str) -> dict[str, str]:
    """The answer to ``INFO``: ``name:value`` lines, in sections with a heading ``# Server``."""
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}
