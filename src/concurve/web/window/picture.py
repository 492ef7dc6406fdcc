"""A picture that is computed: a process of its own, which keeps the picture in a file.

Lines that are complete are sent as they come. One picture is computed at a time, and none while a
measurement runs: one that begins ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec

from concurve.errors import StudyError
from concurve.host.machine import allowed_cpus
from concurve.report import format as fmt
from concurve.web.aside import aside
from concurve.web.bookmarks import to_toml
from concurve.web.window.cpus import CpusOverTime, Utilisation
from concurve.web.window.reported import Reported
from concurve.web.window.setting import Setting, words
from concurve.web.window.threads import ThreadsOf

#: The picture is looked at so soon after its start, and so often where it leaves a CPU idle.
LOOK_SECONDS = 0.15
#: Where it uses all CPUs, each look takes time from it, in the browser most of all: so often, and
#: at longer distances, a tenth of the time that it has taken, the longer it takes.
BUSY_LOOK_SECONDS = 2.0
_BUSY_LOOK_SHARE = 0.1
#: A page asks for the state so often where a CPU is idle.
_ASK_SECONDS = 0.3

#: The threads are looked at so often, and less often where that takes long.
THREADS_SECONDS = 0.5
_THREADS_SHARE_MAX = 0.02

#: The CPUs are looked at so often. The kernel counts in ticks of 10 ms.
CPUS_SECONDS = 0.5

#: Bytes of the number of a line.
_NUMBER = struct.Struct("<I")


class ThreadTimes(msgspec.Struct, frozen=True):
    """A thread: what it computed in its last computation, and what the scheduler says of it.
    ``number`` is that of its pixels; 0: it has none of its own."""

    name: str
    number: int = 0
    compute_seconds: float | None = None
    pixels: int | None = None
    cpu_seconds: float | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    priority: int | None = None


class WindowState(msgspec.Struct, frozen=True):
    """A picture: is it being computed, how long its last computation took, the sum of its pixels,
    what went wrong, its threads, and the readings of the CPUs that were asked for. A page asks
    again after ``ask_again_seconds``."""

    number: int
    is_computing: bool
    computations: int
    compute_seconds: float | None
    pixel_sum: int | None
    collector: str
    said: str
    threads: tuple[ThreadTimes, ...]
    utilisation: Utilisation
    ask_again_seconds: float


class Picture:
    """A picture that is computed by a process, from its start on."""

    def __init__(self, number: int, setting: Setting, kernel: tuple[str, ...]) -> None:
        self.number = number
        self.setting = setting
        self._folder = tempfile.TemporaryDirectory(prefix="concurve-window-")
        folder = Path(self._folder.name)
        self._live = folder / "picture"
        location = folder / "location.toml"
        location.write_text(to_toml(setting.bookmark), encoding="utf-8")
        self._live.touch()
        line = words(setting, str(location), str(self._live), kernel)
        self._cpus = CpusOverTime(allowed_cpus())
        self._begun = time.monotonic()
        self._confined = setting.cpus or allowed_cpus()
        reading, writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(writing,),
                env={**os.environ, "CONCURVE_REPORT": str(writing)},
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._report = os.fdopen(reading, "rb")
        self._reported = Reported(setting.kernel)
        self._threads_of = ThreadsOf(self._process.pid)
        self._said = ""
        self._ended_for = ""
        self._listening = asyncio.create_task(aside(self._listen))
        self._tasks = [
            self._listening,
            asyncio.create_task(self._watch_threads()),
            asyncio.create_task(self._watch_cpus()),
        ]

    @property
    def is_computing(self) -> bool:
        """Does its process live?"""
        return self._process.poll() is None

    def state(self, since: int = 0) -> WindowState:
        """What is known of it now, with the readings of the CPUs from the number ``since`` on."""
        return WindowState(
            number=self.number,
            is_computing=self.is_computing,
            computations=self._reported.computations,
            compute_seconds=self._reported.compute_seconds,
            pixel_sum=self._reported.pixel_sum,
            collector=fmt.clean(self._reported.collector),
            said=self._ended_for or self._said,
            threads=tuple(self._threads()),
            utilisation=self._cpus.since(since),
            ask_again_seconds=min(max(_ASK_SECONDS, self._look_seconds()), BUSY_LOOK_SECONDS),
        )

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of the picture that are complete, as many as there are at a time, and all of
        them in the end: of each its number, the counts of its pixels, and their threads. Lines that
        other threads have computed again by then come once more."""
        import numpy as np

        width, height = self.setting.bookmark.width, self.setting.bookmark.height
        pixels = width * height
        missing = np.arange(height)
        sent = np.zeros((height, width), dtype="<u2")
        while len(missing) or self.setting.repeat > 1:
            is_last = not self.is_computing
            raw = b""
            if len(missing) or is_last:
                try:
                    raw = await asyncio.to_thread(self._live.read_bytes)
                except OSError:  # another picture has taken its place
                    return
            if len(raw) == 6 * pixels:
                counts = np.frombuffer(raw, dtype="<u4", count=pixels).reshape(height, width)
                owners = np.frombuffer(raw, dtype="<u2", offset=4 * pixels).reshape(height, width)
                ready = counts[missing].min(axis=1) >= (0 if is_last else 1)
                again = np.flatnonzero((owners != sent).any(axis=1)) if is_last else missing[:0]
                lines = np.union1d(missing[ready], again)
                sent[lines] = owners[lines]
                if len(lines):
                    yield b"".join(
                        _NUMBER.pack(line) + counts[line].tobytes() + owners[line].tobytes()
                        for line in lines.tolist()
                    )
                missing = missing[~ready]
            if is_last:
                return
            is_early = len(missing) == height and time.monotonic() - self._begun < 1
            wait = LOOK_SECONDS if is_early else self._look_seconds()
            await asyncio.wait({self._listening}, timeout=wait)

    def _look_seconds(self) -> float:
        busy = min(self.setting.threads, len(self._confined))
        return look_seconds(busy, len(allowed_cpus()), time.monotonic() - self._begun)

    def confine(self, cpus: tuple[int, ...]) -> None:
        """Confine all threads of the running process to these CPUs.

        Raises:
            StudyError: it has ended, or a CPU is not granted.
        """
        wrong = set(cpus) - set(allowed_cpus())
        if wrong or not cpus:
            raise StudyError(f"CPUs {sorted(wrong or cpus)} are not granted", "some that are")
        if not self.is_computing:
            raise StudyError("the picture is complete", "start it again")
        self._confined = cpus
        for thread in self._threads_of.ids():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, cpus)

    def stop(self, because: str = "") -> None:
        """End its process; the page says why."""
        self._ended_for = because
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """End it, and remove its files."""
        self.stop()
        self._process.wait()
        for task in self._tasks:
            task.cancel()
        self._folder.cleanup()

    def _listen(self) -> None:
        """Take what the kernel reports, until it has ended."""
        with self._report:
            for raw in self._report:
                self._reported.take(raw)
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            self._said = fmt.clean(stream.read(4000).decode(errors="replace").strip())
        self._process.wait()

    async def _watch_threads(self) -> None:
        while self.is_computing:
            took = await asyncio.to_thread(self._look_at_threads)
            await asyncio.sleep(max(THREADS_SECONDS, took / _THREADS_SHARE_MAX))

    def _look_at_threads(self) -> float:
        """Read what the scheduler says of each thread; how long that took."""
        begun = time.thread_time()
        self._threads_of.look()
        return time.thread_time() - begun

    async def _watch_cpus(self) -> None:
        while self.is_computing:
            await asyncio.sleep(CPUS_SECONDS)
            await asyncio.to_thread(self._cpus.look)

    def _threads(self) -> Iterator[ThreadTimes]:
        workers, scheduled = self._reported.workers, self._threads_of.workers
        for name in sorted({*workers, *scheduled}, key=_number_in):
            own, seen = workers.get(name, {}), scheduled.get(name)
            pixels = own.get("worker_pixels")
            yield ThreadTimes(
                name=fmt.clean(name),
                number=_number_in(name) if name.startswith("Thread-") else 0,
                compute_seconds=own.get("worker_compute_seconds"),
                pixels=None if pixels is None else int(pixels),
                cpu_seconds=None if seen is None else seen.cpu_seconds,
                voluntary_switches=None if seen is None else seen.voluntary_switches,
                involuntary_switches=None if seen is None else seen.involuntary_switches,
                priority=None if seen is None else seen.priority,
            )
        if (others := self._threads_of.others) is not None:
            count, seen = others
            yield ThreadTimes(
                name=f"{count} other threads" if count > 1 else "the main thread",
                cpu_seconds=seen.cpu_seconds,
                voluntary_switches=seen.voluntary_switches,
                involuntary_switches=seen.involuntary_switches,
            )


