"""How good a setting with one worker could have been whose trials were disturbed: with all that
others took given back. :mod:`concurve.readings.giving_back` says why that is a bound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from concurve.analysis.ground import EACH, RATE, WALL
from concurve.analysis.records import StoredRecord, read_records
from concurve.definition.study import Study
from concurve.definition.templates import placeholders
from concurve.definition.units import is_rate
from concurve.errors import StoreError
from concurve.planning.plan import Cell, Plan
from concurve.readings.giving_back import undisturbed_share
from concurve.stats.blocks import Blocks
from concurve.store import Store
from concurve.store.rows import TrialKey
from concurve.terms import IndicatorInfo

#: What disturbed a trial may have cost beside the time that it took, such as cold caches: what it
#: may favour one of two programs by, too (decision 75).
MARGIN = 1.25

#: Of so many trials the records are read at most: a view waits for them.
RECORDS_MAX = 1_000

#: Figures that are in proportion to the time of a trial.
_TIMES = (WALL, "run_seconds", EACH)

Shares = Callable[[Collection[TrialKey]], Mapping[TrialKey, float]]
"""Gives the undisturbed shares of some trials, as far as they are known."""


class Bounds(NamedTuple):
    """The values of each cell with what was taken given back, without and with the margin; and the
    ``cells`` that this bounds, by their indices."""

    given_back: Sequence[Blocks]
    at_best: Sequence[Blocks]
    cells: frozenset[int]


class _Shares:
    """Reads the undisturbed shares of some trials."""

    def __init__(self, target: str, keys: Collection[TrialKey]) -> None:
        self._target = target
        self._keys = set(keys)
        self._left = {cell: sum(key.cell == cell for key in keys) for cell in self.cells()}
        self.found: dict[TrialKey, float] = {}

    def cells(self) -> Collection[int]:
        """The cells of these trials."""
        return {key.cell for key in self._keys}

    def wants(self, key: TrialKey) -> bool:
        """Is it one of these trials?"""
        return key in self._keys

    def take(self, stored: StoredRecord) -> None:
        """Keep its share. A damaged record bounds nothing."""
        self._left[stored.key.cell] -= 1
        try:
            share = undisturbed_share(stored.record, self._target)
        except StoreError:
            return
        if share is not None:
            self.found[stored.key] = share

    def has_all(self, cell: int) -> bool:
        """Were all of this cell read?"""
        return self._left.get(cell, 0) <= 0


def shares_of(
    store: Store, run: str, study: Study, keys: Collection[TrialKey]
) -> Mapping[TrialKey, float]:
    """The undisturbed shares of some trials of a run, from their records."""
    if len(keys) > RECORDS_MAX:
        return {}
    reader = _Shares(study.target, keys)
    read_records(store, run, (reader,))
    return reader.found


def bounds_of(
    plan: Plan,
    columns: Sequence[Blocks],
    doubtful: Collection[TrialKey],
    indicator: IndicatorInfo,
    shares: Shares,
) -> Bounds | None:
    """The values of the cells, those of the doubtful trials with one worker at their bounds;
    ``None`` where the figure is neither a time nor a rate of a whole trial, or nothing is bounded.
    A trial that was disturbed all the time has no bound, nor has its cell."""
    is_time = indicator.name in _TIMES
    is_of_trial = is_time or indicator.name == RATE or _is_rate(indicator)
    if not is_of_trial or plan.study.simulation or plan.inventory is not None:
        return None
    alone = {cell.index for cell in plan.cells if columns[cell.index] and _is_alone(plan, cell)}
    wanted = [key for key in doubtful if key.cell in alone and key.block in columns[key.cell]]
    if not wanted:
        return None
    found = shares(wanted)
    unknown = {key.cell for key in wanted if not found.get(key)}
    given_back, at_best = [dict(column) for column in columns], [dict(it) for it in columns]
    for key in wanted:
        if key.cell not in unknown:
            value, share = columns[key.cell][key.block], found[key]
            given_back[key.cell][key.block] = value * share if is_time else value / share
            best = share / MARGIN
            at_best[key.cell][key.block] = value * best if is_time else value / best
    cells = frozenset(key.cell for key in wanted) - unknown
    return Bounds(given_back, at_best, cells) if cells else None


def _is_rate(indicator: IndicatorInfo) -> bool:
    return indicator.better == "higher" and is_rate(indicator.name, indicator.unit)


def _is_alone(plan: Plan, cell: Cell) -> bool:
    """Has the cell one worker? Not where the level is a number of CPUs, which threads may share."""
    if plan.work is None or cell.parameters[plan.work] != 1:
        return False
    bound = (role.controls.cpus or "" for role in plan.study.roles)
    return not any(plan.work in placeholders(text) for text in bound)
