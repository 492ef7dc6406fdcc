"""A stand-in for the roles of a trial that run on other hosts: ``python -m concurve.hosts.stand_in
SOCKET GATE pass|hold``.

The runner starts it when every role before it is ready. It says so to the agent, opens its gate at
the time that the agent names, and exits (``pass``), or stays to mark the phases of the roles
elsewhere until the agent tells it to exit (``hold``). Exit codes: 0 done, 1 the agent is gone, 2
wrong usage.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from concurve.host.own_cpus import take_all_cpus
from concurve.hosts.messages import Arrive, Failed, ToStandIn, answer_of, packed, receive
from concurve.hosts.parts import ENDED, HOLD, PASS
from concurve.wire.report_channel import report

#: The phase by which a stand-in says where the beginning of the trial lies on the clock of the
#: host, with the fact that has the time of its edges.
CLOCK = "@clock"

#: A gate waits for its time without sleeping for so long, since a sleep ends late by a wake-up; no
#: longer, since gates of hosts that share a CPU would keep each other from it.
SPIN_NS = 50_000

#: A gate that was passed ends so much later: the end of a process takes some ms of a CPU, which the
#: gate of another host may wait for, or the roles that begin now.
LEAVE_SECONDS = 0.02

#: How late the kernel may end a sleep of this process, in ns: 50,000 if nobody says otherwise.
_TIMER_SLACK = Path("/proc/self/timerslack_ns")

_USAGE = "usage: python -m concurve.hosts.stand_in SOCKET GATE pass|hold"


def main(argv: Sequence[str] | None = None) -> int:
    """Stand in for roles elsewhere until the agent says otherwise."""
    words = list(sys.argv[1:] if argv is None else argv)
    if len(words) != 3 or words[2] not in (PASS, HOLD):
        print(_USAGE, file=sys.stderr)
        return 2
    path, gate, kind = words
    own = os.sched_getaffinity(0)
    if kind == PASS:
        take_all_cpus()  # those of the daemons may be busy when roles behind this gate start
    with contextlib.suppress(OSError):  # an older kernel, which lets a sleep end 50 µs late
        _TIMER_SLACK.write_text("1")
    try:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(path)
            stream.sendall(packed(Arrive(gate, kind == HOLD and gate != ENDED)))
            return _stand(stream, kind == PASS)
    except (OSError, EOFError, ValueError) as error:
        print(f"the agent of this host is gone: {error}", file=sys.stderr)
        return 1
    finally:
        with contextlib.suppress(OSError):  # the host has lost them meanwhile
            os.sched_setaffinity(0, own)  # the end takes some ms, and others are measured


def _stand(stream: socket.socket, passes: bool) -> int:
    """Do what the agent says; a gate that is passed ends it."""
    while True:
        told = answer_of(receive(stream))
        if isinstance(told, Failed):
            print(told.what, file=sys.stderr)
            return 1
        if not isinstance(told, ToStandIn):
            continue
        if told.open_at_ns is not None:
            _open(told.open_at_ns)
            if passes:
                time.sleep(LEAVE_SECONDS)
                return 0
        if told.line is not None:
            report(told.line)
        if told.exit:
            return 0


def _open(at_ns: int) -> None:
    """Be ready at a time of the monotonic clock, and say where that lies in the trial."""
    _wait_until(at_ns)
    report({"ready": True})
    now = time.monotonic_ns()
    report({"fact": CLOCK, "value": now})
    for edge in ("begin", "end"):
        report({"phase": CLOCK, "edge": edge, "at_ns": now})


def _wait_until(at_ns: int) -> None:
    while (left := at_ns - time.monotonic_ns()) > 0:
        if left > SPIN_NS:
            time.sleep((left - SPIN_NS) / 1e9)


if __name__ == "__main__":
    sys.exit(main())
