"""How long a plan will take, from what earlier runs of the same study took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from concurve import words
from concurve.definition.units import format_duration
from concurve.errors import StoreError
from concurve.planning.plan import Plan, plan_of
from concurve.stats.moments import mean, stdev
from concurve.store import Store
from concurve.store.run_head import decode_head

#: At most this many earlier runs are read, the newest first.
RUNS_LOOKED_AT = 20


class Forecast(NamedTuple):
    """Expected seconds of a block, of the pilot and of the whole run at most, by this earlier
    ``run``. ``spread``: the standard deviation of the trials of the cell that spreads most, as a
    share of their mean; ``None`` where a cell has too few trials to tell."""

    block_seconds: float
    pilot_seconds: float
    longest_seconds: float
    run: str
    spread: float | None = None


#: The standard deviation of fewer trials says nothing of that of others.
_SPREAD_TRIALS_MIN = 3


def forecast(plan: Plan, store: Store) -> Forecast | None:
    """Expected time of a plan, or ``None`` without a comparable earlier run.

    An earlier run counts if its roles and effort are the same and it has trials of every cell that
    did their work: what broke off is no length of a trial.
    """
    for row in reversed(store.runs(plan.study.name)[-RUNS_LOOKED_AT:]):
        try:
            head = decode_head(row)
        except StoreError:
            continue  # of a newer version, or damaged: the plan works without it
        if head.study.roles != plan.study.roles or head.effort != plan.effort:
            continue
        seconds: dict[int, list[float]] = {}
        figures: dict[int, list[float]] = {}
        earlier = {tuple(cell.parameters.items()): cell.index for cell in plan_of(head).cells}
        outcomes = store.trials(row.id).outcomes
        of_each = zip(outcomes.cells, outcomes.values, outcomes.seconds, strict=True)
        for cell, value, took in of_each:
            if value is not None:
                seconds.setdefault(cell, []).append(took)
                figures.setdefault(cell, []).append(value)
        same = [earlier.get(tuple(cell.parameters.items()), -1) for cell in plan.cells]
        trials = [seconds.get(index, []) for index in same]
        if not all(trials):
            continue
        block = sum(map(mean, trials))
        rules = plan.rules
        return Forecast(
            block,
            block * rules.repeats_min,
            min(block * rules.most, rules.time_allowed_seconds),
            row.id,
            _spread([figures.get(index, []) for index in same]),
        )
    return None


def _spread(figures: Sequence[Sequence[float]]) -> float | None:
    """The greatest relative standard deviation of the figures of a cell."""
    if any(len(each) < _SPREAD_TRIALS_MIN for each in figures):
        return None
    middles = [abs(mean(each)) for each in figures]
    if not all(math.isfinite(middle) and middle > 0 for middle in middles):
        return None
    return max(stdev(each) / middle for each, middle in zip(figures, middles, strict=True))


def shortfall(plan: Plan, expected: Forecast | None) -> str:
    """What will not fit in the time allowance, by an earlier run, with the remedy; empty if the
    pilot will, or if no earlier run tells."""
    allowed = plan.rules.time_allowed_seconds
    if expected is None or expected.pilot_seconds <= allowed:
        return ""
    blocks = int(allowed / expected.block_seconds)
    fits = {0: "not even one fits", 1: "1 fits"}.get(blocks, f"{blocks} fit")
    return (
        f"{len(plan.cells)} cells × {plan.rules.repeats_min} trials need about "
        f"{format_duration(expected.pilot_seconds)} (as run {expected.run} took), "
        f"{format_duration(allowed)} are allowed: of {plan.rules.repeats_min} blocks {fits}; "
        f"--max-time {words.option_duration(1 + expected.pilot_seconds * 1.5)} has room for all"
    )


class Bought(NamedTuple):
    """What the time allowance buys: trials of each cell, and what limits them."""

    trials: int
    is_capped: bool


def trials_that_fit(plan: Plan, expected: Forecast) -> Bought:
    """Trials of each cell that fit in the time allowance, by an earlier run, up to the cap."""
    most = plan.rules.repeats_max
    if expected.block_seconds * most <= plan.rules.time_allowed_seconds:
        return Bought(most, True)
    return Bought(int(plan.rules.time_allowed_seconds / expected.block_seconds), False)
