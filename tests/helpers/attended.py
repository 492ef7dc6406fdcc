"""An attendant of a real server, with its report channel."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

#: Seconds for whatever is sure to come, on the busiest machine too.
PATIENCE = 300.0


class Attended:
    """A server by its name and file, with its attendant."""

    def __init__(
        self,
        name: str,
        file: str,
        port: int,
        *arguments: str,
        before: Sequence[str] = (),
        **env: str,
    ) -> None:
        """``before`` is a command that starts the rest, such as one that enters a namespace."""
        reads, writes = os.pipe()
        self.port = port
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "concurve.attendants.servers.attend", name, file,
             "--port", str(port), *arguments],
            env={**os.environ, **env, "CONCURVE_REPORT": str(writes)},
            pass_fds=[writes],
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        os.close(writes)
        self.reports = os.fdopen(reads)
        self.lines: list[dict[str, Any]] = []

    def wait_until_ready(self) -> None:
        for line in self.reports:
            self.lines.append(json.loads(line))
            if self.lines[-1].get("ready"):
                return
        raise AssertionError(f"it was never ready: {self.end()}")

    def end(self) -> str:
        """What it said when it had ended."""
        _, said = self.process.communicate(timeout=PATIENCE)
        self.lines += [json.loads(line) for line in self.reports]
        self.reports.close()
        return said

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def of(self, kind: str) -> dict[str, Any]:
        return {line[kind]: line["value"] for line in self.lines if kind in line}


def refused(port: int) -> bool:
    """Does no process listen on the port?"""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
