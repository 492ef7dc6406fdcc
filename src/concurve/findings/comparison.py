"""The findings of a comparison of two runs, or of two levels of a factor."""

from __future__ import annotations

from typing import Literal

import msgspec

from concurve.estimate import Estimate
from concurve.findings.claims import VerdictName
from concurve.terms import IndicatorInfo, Level

Change = Literal["faster", "slower", "same", "undecided"]

Alike = Literal["alike", "not alike", "undecided"]

#: The interval of a ratio whose upper end is more than so many times its lower one says nothing.
OPEN_FROM = 100.0


class ByCpuTime(msgspec.Struct, frozen=True, kw_only=True):
    """What CPU time says of a cell that the wall time leaves open because the machine was not
    quiet, of a program whose one thread computes (decision 98): its verdict, and the ratio of the
    CPU times, new over base."""

    verdict: Change
    ratio: Estimate


class CellComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One cell against its counterpart: ``ratio`` is the new figure over the base's. Its ``n`` is
    the number of blocks that both share, or of trials, or of runs where several are a side: that of
    the side with fewer.

    ``note`` says why there is no ratio, or none with an interval. ``trials`` is how many of each
    would show a difference as large as the effect with a power of 80 %, ``cpu_trials`` how many by
    CPU time; both follow from the spreads alone. ``is_without_figures``: a side has none that may
    be compared, as it was skipped, or its load failed; a figure of 0 is one. ``verdict`` is that of
    the indicator; ``by_cpu_time`` has the verdict that stands in its place where the machine was
    not quiet, if there is one.
    """

    parameters: dict[str, Level]
    indicator: str
    verdict: Change
    ratio: Estimate | None = None
    base: Estimate | None = None
    new: Estimate | None = None
    note: str = ""
    trials: int | None = None
    cpu_trials: int | None = None
    is_without_figures: bool = False
    by_cpu_time: ByCpuTime | None = None

    @property
    def decided(self) -> Change:
        """The verdict that counts: by CPU time where the machine was not quiet and CPU time tells,
        else by the indicator."""
        return self.verdict if self.by_cpu_time is None else self.by_cpu_time.verdict

    @property
    def is_doubted(self) -> bool:
        """Does the ratio rest on trials during which the machine was not quiet?"""
        return self.ratio is not None and self.ratio.in_doubt


class ClaimOnBoth(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of a study on two machines: its verdict on each. ``alike``: it is supported on both,
    or refuted on both; undecided unless both are one of these."""

    id: str
    says: str
    base: VerdictName
    new: VerdictName
    alike: Alike


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs, or two levels of a factor, cell by cell.

    ``base`` and ``new`` name the sides. ``effect`` is the share below which a difference is not
    worth the name; ``factors`` those that vary among the cells. ``method`` is ``pairs`` inside a
    run, whose blocks hold both sides, and ``ranks`` between runs. ``advice`` says what would decide
    the cells that are undecided. ``run`` is the run inside of which levels are compared, empty
    between runs, whose sides name theirs. ``claims`` are those of a study whose sides are of two
    machines.
    """

    base: str
    new: str
    factors: tuple[str, ...]
    indicators: tuple[IndicatorInfo, ...]
    effect: float
    method: str
    cells: tuple[CellComparison, ...]
    advice: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    claims: tuple[ClaimOnBoth, ...] = ()
    run: str = ""
