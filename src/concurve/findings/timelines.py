"""How busy each CPU was, and what each thread did, in the course of single trials."""

from __future__ import annotations

import msgspec

from concurve.terms import Level


class TrialTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of a cell: the end of each interval in seconds after the trial's begin, and of each
    CPU the share of each interval in which it was busy, whatever process kept it so."""

    parameters: dict[str, Level]
    ends: tuple[float, ...]
    cpus: dict[int, tuple[float, ...]]

    def mean(self, cpu: int) -> float:
        """The share of the whole trial in which a CPU was busy."""
        begins = (0.0, *self.ends)
        spent = zip(begins, self.ends, self.cpus[cpu], strict=False)
        return sum((end - begin) * share for begin, end, share in spent) / self.ends[-1]


class CpuTimelines(msgspec.Struct, frozen=True, kw_only=True):
    """The timelines of some cells, each of its first trial in use. ``factors`` are those that vary;
    ``remark`` says how many cells are left out."""

    factors: tuple[str, ...]
    cells: tuple[TrialTimeline, ...]
    remark: str = ""


class ThreadState(msgspec.Struct, frozen=True):
    """What a thread did from ``begin`` to ``end``, in seconds after the trial's begin: the shares
    in which it ran and in which it waited for a CPU. In the rest it was blocked: ``wait`` is the
    kind that samples saw, empty where they saw none, and ``place`` where in the program it waited
    for a lock, empty where that is not known."""

    begin: float
    end: float
    running: float
    runnable: float
    wait: str = ""
    place: str = ""

    @property
    def blocked(self) -> float:
        """The share in which it neither ran nor waited for a CPU."""
        return max(0.0, 1 - self.running - self.runnable)


class ThreadLane(msgspec.Struct, frozen=True, kw_only=True):
    """A thread of a role: its states follow each other."""

    role: str
    tid: int
    name: str
    states: tuple[ThreadState, ...]

    @property
    def running(self) -> float:
        """The share of its life in which it ran."""
        return self._mean([it.running for it in self.states])

    @property
    def runnable(self) -> float:
        """The share of its life in which it waited for a CPU."""
        return self._mean([it.runnable for it in self.states])

    @property
    def blocked(self) -> float:
        """The share of its life in which it neither ran nor waited for a CPU."""
        return self._mean([it.blocked for it in self.states])

    def _mean(self, shares: list[float]) -> float:
        spent = [it.end - it.begin for it in self.states]
        sums = sum(time * share for time, share in zip(spent, shares, strict=True))
        return sums / sum(spent)


class TrialThreads(msgspec.Struct, frozen=True, kw_only=True):
    """The threads of one trial of a cell that did most; ``threads`` is how many samples saw."""

    parameters: dict[str, Level]
    lanes: tuple[ThreadLane, ...]
    threads: int


class ThreadTimelines(msgspec.Struct, frozen=True, kw_only=True):
    """The threads of some cells, each of its first trial in use that followed them. ``factors`` are
    those that vary; ``remark`` says how many cells are left out."""

    factors: tuple[str, ...]
    cells: tuple[TrialThreads, ...]
    remark: str = ""
