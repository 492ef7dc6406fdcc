"""``concurve load`` with secrets: what the load generator prints goes through this process, which
hides them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, TextIO

from concurve.cli.streams import OutputError, tell_json
from concurve.errors import HostError
from concurve.host.orphans import ending_with_parent
from concurve.secrets import CALLED

#: Signals that end the load generator.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

#: So long a load generator may go on when its output cannot be printed. It prints when it has
#: measured, and verifies the data behind that.
REST_S = 600.0


def load_hidden(program: str, arguments: Sequence[str], is_json: bool = False) -> int:
    """Run the load generator; its exit code, 128 + n for a signal. ``is_json``: its standard output
    is JSON, which it writes when it has ended.

    Raises:
        HostError: it cannot be started.
        OutputError: standard output cannot be written; the load generator has ended, without an
            error of its own if the reader of standard output has gone.
    """
    process = _started(program, arguments)
    assert process.stdout is not None and process.stderr is not None
    errors = threading.Thread(target=_pass_on, args=(process.stderr, sys.stderr))
    errors.start()
    try:
        if is_json:
            _pass_json_on(process.stdout)
        else:
            _pass_on(process.stdout, sys.stdout)
    except OutputError as error:
        _read_rest(process)
        # A load that failed gives its own exit code: that a reader has gone is nothing beside it.
        if error.errno != errno.EPIPE or process.wait() <= 0:
            raise
    except BaseException:
        # Nobody reads its figures any more, so it is to put no more load on the server.
        process.terminate()
        process.stdout.read()  # it could not write its last lines, and end, without a reader
        raise
    finally:
        code = process.wait()
        errors.join()
    return code if code >= 0 else 128 - code


def _read_rest(process: subprocess.Popen[str]) -> None:
    """Let the load generator come to its end, and end it where it does not."""
    assert process.stdout is not None
    limit = threading.Timer(REST_S, process.terminate)
    limit.start()
    try:
        for _ in process.stdout:
            pass
    finally:
        limit.cancel()


def _started(program: str, arguments: Sequence[str]) -> subprocess.Popen[str]:
    """The load generator, to which signals are passed on. One that comes while it is started waits:
    Python ignores what a handler raises while a process forks, and the signal would be lost."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    end_with_us = ending_with_parent(signal.SIGTERM)

    def begin() -> None:
        end_with_us()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        # A process group of its own: ^C reaches us alone, and we pass it on once.
        process = subprocess.Popen(
            [program, *arguments],
            env={**os.environ, **CALLED},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
            preexec_fn=begin,  # noqa: PLW1509 - one thread
        )
        _pass_signals_on(process)
    except OSError as error:
        raise HostError(f"{program} cannot be started: {error.strerror}", "make build") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return process


def _pass_signals_on(process: subprocess.Popen[str]) -> None:
    """Let the load generator end at the signal that we get, so that its exit code names it."""
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda caught, _frame: process.send_signal(caught))


def _pass_json_on(source: IO[str]) -> None:
    """Print JSON as a whole: its lines are none by themselves."""
    if text := source.read():
        tell_json(text.encode())


def _pass_on(source: IO[str], target: TextIO) -> None:
    """Print line by line what a program prints."""
    for line in source:
        target.write(line)
        target.flush()
