"""``concurve load`` with secrets: what the load generator prints goes through this process, which
hides them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, TextIO

from concurve.errors import HostError


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
        )
    except OSError as error:
        raise HostError(f"{program} cannot be started: {error.strerror}", "make build") from error
    assert process.stdout is not None and process.stderr is not None
    errors = threading.Thread(target=_pass_on, args=(process.stderr, sys.stderr))
    errors.start()
    while True:
        try:
            _pass_on(process.stdout, sys.stdout)
            code = process.wait()
            break
        except KeyboardInterrupt:
            process.terminate()
    errors.join()
    return code if code >= 0 else 128 - code


def _pass_on(source: IO[str], target: TextIO) -> None:
    """Print line by line what a program prints."""
    for line in source:
        target.write(line)
        target.flush()
