"""A process that runs before a trial and is to be left alone by it: a server that computes on
request and notes every signal that it gets."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concurve.host.attaching import find
from concurve.wire.spec import Attach

#: Three threads that live as long as the process; each computes for the CPU time that is asked for.
_CODE = """
import contextlib, os, signal, socket, sys, threading, time
noted = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
               signal.SIGUSR2, signal.SIGCONT, signal.SIGTSTP, signal.SIGALRM):
    signal.signal(number, lambda number, _: os.write(noted, b"%d\\n" % number))
signal.signal(signal.SIGWINCH, signal.SIG_IGN)
listening = socket.create_server(("127.0.0.1", 0))

def serve():
    while True:
        client, _ = listening.accept()
        # A client may be killed at any moment, also before it has asked.
        with client, contextlib.suppress(OSError):
            asked = client.recv(64)
            if not asked:
                continue
            end = time.thread_time() + float(asked)
            while time.thread_time() < end:
                pass
            client.sendall(b"x")

for _ in range(3):
    threading.Thread(target=serve, daemon=True).start()
print(listening.getsockname()[1], flush=True)
while True:
    signal.pause()
"""


class Victim:
    """The process, its port, and the file in which it notes signals."""

    def __init__(self, process: subprocess.Popen[str], port: int, noted: Path) -> None:
        self.pid = process.pid
        self.port = port
        self.process = process
        self._noted = noted

    def attach(self) -> Attach:
        return find(str(self.pid), "test")

    def signals(self) -> list[str]:
        """The signals that it got and lived through."""
        return self._noted.read_text().split()

    def state(self) -> dict[str, Any]:
        """What anybody who touches a process would change of it, with its start time."""
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        kept = ("SigBlk", "SigIgn", "SigCgt", "Cpus_allowed", "Mems_allowed", "TracerPid",
                "NoNewPrivs", "Threads", "Seccomp", "CapEff", "Uid")  # fmt: skip
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        pairs = (line.partition(":") for line in lines)
        return {
            **{name: value.strip() for name, _, value in pairs if name in kept},
            "stopped": stat[0] in "TtZX",
            "parent, group, session": stat[1:4],
            "started": stat[19],
            "nice": os.getpriority(os.PRIO_PROCESS, self.pid),
            "policy": os.sched_getscheduler(self.pid),
            "cpus": os.sched_getaffinity(self.pid),
            "cgroup": Path(f"/proc/{self.pid}/cgroup").read_text(),
            "oom": Path(f"/proc/{self.pid}/oom_score_adj").read_text(),
            "limits": Path(f"/proc/{self.pid}/limits").read_text(),
        }


@contextlib.contextmanager
def running_victim(folder: Path) -> Iterator[Victim]:
    """Start it in a session of its own, and kill it at the end."""
    noted = folder / "signals"
    process = subprocess.Popen(
        [sys.executable, "-c", _CODE, str(noted)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield Victim(process, int(process.stdout.readline()), noted)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
