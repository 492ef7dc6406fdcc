"""The findings of a run for its cells and their trials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from concurve import words
from concurve.estimate import Estimate
from concurve.terms import GIVEN_UP, Level

CellStatus = Literal["ok", "partial", "skipped", "pending"]


#: The part of the rate that a load was asked for which it had, and from which part on it was kept.
RATE_SHARE = re.compile(r"(?:\b|_)rate_asked_share$")
RATE_KEPT_MIN = 0.99


class TwoLevels(msgspec.Struct, frozen=True, kw_only=True):
    """The trials of a cell are at two levels of its primary indicator: the median of each, and how
    many trials it has. ``clear``: there is a gap between them that a tail would not have; without
    it they may be one level that spreads widely to one side."""

    low: float
    high: float
    trials_low: int
    trials_high: int
    clear: bool


class SlowTail(msgspec.Struct, frozen=True, kw_only=True):
    """So many ``trials`` of a cell are far worse than its others: ``factor`` is the median of those
    over that of the others, ``worst`` the worst value."""

    trials: int
    factor: float
    worst: float


class FastTail(msgspec.Struct, frozen=True, kw_only=True):
    """So many ``trials`` of a cell are far better than its others: ``factor`` is the median of
    those over that of the others, ``best`` the best value."""

    trials: int
    factor: float
    best: float


class OddTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The only outlier of a cell, without which the interval of its figure were less than half as
    wide: the number of its ``trial``, in the order of time from 1 on, its ``value``, and the figure
    ``without`` it, with the interval from ``low`` to ``high``. That is information: the figure of
    the cell keeps the trial."""

    trial: int
    value: float
    without: float
    low: float
    high: float


class CellFindings(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of levels.

    ``including_rejects`` repeats the primary indicator over all trials that gave a figure, so
    that figures stand with and without; it is ``None`` where nothing was rejected.
    ``doubtful`` trials in use are in doubt, because the machine was not quiet. Where enough others
    are left, ``set_aside`` of them do not count in the primary indicator, which
    ``including_doubtful`` repeats over all trials in use; else the figures say that they are in
    doubt.
    ``two_levels``, ``slow_tail`` and ``fast_tail`` say where the median alone does not tell how the
    trials lie, and ``odd_trial`` which single one makes the interval wide. ``widened``: the ratios
    to the base in successive blocks depend on each other, and the interval of the speed-up is so
    many times as wide for that; ``widened_by_chance``: among so many cells one may seem so by
    chance.
    ``contradicted`` names the latencies that Little's law contradicts.
    ``load_failed`` says what of its load failed where it is so much that the cell is not compared.
    ``base`` is the index of the cell that speed-up and efficiency refer to. ``resolutions``
    says by how much a reading of an indicator may be off, in its unit.
    """

    index: int
    parameters: dict[str, Level]
    status: CellStatus
    indicators: Mapping[str, Estimate]
    resolutions: Mapping[str, float] = {}
    absent: dict[str, str] = {}
    including_rejects: Estimate | None = None
    two_levels: TwoLevels | None = None
    slow_tail: SlowTail | None = None
    fast_tail: FastTail | None = None
    odd_trial: OddTrial | None = None
    widened: float | None = None
    widened_by_chance: bool = False
    contradicted: tuple[str, ...] = ()
    doubtful: int = 0
    set_aside: int = 0
    including_doubtful: Estimate | None = None
    load_failed: str = ""
    base: int | None = None
    trials: int = 0
    stop_reason: str = ""
    note: str = ""

    @property
    def is_of_setting(self) -> bool:
        """Do the figures say what the setting does? Those of a cell that was skipped are of the
        trials until it broke off, those of a load that failed are of its errors."""
        return self.status != "skipped" and not self.load_failed

    @property
    def rate_share(self) -> float | None:
        """The least part of the rate asked for that one of its loads had; ``None`` where none was
        asked for one."""
        found = [it.value for name, it in self.indicators.items() if RATE_SHARE.search(name)]
        return min(found, default=None)

    @property
    def keeps_rate(self) -> bool:
        """Did its loads keep the rate that they were asked for? Then nothing limits it there."""
        return self.rate_share is not None and self.rate_share >= RATE_KEPT_MIN

    @property
    def has_failed(self) -> bool:
        """Were its further trials skipped because one failed, and not as its own check gave it
        up?"""
        return self.status == "skipped" and not self.note.startswith(GIVEN_UP)


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """One trial's value of the indicators, for charts and tables of raw figures. ``set_aside``
    names the indicators whose figures are those of quieter trials of the cell."""

    cell: int
    block: int
    attempt: int
    used: bool
    values: dict[str, float]
    set_aside: frozenset[str] = frozenset()

    def counts_in(self, name: str, *, disturbed: bool = False) -> bool:
        """Is it one of the trials whose values are the figure of an indicator? ``disturbed``: or
        set aside because others took CPU time; a reading that came late is of another stretch."""
        if not self.used or name not in self.values:
            return False
        return name not in self.set_aside or (disturbed and "wall_seconds" in self.set_aside)


#: How the detail of a trial over several hosts begins (:mod:`concurve.readings.contamination`).
_OF_HOST = re.compile(r"host ([A-Za-z0-9_-]+): ")


class Reject(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that was not used, or was used with a doubt, and why; of several hosts, the detail
    begins with the one."""

    cell: int
    parameters: dict[str, Level]
    block: int
    attempt: int
    cause: str
    detail: str
    used: bool = False

    @property
    def host(self) -> str:
        """The host of several that it was for; empty if it is not known."""
        found = _OF_HOST.match(self.detail)
        return found[1] if found else ""


def on_hosts(rejects: Iterable[Reject]) -> str:
    """`` on rk1 and rk2``: the hosts for which trials were not used; empty on one machine."""
    hosts = dict.fromkeys(reject.host for reject in rejects if reject.host)
    return f" on {words.listed([*hosts])}" if hosts else ""


class FailureOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The end of what a role had written when it made a trial fail, as lines: of the first trial
    that failed for this ``cause``; none where it wrote nothing. ``stream`` is where it wrote
    them."""

    parameters: dict[str, Level]
    cause: str
    role: str
    stream: Literal["standard error", "standard output"]
    lines: tuple[str, ...]
