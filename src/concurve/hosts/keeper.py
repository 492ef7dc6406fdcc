"""The keeper of an agent: ``python -m concurve.hosts.keeper AGENT``, which is a child of it.

It is a subreaper, so whatever the agent has started becomes its child if the agent and the runner
are killed, also what has a session and an environment of its own. It waits for the end of the
agent, lets the runner end its trial, as the kernel tells that to do, and kills what is left then.
It ends with the last of them, and heeds no signal that asks for its end before: the agent does.

Exit codes: 0 nothing is left, 1 something could not be ended, 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from concurve.host.orphans import become_subreaper, end_children, wait_for_children
from concurve.host.own_python import module
from concurve.hosts.lease import END_SECONDS

_USAGE = "usage: python -m concurve.hosts.keeper AGENT"


def kept() -> bool:
    """Go on in a child of a process that becomes its keeper; ``False``: there is none, and this is
    the process itself, which then ends."""
    become_subreaper()  # before there is somebody to keep
    reads, writes = os.pipe()
    if agent := os.fork():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # stays so
        words = (*module("concurve.hosts.keeper"), str(agent))
        with contextlib.suppress(OSError):  # the agent goes on without a keeper
            os.execv(words[0], words)
        return False
    os.close(writes)
    os.read(reads, 1)  # until the keeper is what it is
    os.close(reads)
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Keep an agent until nothing of it is left."""
    words = list(sys.argv[1:] if argv is None else argv)
    if len(words) != 1 or not words[0].isdigit():
        print(_USAGE, file=sys.stderr)
        return 2
    with contextlib.suppress(ChildProcessError):
        os.waitpid(int(words[0]), 0)
    if not wait_for_children(END_SECONDS):
        end_children()
    return int(not wait_for_children(0.0))


if __name__ == "__main__":
    sys.exit(main())
