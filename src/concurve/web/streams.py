"""Runs that browsers follow, by server-sent events.

One task reads a run for all browsers that follow it: when the store's file was written, at most
once a second, and less often where reading takes long, so that it takes a small share of one CPU.
A browser gets what changed since it was told last; a slow one is told less often, and nothing is
kept for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator

import msgspec

from concurve.errors import BusyError, ConcurveError
from concurve.store import Store
from concurve.store.rows import RUNNING
from concurve.web.aside import aside
from concurve.web.live import LiveRun, load_estimates

#: The store is looked at once in so many seconds,
LOOK_SECONDS = 1.0
#: reading it again takes at most this share of one CPU,
READ_SHARE_MAX = 0.005
#: and a run whose process may have been killed, which writes nothing, is read so often anyway.
ANYWAY_SECONDS = 10.0

#: Without an event for so long, an empty one shows whether the browser is still there.
BEAT_SECONDS = 15.0

#: So many streams are open at once.
STREAMS_MAX = 500

#: A browser that has lost its stream comes again after so many milliseconds.
_AGAIN_MS = 2000


class Follower:
    """Reads one run again and again, and wakes who waits for its next version."""

    def __init__(self, run: str, url: str | None) -> None:
        self._run = run
        self._url = url
        self._store: Store | None = None
        self._written: tuple[int, ...] | None = None
        self._read_at = 0.0
        self._took = 0.0
        self._next_version = asyncio.Event()
        self._task = asyncio.create_task(self._follow())
        self.live: LiveRun | None = None
        self.error: ConcurveError | None = None
        self.is_closed = False
        self.readers = 0

    async def wait(self, version: int) -> LiveRun | None:
        """The run once it has a later version; ``None`` where it is followed no more.

        Raises:
            ConcurveError: it cannot be read.
        """
        while not self.is_closed and (self.live is None or self.live.version <= version):
            if self.error is not None:
                raise self.error
            await self._next_version.wait()
        return None if self.is_closed else self.live

    def close(self) -> None:
        """Follow it no more, and let go who waits."""
        self.is_closed = True
        self._task.cancel()
        self._wake()

    def _wake(self) -> None:
        self._next_version.set()
        self._next_version = asyncio.Event()

    async def _follow(self) -> None:
        try:
            while True:
                if await aside(self._look):
                    self._wake()
                await asyncio.sleep(max(LOOK_SECONDS, self._took / READ_SHARE_MAX))
        except ConcurveError as error:
            self.error = error
        except Exception as error:
            self.error = ConcurveError(
                f"run {self._run} cannot be followed: {error!r}", f"concurve show {self._run}"
            )
        finally:
            self._wake()
            if self._store is not None:
                self._store.close()

    def _look(self) -> bool:
        """Read what is new, if anything may be; whether the run has a new version.

        What is done once is not counted as what reading takes: to import what estimates need, and
        to read all trials that were stored before. Else the page would stand still for a minute.
        """
        is_first = self.live is None
        if is_first:
            load_estimates()
        begun = time.thread_time()
        try:
            return self._read()
        finally:
            self._took = 0.0 if is_first else time.thread_time() - begun

    def _read(self) -> bool:
        if self._store is None:
            self._store = Store.existing(self._url)
        written, now = self._store.written(), time.monotonic()
        is_same = written is not None and written == self._written
        if is_same and now - self._read_at < ANYWAY_SECONDS:
            return False
        self._written, self._read_at = written, now
        if self.live is None:
            live = LiveRun(self._store.run(self._run))
            live.read(self._store)
            self.live = live
            return True
        return self.live.read(self._store)


class Streams:
    """The streams of all browsers: those of one run share a follower, which ends with the last."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._followers: dict[str, Follower] = {}
        self._open = 0

    async def of(self, run: str) -> AsyncGenerator[bytes, None]:
        """The events of a run until it has ended, and that of its end is told.

        Raises:
            BusyError: as many are open as there may be.
        """
        if self._open >= STREAMS_MAX:
            raise BusyError("too many pages follow runs", "close some of them")
        stream = self._stream(run)
        await anext(stream)  # it counts from now on, and not when its first event is sent
        return stream

    async def _stream(self, run: str) -> AsyncGenerator[bytes, None]:
        """Nothing, and then the events of a run."""
        follower = self._follower(run)
        follower.readers += 1
        self._open += 1
        try:
            yield b""
            yield b"retry: %d\n\n" % _AGAIN_MS
            async for event in _events(follower):
                yield event
        finally:
            self._open -= 1
            follower.readers -= 1
            if follower.readers == 0:
                self._end(run, follower)

    def close(self) -> None:
        """End all streams: the server ends."""
        for run, follower in list(self._followers.items()):
            self._end(run, follower)

    def _follower(self, run: str) -> Follower:
        found = self._followers.get(run)
        if found is None or found.error is not None:
            found = self._followers[run] = Follower(run, self._url)
        return found

    def _end(self, run: str, follower: Follower) -> None:
        follower.close()
        if self._followers.get(run) is follower:
            del self._followers[run]


async def _events(follower: Follower) -> AsyncIterator[bytes]:
    version = -1
    while True:
        try:
            live = await asyncio.wait_for(follower.wait(version), BEAT_SECONDS)
        except TimeoutError:
            yield b": still there\n\n"
            continue
        except ConcurveError as error:
            yield event("failed", {"what": error.what, "remedy": error.remedy})
            return
        if live is None:
            return
        state = live.state(version)
        version = state.version
        yield event("state", state)
        if state.state != RUNNING:  # as it was told: the run may have ended since
            return


def event(name: str, content: object) -> bytes:
    """An event of the event stream of HTML: JSON has no line end in it."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(content))
