"""How busy each CPU was in the course of single trials."""

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
