"""The attendant of a remote role: ``python -m concurve.attendants.remote ADDRESS [--name PATTERN …]
[--http URL | --command PROGRAM ARGUMENT …]``.

The server runs elsewhere, and its processes are not seen. Where it shows counters, in Prometheus'
text format, they are read before the trial's load starts and after it has ended: of a counter the
difference is an indicator, of any other figure its last value. Exit codes: 0 stopped, 1 the
counters cannot be read, 2 wrong usage.
"""

from __future__ import annotations

import fnmatch
import http.client
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from concurve.attendants.attendant import (
    AttendantError,
    attend,
    block_stop_signals,
    name_thread,
    wait_for_stop,
)
from concurve.attendants.prometheus import Sample, changes, parse
from concurve.wire.record import REMOTE_FACT
from concurve.wire.report_channel import report

#: Seconds that a reading of the counters may take: less than the runner waits for a role to stop.
READING_SECONDS = 4.0

#: Most indicators that are reported; ``--name`` chooses.
INDICATORS_MAX = 200

_BYTES_MAX = 16 << 20

_USAGE = """usage: python -m concurve.attendants.remote ADDRESS [--name PATTERN ...] \
[--http URL | --command PROGRAM ARGUMENT ...]"""


class _Task(NamedTuple):
    address: str
    names: tuple[str, ...]
    read: Callable[[], str] | None
    source: str


def main(argv: Sequence[str] | None = None) -> int:
    """Read the counters, report ready, wait for SIGTERM or SIGINT, and read them again."""
    name_thread()
    task = _parse(list(sys.argv[1:] if argv is None else argv))
    if task is None:
        print(_USAGE, file=sys.stderr)
        return 2
    return attend(task.address, lambda: _attend(task))


def _parse(argv: list[str]) -> _Task | None:
    if not argv or argv[0].startswith("--"):
        return None
    address, rest = argv[0], argv[1:]
    names: list[str] = []
    while rest[:1] == ["--name"] and len(rest) > 1:
        names.append(rest[1])
        rest = rest[2:]
    if not rest:
        return _Task(address, tuple(names), None, "")
    if rest[0] == "--http" and len(rest) == 2:
        url = rest[1]
        return _Task(address, tuple(names), lambda: _fetched(url), url)
    if rest[0] == "--command" and len(rest) > 1:
        command = rest[1:]
        return _Task(address, tuple(names), lambda: _printed(command), " ".join(command))
    return None


def _attend(task: _Task) -> None:
    block_stop_signals()
    report({"fact": REMOTE_FACT, "value": task.address})
    before = _samples(task)
    report({"ready": True})
    wait_for_stop()
    found = changes(before, _samples(task))
    chosen = _chosen(found, task.names)
    if len(chosen) > INDICATORS_MAX:
        shown = ", ".join(name for name, _ in chosen[:3])
        raise AttendantError(
            f"{task.source} has {len(chosen)} figures, {INDICATORS_MAX} can be reported: choose "
            f"them by names, such as {shown}"
        )
    for name, value in chosen:
        report({"indicator": name, "value": value})


def _samples(task: _Task) -> dict[str, Sample]:
    if task.read is None:
        return {}
    found = parse(task.read())
    if not found:
        raise AttendantError(f"{task.source} shows no figure in Prometheus' text format")
    return found


def _chosen(found: Iterable[tuple[str, float]], names: Sequence[str]) -> list[tuple[str, float]]:
    if not names:
        return list(found)
    return [
        (name, value)
        for name, value in found
        if any(fnmatch.fnmatchcase(name, wanted) for wanted in names)
    ]


def _fetched(url: str) -> str:
    # No proxy: the server is one of the user's own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=READING_SECONDS) as answer:
            return bytes(answer.read(_BYTES_MAX)).decode(errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        is_refusal = isinstance(error, urllib.error.HTTPError)
        reason = getattr(error, "reason", error) if not is_refusal else error
        raise AttendantError(f"the counters at {url} cannot be read: {reason}") from error


def _printed(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=READING_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise AttendantError(f"{command[0]} cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise AttendantError(
            f"{command[0]} did not print the counters within {READING_SECONDS:g} s"
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise AttendantError(
            f"{command[0]} exited with {done.returncode}: {said[-1] if said else 'it said nothing'}"
        )
    return done.stdout.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
