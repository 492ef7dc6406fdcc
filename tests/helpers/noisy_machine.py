"""A machine with planted noise: its clock, its load, and an engine whose trials feel it.

Nothing here reads the real machine or sleeps. Time passes while a trial runs and while the load is
looked at.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from concurve.host.load import Load, Process
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeEngine

#: A time at which noise begins, and how long it lasts, in seconds.
Burst = tuple[float, float]

#: What noise takes of the machine's CPU time.
NOISE_SHARE = 0.5


def _forever(every: float, lasts: float, first: float = 0.0) -> Iterator[Burst]:
    begin = first
    while True:
        yield begin, lasts
        begin += every


def _at_random(mean_gap: float, mean_length: float) -> Iterator[Burst]:
    generator, now = random.Random(7), 0.0
    while True:
        now += generator.expovariate(1 / mean_gap)
        length = generator.expovariate(1 / mean_length)
        yield now, length
        now += length


#: Noises by name, written before the waits were; each begins on a quiet machine.
NOISES: dict[str, Callable[[], Iterator[Burst]]] = {
    "none": lambda: iter(()),
    "a build of 20 s each minute": lambda: _forever(60, 20, 10),
    "a browser, 4 s every 15 s": lambda: _forever(15, 4, 6),
    "bursts at random": lambda: _at_random(25, 8),
    "one job of 3 min": lambda: iter([(20.0, 180.0)]),
    "from 15 s on for ever": lambda: iter([(15.0, 1e9)]),
    "blips of 0.1 s each second": lambda: _forever(1.0, 0.1, 0.5),
}


class NoisyMachine:
    """A machine, its clock and the noise on it. ``slower``: so many times as long a trial takes
    while there is noise."""

    def __init__(self, noise: Iterator[Burst] | None = None, slower: float = 1.5) -> None:
        self.now = 0.0
        self.slower = slower
        self.looked_seconds = 0.0
        self._noise = noise if noise is not None else iter(())
        self._bursts: list[Burst] = []
        self._is_all_known = False
        #: When each trial began, by its name.
        self.began: dict[str, float] = {}

    def clock(self) -> float:
        return self.now

    def busy_seconds(self, begin: float, end: float) -> float:
        """How long there is noise between two times."""
        while not self._is_all_known and (not self._bursts or self._bursts[-1][0] < end):
            burst = next(self._noise, None)
            self._is_all_known = burst is None
            if burst is not None:
                self._bursts.append(burst)
        spans = (min(end, at + lasts) - max(begin, at) for at, lasts in self._bursts)
        return sum(span for span in spans if span > 0)

    def look(self, seconds: float) -> Load:
        """The load over the next seconds; they pass."""
        begin = self.now
        self.now += seconds
        self.looked_seconds += seconds
        share = NOISE_SHARE * self.busy_seconds(begin, self.now) / seconds
        busy = (Process("cc1plus", 20, 0, share),) if share else ()
        return Load(share, 0.0, busy)

    def engine(self, trial_seconds: Callable[[TrialSpec], float]) -> FakeEngine:
        """An engine whose trials take so long on a quiet machine, and whose records show what the
        noise took."""
        took: dict[str, float] = {}

        def wall(spec: TrialSpec, generator: random.Random) -> float:
            alone = trial_seconds(spec) * generator.lognormvariate(0, 0.01)
            share = self.busy_seconds(self.now, self.now + alone) / alone
            wall = alone * (1 + (self.slower - 1) * share)
            took[spec.trial] = NOISE_SHARE * self.busy_seconds(self.now, self.now + wall)
            self.began[spec.trial] = self.now
            self.now += wall
            return wall

        return FakeEngine(wall, steal_of=lambda spec: round(took[spec.trial] * 2 * 1e9))
