"""A process beside one that joins Ray: ``python -m concurve.hosts.guard PLACES``.

While Ray registers a process, it lets nothing else of it run: where its head is stopped meanwhile,
the process waits without end, and where its raylet is gone, Ray ends it without a word of ours.
This one watches both from outside, and says what was lost in the place of a process that cannot; it
ends one that waits. It is told by a byte on its standard input that the other has gone on.

PLACES is a mapping in JSON, from the address to the host and what listens there. Exit codes: 0 the
other has gone on, 1 something was lost, 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from concurve.host.own_python import module
from concurve.hosts import listening
from concurve.hosts.connection import NamedHostLostError

#: What to try where nothing was measured yet: there is no run to resume.
REMEDY = "once it is back, concurve hosts down FILE, then up; then the same command again"

#: Seconds for the other process to say itself what was lost.
OWN_WORDS_SECONDS = 1.0

_LOOK_SECONDS = 0.1

_USAGE = "usage: python -m concurve.hosts.guard PLACES"


@contextlib.contextmanager
def guarded(places: Mapping[str, tuple[str, str]]) -> Iterator[None]:
    """Have a loss told while this process may be unable to."""
    process = subprocess.Popen(
        [*module("concurve.hosts.guard"), json.dumps(places)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for this process
    )
    assert process.stdin is not None
    try:
        yield
    finally:
        with contextlib.suppress(OSError), process.stdin:
            process.stdin.write(b".")
        threading.Thread(target=process.wait, daemon=True).start()


def lost_before_a_run(host: str, what: str) -> NamedHostLostError:
    """The loss of a host while nothing is measured yet."""
    return NamedHostLostError(f"host {host} was lost: {what}", REMEDY)


def main(argv: Sequence[str] | None = None) -> int:
    """Watch until the other has gone on, or something is lost."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        places = {address: (host, what) for address, (host, what) in json.loads(words[0]).items()}
    except (IndexError, ValueError, TypeError, AttributeError):
        print(_USAGE, file=sys.stderr)
        return 2
    other = os.getppid()
    found: queue.Queue[tuple[str, str]] = queue.Queue()
    with contextlib.ExitStack() as stack:
        for address in places:
            stack.enter_context(listening.watched(address, _telling(found, address)))
        while (said := _said(_LOOK_SECONDS)) is None and found.empty():
            pass
        if said is None:
            said = _said(OWN_WORDS_SECONDS)
        elif said == b"":
            # Ray has ended it; what was lost is seen now, if it was that.
            for address in places:
                reason, _ = listening.gone(address)
                if reason:
                    found.put((address, reason))
    if said or found.empty():
        return 0
    address, reason = found.get()
    host, what = places[address]
    print(lost_before_a_run(host, f"{what} at {address} is gone: {reason}"), file=sys.stderr)
    if said is None and os.getppid() == other:
        os.kill(other, signal.SIGKILL)
    return 1


def _telling(found: queue.Queue[tuple[str, str]], address: str) -> Callable[[str], None]:
    return lambda reason: found.put((address, reason))


def _said(seconds: float) -> bytes | None:
    """What the other says within a time: a byte, or nothing at its end; ``None`` if it is there."""
    readable, _, _ = select.select([0], [], [], seconds)
    return os.read(0, 1) if readable else None


if __name__ == "__main__":
    sys.exit(main())