def look_seconds(busy: int, cpus: int, elapsed: float) -> float:
    """Seconds until a picture is looked at again that has kept so many CPUs busy for so many
    seconds."""
    if busy < cpus:
        return LOOK_SECONDS
    return max(BUSY_LOOK_SECONDS, _BUSY_LOOK_SHARE * elapsed)


def _number_in(name: str) -> int:
    """The number at the end of a thread's name; 0 where there is none."""
    last = name.replace("-", " ").rpartition(" ")[2]
    return int(last) if last.isdecimal() else 0


class Window:
    """The pictures of all pages: one at a time, the last one kept."""

    def __init__(self) -> None:
        self._numbers = 0
        self.picture: Picture | None = None

    def start(self, setting: Setting, kernel: tuple[str, ...]) -> Picture:
        """Compute a picture by the kernel of this command line, in place of the one before.

        Raises:
            StudyError, HostError: a setting that cannot be computed; the one before goes on.
        """
        words(setting, "", "", kernel)  # a setting that is refused ends no picture
        self.close()
        self._numbers += 1
        self.picture = Picture(self._numbers, setting, kernel)
        return self.picture

    def find(self, number: int) -> Picture:
        """The picture of this number.

        Raises:
            StudyError: another one has taken its place.
        """
        if self.picture is None or self.picture.number != number:
            raise StudyError("another picture has taken its place", "start it again")
        return self.picture

    def give_way(self) -> None:
        """End the picture that is being computed: a measurement begins."""
        if self.picture is not None and self.picture.is_computing:
            self.picture.stop("the picture was ended: a measurement has begun on this machine")

    def close(self) -> None:
        """End the picture, and remove its files."""
        if self.picture is not None:
            self.picture.close()
            self.picture = None
