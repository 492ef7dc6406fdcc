"""The attendant of a remote role: ``python -m concurve.attendants.remote ADDRESS [--name PATTERN …]
[--http URL | --command PROGRAM ARGUMENT …]``.

The server runs elsewhere, and its processes are not seen. Where it shows counters, in Prometheus'
text format, they are read before the trial's load starts and after it has ended: of a counter the
difference is an indicator, of any other figure its last value. Exit codes: 0 stopped, 1 the
counters cannot be read, 2 wrong usage.
"""

from __future__ import annotations

import contextlib
import fnmatch
import http.client
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from typing import IO, NamedTuple, TypeVar

from concurve.attendants.attendant import (
    AttendantError,
    attend,
    block_stop_signals,
    name_thread,
    wait_for_stop,
)
from concurve.attendants.prometheus import Sample, Series, changes, parse
from concurve.wire.record import COUNTERS_OF, REMOTE_FACT, WARNINGS_FACT
from concurve.wire.report_channel import report

#: Seconds that a reading of the counters may take: less than the runner waits for a role to stop.
READING_SECONDS = 4.0

#: Most indicators that are reported; ``--name`` chooses.
INDICATORS_MAX = 200

#: A server with thousands of figures shows some MiB.
BYTES_MAX = 16 << 20

#: So much of what a command says on standard error is kept.
_SAID_BYTES_MAX = 64 << 10

_READ_BYTES = 1 << 16

T = TypeVar("T")

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
    return attend(f"{COUNTERS_OF}{task.address}", lambda: _attend(task))


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
    # Too many are refused before the load begins. One that is asked for may come with it.
    _refuse_too_many(_chosen(changes(before, before), task.names), task.source)
    report({"ready": True})
    wait_for_stop()
    found = list(changes(before, _samples(task)))
    chosen = _chosen(found, task.names)
    _refuse_too_many(chosen, task.source)
    if task.names and not chosen:
        # No error: some servers show a counter only once it has counted something.
        shown = ", ".join(name for name, _ in found[:3])
        said = f"no figure of {task.source} is called {' or '.join(task.names)}; it has {shown}"
        report({"fact": WARNINGS_FACT, "value": [said]})
    for name, value in chosen:
        report({"indicator": name, "value": value})


def _samples(task: _Task) -> dict[Series, Sample]:
    if task.read is None:
        return {}
    try:
        found = parse(task.read())
    except ValueError as error:
        raise AttendantError(f"{task.source} cannot be read: {error}") from error
    if not found:
        raise AttendantError(f"{task.source} shows no figure in Prometheus' text format")
    return found


def _chosen(found: Iterable[tuple[str, float]], names: Sequence[str]) -> list[tuple[str, float]]:
    """The figures that are asked for."""
    return [
        (name, value)
        for name, value in found
        if not names or any(fnmatch.fnmatchcase(name, wanted) for wanted in names)
    ]


def _refuse_too_many(chosen: Sequence[tuple[str, float]], source: str) -> None:
    if len(chosen) <= INDICATORS_MAX:
        return
    shown = ", ".join(name for name, _ in chosen[:3])
    raise AttendantError(
        f"{source} has {len(chosen)} figures such as {shown}, and {INDICATORS_MAX} can be "
        "reported: choose some by names in a study file, or by a command that prints some "
        "(command:sh -c 'curl -s URL | grep NAME')"
    )


def _fetched(url: str) -> str:
    # No proxy: the server is one of the user's own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def fetch() -> bytes:
        with opener.open(url, timeout=READING_SECONDS) as answer:
            return bytes(answer.read(BYTES_MAX + 1))

    try:
        return _text(_in_time(fetch), url)
    except TimeoutError as error:
        raise AttendantError(
            f"the counters at {url} did not come within {READING_SECONDS:g} s"
        ) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        is_refusal = isinstance(error, urllib.error.HTTPError)
        reason = getattr(error, "reason", error) if not is_refusal else error
        raise AttendantError(f"the counters at {url} cannot be read: {reason}") from error


def _printed(command: Sequence[str]) -> str:
    try:
        # A group of its own: what it has started ends with it.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
    except OSError as error:
        raise AttendantError(f"{command[0]} cannot be started: {error.strerror}") from error
    try:
        printed, said = _in_time(lambda: _outputs(process))
    except TimeoutError as error:
        raise AttendantError(
            f"{command[0]} did not print the counters within {READING_SECONDS:g} s"
        ) from error
    finally:
        # Before it is waited for: until then its number is its own.
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    if len(printed) <= BYTES_MAX and code != 0:
        lines = said.decode(errors="replace").strip().splitlines()
        raise AttendantError(
            f"{command[0]} exited with {code}: {lines[-1][-300:] if lines else 'it said nothing'}"
        )
    return _text(printed, command[0])


def _outputs(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """What a command printed, up to one byte more than it may, and the end of what it said; once it
    has ended, or printed too much. It is not waited for."""
    assert process.stdout is not None and process.stderr is not None
    said = bytearray()
    listening = threading.Thread(target=_keep_end, args=(process.stderr, said), daemon=True)
    listening.start()
    printed = bytearray()
    while part := process.stdout.read1(_READ_BYTES):  # type: ignore[attr-defined]
        printed += part
        if len(printed) > BYTES_MAX:
            return bytes(printed), b""
    listening.join()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    return bytes(printed), bytes(said)


def _keep_end(stream: IO[bytes], said: bytearray) -> None:
    """Read a stream to its end, and keep the end of it."""
    while part := stream.read1(_READ_BYTES):  # type: ignore[attr-defined]
        said += part
        del said[:-_SAID_BYTES_MAX]


def _in_time(work: Callable[[], T]) -> T:
    """What a function returns, or raises, that may wait for somebody else: however slowly that one
    writes, it has so long in all.

    Raises:
        TimeoutError: it takes longer. Its thread ends with this process.
    """
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(READING_SECONDS)
    if raised:
        raise raised[0]
    if not found:
        raise TimeoutError
    return found[0]


def _text(content: bytes, source: str) -> str:
    """What was read, if it is not too much.

    Raises:
        AttendantError: it is.
    """
    if len(content) > BYTES_MAX:
        raise AttendantError(
            f"{source} shows more than {BYTES_MAX >> 20} MiB of counters: is it Prometheus' text "
            "format?"
        )
    return content.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
