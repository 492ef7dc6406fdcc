"""``concurve load`` with secrets: what the load generator prints goes through this process, which
hides them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, TextIO

from concurve.errors import HostError
from concurve.host.orphans import ending_with_parent


def load_hidden(program: str, arguments: Sequence[str]) -> int:
    """Run the load generator; its exit code, 128 + n for a signal.

    Raises:
        HostError: it cannot be started.
    """
    try:
        # A process group of its own: ^C reaches us alone, and we pass it on once.
        process = subprocess.Popen(
            [program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
            preexec_fn=ending_with_parent(signal.SIGTERM),  # noqa: PLW1509 - one thread
        )
    except OSError as error:
        raise HostError(f"{program} cannot be started: {error.strerror}", "make build") from error
    _pass_signals_on(process)
    assert process.stdout is not None and process.stderr is not None
    errors = threading.Thread(target=_pass_on, args=(process.stderr, sys.stderr))
    errors.start()
    _pass_on(process.stdout, sys.stdout)
    code = process.wait()
    errors.join()
    return code if code >= 0 else 128 - code


def _pass_signals_on(process: subprocess.Popen[str]) -> None:
    """Let the load generator end at the signal that we get, so that its exit code names it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda caught, _frame: process.send_signal(caught))


def _pass_on(source: IO[str], target: TextIO) -> None:
    """Print line by line what a program prints."""
    for line in source:
        target.write(line)
        target.flush()
