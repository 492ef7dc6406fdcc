"""Which settings cannot be distinguished from the best, and which of them to use."""

from __future__ import annotations

import msgspec

from concurve.estimate import Estimate
from concurve.terms import Level

#: What fewer undisturbed trials of a setting point to is not told.
UNDISTURBED_TOLD_MIN = 3


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """Trials that nothing disturbed point to another setting than all trials do: ``quiet`` has the
    best figure by the former, ``every`` is what the latter point to. ``trials``: so many of the
    former each of the two settings has at least. ``are_enough``: there are enough of them in each
    setting that is compared, so they are gone by."""

    quiet: dict[str, Level]
    every: dict[str, Level]
    trials: int
    are_enough: bool = False

    @property
    def is_told(self) -> bool:
        """Are there so many undisturbed trials that a reader is told what they point to?"""
        return self.are_enough or self.trials >= UNDISTURBED_TOLD_MIN


class UndisturbedRange(msgspec.Struct, frozen=True, kw_only=True):
    """Between which values, in ``unit``, the ``trials`` of a setting lie that nothing disturbed:
    all of them, so it is no interval."""

    setting: dict[str, Level]
    low: float
    high: float
    unit: str
    trials: int


class GivenBack(msgspec.Struct, frozen=True, kw_only=True):
    """What a finding stands on although these ``settings`` with one worker were disturbed in so
    many of their ``trials``: it is the same with all that was taken from them given back. The
    setting to use is then ``at_least`` so many times as good as each of them; ``None`` where it is
    the only one of them, and better than the others as it was measured."""

    settings: tuple[dict[str, Level], ...]
    disturbed: int
    trials: int
    at_least: float | None = None


class Undisturbed(msgspec.Struct, frozen=True, kw_only=True):
    """What is found among the settings that are not in doubt, where others are: ``best`` compares
    the former alone, and names one or a few of them. ``doubted`` are the latter, which may be
    better all the same; ``seem_worse``: all trials have each of them behind. ``may_be_as_good``
    holds those that all trials do not tell from the best one, where this one has the best figure by
    all trials, too, and each of them is a greater setting; else it is empty. ``next_best`` is the
    setting that follows a single best one, and ``to_next`` says how many times as good the best is;
    its interval holds against each of the others."""

    doubted: tuple[dict[str, Level], ...]
    best: BestFinding
    seem_worse: bool
    may_be_as_good: tuple[dict[str, Level], ...] = ()
    next_best: dict[str, Level] | None = None
    to_next: Estimate | None = None

    @property
    def is_to_use(self) -> bool:
        """Is the best one to be used, of those that are not in doubt?"""
        return self.seem_worse or bool(self.may_be_as_good)


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run recommends no setting, whatever its trials say. ``figures``: those of the
    ``indicators`` compare no settings. ``hosts``: they are not alike. ``unset``: the levels of
    these ``factors`` were probably not set. What is not so is empty."""

    indicators: tuple[str, ...] = ()
    figures: str = ""
    hosts: str = ""
    factors: tuple[str, ...] = ()
    unset: str = ""

    def why(self, factor: str, indicator: str) -> str:
        """Why no level of a factor is recommended by an indicator; empty without a reason."""
        if factor in self.factors:
            return self.unset
        return self.hosts or (self.figures if indicator in self.indicators else "")


class UsedUp(msgspec.Struct, frozen=True, kw_only=True):
    """The ``cpus`` that the ``roles`` of a setting, by their names, were granted together, and use
    up."""

    cpus: float
    roles: tuple[str, ...]


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """A new run of the same study that would decide: so many ``trials`` of each setting, by these
    ``options`` of ``concurve run run:ID``."""

    trials: int
    options: str


class BestFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Which settings cannot be distinguished from the best by an indicator, among the cells of a
    group, and which of them to use.

    ``group`` has the levels that these cells share (empty: all cells of the run), ``factors``
    those that vary among them. ``settings`` holds levels of the latter, as do ``leader``, the one
    with the best centre, and ``recommended``: the smallest that is shown to be as good as the best,
    ``None`` where ``doubt`` says why there is none. ``passed`` are smaller ones that may be as good
    as it, though the figures have them behind, and ``to_passed`` says how many times as good it is
    as they are; its interval holds for all of them. ``as_good`` are the others not told from it;
    without a recommended one, from the leader. ``behind`` are those that are told from the leader:
    they are worse. ``decide`` says what would decide, ``trials``
    how many of each setting it takes, and ``new_run`` with which options; ``None`` where that takes
    longer than anybody would wait.

    ``is_open``: the trials do not decide which one to use. ``first`` is then the smallest of
    ``settings``, where these are few and all others are worse: one of them is to be used all the
    same. It is there beside a greater recommended one, too. ``to_first`` says how many times as
    good the others of them are as it; its interval holds for all of them. ``used_up``: the CPUs
    that it uses up, where the others have no more of them;
    if it seems about as good, no greater one is recommended then.
    ``first_is_alike``: it is the smallest number of the work factor, and seems no more than 5 %
    behind the others.
    ``is_tentative``: the machine was not quiet, and what the figures would say is worth a mention;
    it is not where they do not compare settings. ``disagreement``: some of the trials say something
    else than all of them. ``given_back``: it is found although settings with one worker were
    disturbed. ``undisturbed``: nothing is recommended, since some settings are in doubt; this is
    found among the others. ``ranges``: those of the undisturbed trials of each setting that has
    several, where nothing is recommended because the others were disturbed.
    """

    indicator: str
    label: str
    group: dict[str, Level]
    factors: tuple[str, ...]
    settings: tuple[dict[str, Level], ...]
    leader: dict[str, Level]
    compared: int
    recommended: dict[str, Level] | None = None
    passed: tuple[dict[str, Level], ...] = ()
    to_passed: Estimate | None = None
    as_good: tuple[dict[str, Level], ...] = ()
    behind: tuple[dict[str, Level], ...] = ()
    decide: str = ""
    trials: int | None = None
    new_run: NewRun | None = None
    doubt: str = ""
    is_open: bool = False
    first: dict[str, Level] | None = None
    to_first: Estimate | None = None
    first_is_alike: bool = False
    used_up: UsedUp | None = None
    is_tentative: bool = False
    disagreement: Disagreement | None = None
    given_back: GivenBack | None = None
    undisturbed: Undisturbed | None = None
    ranges: tuple[UndisturbedRange, ...] = ()

    @property
    def named(self) -> dict[str, Level]:
        """The setting that a reader is told of: the recommended one, else the first of a few of
        which one is to be used, else the leader."""
        if self.recommended is not None:
            return self.recommended
        return self.leader if self.first is None else self.first

    @property
    def use(self) -> dict[str, Level] | None:
        """The one setting to use, which every view names: the recommended one, else the smallest of
        a few that are not told apart, if it seems about as good; ``None`` where there is none."""
        if self.recommended is not None:
            return self.recommended
        return self.first if self.first_is_alike else None

    @property
    def not_told_from(self) -> tuple[dict[str, Level], ...]:
        """The other settings that the trials do not tell from the best; empty where none is to be
        used."""
        if self.use is None:
            return ()
        return tuple(setting for setting in self.settings if setting != self.use)

    @property
    def pointed(self) -> dict[str, Level]:
        """The setting that the trials point to: the recommended one, else the leader."""
        return self.leader if self.recommended is None else self.recommended
