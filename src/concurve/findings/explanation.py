"""Where the thread time of an operation goes, and what limits it."""

from __future__ import annotations

from math import fsum
from typing import Literal

import msgspec

from concurve.estimate import Estimate
from concurve.terms import Level

#: Reports of runs with more trials do not say what limits a cell; ``concurve explain`` still does.
REPORT_TRIALS = 5_000

Cause = Literal["cpu", "lock", "coherency", "io", "client", "contamination", "none"]


class CellExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the thread time of an operation goes in one cell, and what limits it.

    ``per_operation`` divides ``total`` into ``cpu``, ``run_queue`` and ``blocked`` (in ns of the
    time of active threads); ``by_kind`` divides what is blocked, and is empty without samples.
    ``shares`` are the parts of ``total`` in the order of a bar. ``excess`` is what exceeds the
    cell with the parameters ``base``; it is empty for that cell itself. ``missing`` names the
    kinds of evidence that the records lack, and why. ``limit`` is the resource of a loaded server
    that is used up: CPUs, a kind of threads, or the load. ``doubt`` says why its figures or those
    of its base are in doubt: then a cause is named only if the quiet trials alone show the same, or
    if it is ``contamination``.
    """

    parameters: dict[str, Level]
    cause: Cause
    evidence: str
    index: int = 0
    limit: str = ""
    doubt: str = ""
    base: dict[str, Level] | None = None
    per_operation: dict[str, Estimate] = {}
    by_kind: dict[str, Estimate] = {}
    shares: dict[str, float] = {}
    excess: dict[str, Estimate] = {}
    threads: int | None = None
    trials: int = 0
    missing: dict[str, str] = {}

    def share_of(self, *parts: str) -> float:
        """The sum of some of the ``shares``; a part that is none of them counts as 0."""
        return fsum(self.shares.get(part, 0.0) for part in parts)

    @property
    def blocked_share(self) -> float:
        """The share of everything that is neither on a CPU nor in a queue for one."""
        return self.share_of(*(part for part in self.shares if part not in ("cpu", "run_queue")))


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What limits each cell of a run. ``factors`` are those that vary; ``operation`` says what
    counts as one; ``missing`` and ``notes`` hold for all cells."""

    run: str
    study: str
    factors: tuple[str, ...]
    work: str | None
    operation: str
    cells: tuple[CellExplanation, ...]
    missing: dict[str, str] = {}
    notes: tuple[str, ...] = ()
