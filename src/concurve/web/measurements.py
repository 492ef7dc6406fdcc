"""Runs that a browser starts: processes of ``concurve``, as from a command line.

Nothing is measured in the server's process. A run has a session of its own, so neither a closed
terminal nor a killed server ends it: its trials are stored by itself, and what it says into a
closed pipe is lost and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import shlex
import signal
import subprocess
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple

import msgspec

from concurve.errors import BusyError, ConcurveError, StoreError
from concurve.host.own_python import PYTHON
from concurve.host.processes import signal_if
from concurve.report import format as fmt
from concurve.secrets import KNOWN
from concurve.secrets.command_line import hide_words
from concurve.store import Store
from concurve.store.holder import process_of

#: What starts the command line in another process. It takes its words from standard input: all
#: users see those that a process is started with, and a form may hold a password.
_MAIN = """\
import json, os, sys
sys.argv = ["concurve", *json.loads(sys.stdin.buffer.read())]
nowhere = os.open(os.devnull, os.O_RDONLY)
os.dup2(nowhere, 0)
os.close(nowhere)
from concurve.cli import main
main()
"""
_COMMAND = (*PYTHON, "-c", _MAIN)

#: So many of the last lines of a run, each of so many characters at most, are kept and shown.
LINES_MAX = 100
LINE_CHARS_MAX = 2000

#: So long a plan may take to be made.
PLAN_SECONDS = 60.0

#: A process that says nothing more is looked at so often until it has ended.
_ENDED_SECONDS = 0.1

#: So many measurements are remembered after their end.
KEPT_MAX = 20

#: How a run and a campaign name themselves when they begin.
_BEGUN = re.compile(r"(?:, run |^concurve: campaign )(c?\d{8}-\d{6}-[0-9a-f]{4})(?=$|:)")

#: How one says that it waits for a quiet machine, once all that may be refused at once was not.
_WAITS = re.compile(r"^concurve: waiting at most .* for a quiet machine$")


class Done(NamedTuple):
    """What a command that has ended has printed, and its exit code."""

    code: int
    output: str
    said: str


class Said(msgspec.Struct, frozen=True):
    """What is known of a measurement: the run or campaign once it has begun, the last lines, and
    the exit code once it has ended."""

    number: int
    line: str
    run: str
    lines: tuple[str, ...]
    code: int | None


class Measurement:
    """A process that measures."""

    def __init__(self, number: int, line: str, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.line = line
        self.run = ""
        #: Set once it says that it waits for a quiet machine.
        self.waits = asyncio.Event()
        self._process = process
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._listening = asyncio.create_task(self._listen())

    @property
    def has_ended(self) -> bool:
        """Has its process ended?"""
        return self._process.poll() is not None

    def said(self) -> Said:
        """What is known of it."""
        return Said(self.number, self.line, self.run, tuple(self._lines), self._process.poll())

    def stop(self) -> None:
        """Ask it to stop in order; what was measured is stored."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    async def begun(self, seconds: float) -> Said:
        """What is known once its run is stored or it has ended, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.run and not self.has_ended:
                    await asyncio.sleep(0.05)
        return self.said()

    async def _listen(self) -> None:
        """Keep the last lines that it says; a progress line says at most one a second."""
        async for raw in _lines_of(await _reader(self._process)):
            line = fmt.clean(KNOWN.hide(raw))
            self._lines.append(line)
            if _WAITS.match(line):
                self.waits.set()
            if not self.run and (found := _BEGUN.search(line)):
                self.run = found[1]
        while not self.has_ended:
            await asyncio.sleep(_ENDED_SECONDS)


async def _reader(process: subprocess.Popen[bytes]) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stderr)
    return reader


async def _lines_of(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    rest = b""
    while part := await stream.read(65536):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line[:LINE_CHARS_MAX].decode(errors="replace").rstrip("\r")
        rest = rest[:LINE_CHARS_MAX]
    if rest:
        yield rest.decode(errors="replace")


class Measurements:
    """Starts measurements with the store ``db`` (as ``--db`` takes it), one at a time."""

    def __init__(self, db: str | None) -> None:
        self._db = db
        self._numbers = itertools.count(1)
        self._known: dict[int, Measurement] = {}
        self._starting = asyncio.Lock()

    def find(self, number: int) -> Measurement | None:
        """A measurement by its number."""
        return self._known.get(number)

    def under_way(self) -> list[Measurement]:
        """Those whose processes live."""
        return [item for item in self._known.values() if not item.has_ended]

    async def plan(self, words: Sequence[str]) -> Done:
        """What ``--dry-run`` says of a command line.

        Raises:
            ConcurveError: it took too long.
        """
        with _as_input([words[0], "--dry-run", *words[1:]]) as given:
            process = await asyncio.create_subprocess_exec(
                *_COMMAND,
                stdin=given,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(),
            )
        try:
            async with asyncio.timeout(PLAN_SECONDS):
                output, said = await process.communicate()
        except (TimeoutError, asyncio.CancelledError) as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise ConcurveError(
                f"the plan was not made within {PLAN_SECONDS:.0f} s", "fewer levels"
            ) from error
        assert process.returncode is not None
        return Done(process.returncode, _text(output), _text(said))

    async def start(self, words: Sequence[str]) -> Measurement:
        """Start a measurement.

        Raises:
            BusyError: one that was started here is under way.
        """
        async with self._starting:
            for other in self.under_way():
                raise BusyError(
                    f"a measurement is under way: {other.run or other.line}",
                    "wait until it has ended, or stop it",
                )
            # Not by asyncio: it kills its processes when its loop ends.
            with _as_input(words) as given:
                process = subprocess.Popen(
                    _COMMAND,
                    stdin=given,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    env=self._environment(),
                )
            number = next(self._numbers)
            started = Measurement(number, self.shown(words), process)
            self._known[number] = started
            for old in [n for n, item in self._known.items() if item.has_ended][:-KEPT_MAX]:
                del self._known[old]
            return started

    def shown(self, words: Sequence[str]) -> str:
        """The command line that does the same, without its secrets, to be copied."""
        hidden = hide_words(words, os.environ, KNOWN)
        store = [] if self._db is None else ["--db", KNOWN.hide_store(self._db)]
        return shlex.join(["concurve", *hidden[:1], *store, *hidden[1:]])

    def _environment(self) -> dict[str, str]:
        """That of the processes that are started. It names the store: other users see the words of
        a command line, and a URL may hold a password."""
        store = {} if self._db is None else {"CONCURVE_DB": KNOWN.reveal(self._db)}
        return {**os.environ, **store, "TERM": "dumb"}


def stop_run(run: str, store: Store) -> None:
    """Ask the process that measures a run to stop in order, whoever started it.

    Raises:
        StoreError: there is no such run, or nobody who measures it is seen from here.
    """
    if store.run(run).state != "running":
        raise StoreError(f"run {run} is not under way", "its page shows what it has measured")
    campaign = store.campaign_of(run)
    holders = [store.holder(run), *([] if campaign is None else [store.holder(campaign.id)])]
    holder = next(filter(process_of, holders), "")
    process = process_of(holder)
    if process is None:
        raise StoreError(
            f"the process that measures run {run} is not on this machine, or not to be seen here",
            "Ctrl-C where it was started",
        )
    try:
        signal_if(process, signal.SIGTERM, lambda: process_of(holder) == process)
    except ProcessLookupError:
        return  # it ended just now
    except PermissionError as error:
        raise StoreError(
            f"run {run} belongs to another user (process {process})", "stop it as that user"
        ) from error


@contextlib.contextmanager
def _as_input(words: Sequence[str]) -> Iterator[int]:
    """A descriptor from which the words of a command line are read, which nobody waits to write."""
    descriptor = os.memfd_create("words")
    try:
        os.write(descriptor, msgspec.json.encode(words))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _text(output: bytes) -> str:
    return fmt.clean_lines(KNOWN.hide(output.decode(errors="replace")))
