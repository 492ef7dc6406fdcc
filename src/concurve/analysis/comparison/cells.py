"""Two cells → the ratio of their figures, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from concurve.analysis.comparison.options import Options
from concurve.analysis.comparison.sides import Pair, Side
from concurve.estimate import Estimate
from concurve.findings.comparison import CellComparison, Change
from concurve.stats.comparison import Direction, LogRatio, Method, compared, compared_in_pairs
from concurve.stats.moments import mean
from concurve.stats.welch import growth, log_ratio
from concurve.terms import IndicatorInfo, Level

#: Significance level of the test whether a cell's later trials differ from its earlier ones.
_DRIFT_LEVEL = 0.01

Blocks = dict[int, float]
"""Values of a cell's trials in use, by block, in the order in which they were made."""


class Draft(NamedTuple):
    """A compared cell whose verdict still needs the p-values of all cells."""

    cell: CellComparison
    log: LogRatio | None
    better: str


Columns = tuple[tuple[dict[int, Blocks], ...], ...]


def columns_of(sides: tuple[Side, Side], name: str) -> Columns:
    """Values by side, session, cell and block."""
    return tuple(tuple(run.blocks(name) for run in side.sessions) for side in sides)


def draft_of(
    pair: Pair,
    info: IndicatorInfo,
    sides: tuple[Side, Side],
    columns: Columns,
    options: Options,
) -> Draft:
    """A pair compared by an indicator, still without its verdict."""
    keys = pair.base, pair.new
    blocks = [
        [own.get(cells[key].index, {}) for cells, own in zip(side.cells, mine, strict=True)]
        for side, key, mine in zip(sides, keys, columns, strict=True)
    ]
    figures = [
        side.cells[0][key].indicators.get(info.name) if len(side.sessions) == 1 else None
        for side, key in zip(sides, keys, strict=True)
    ]
    remark = ""
    if sides[0].sessions[0] is sides[1].sessions[0] and all(blocks[0] + blocks[1]):
        blocks, remark = interleaved(blocks, options.method)
    base, new = ([list(session.values()) for session in side] for side in blocks)
    note = _lack(sides, keys, [base, new], info)
    log = None
    if not note:
        log = _log_ratio(sides, new, base, options)
        note = remark if log else _no_interval([base, new], options.method)
    cell = CellComparison(
        parameters=pair.parameters,
        indicator=info.name,
        verdict="undecided",
        ratio=_ratio(new, base, log, options.method),
        base=figures[0],
        new=figures[1],
        note=note,
    )
    return Draft(cell, log, info.better)


def _log_ratio(
    sides: tuple[Side, Side],
    new: Sequence[Sequence[float]],
    base: Sequence[Sequence[float]],
    options: Options,
) -> LogRatio | None:
    pilots = sides[1].sessions[0].run.pilot, sides[0].sessions[0].run.pilot
    if options.method == "pairs":
        return compared_in_pairs(new[0], base[0], pilots[0])
    return compared(new, base, options.method, pilots, options.seed)


def _lack(
    sides: tuple[Side, Side],
    keys: tuple[frozenset[tuple[str, Level]], ...],
    values: Sequence[Sequence[Sequence[float]]],
    info: IndicatorInfo,
) -> str:
    """The reason why a side has no figure; empty if both have one."""
    for side, key, sessions in zip(sides, keys, values, strict=True):
        if not all(sessions):
            index = next(n for n, session in enumerate(sessions) if not session)
            cell, run = side.cells[index][key], side.sessions[index].run.id
            reason = cell.note or cell.absent.get(info.name) or "no trial has it"
            return f"{info.name} is missing in run {run}: {reason}"
    return ""


def _no_interval(values: Sequence[Sequence[Sequence[float]]], method: Method) -> str:
    for sessions in values:
        if len(sessions) == 1 and len(sessions[0]) < 2:
            return "a single trial has no interval"
    if any(mean([mean(session) for session in sessions]) <= 0 for sessions in values):
        return "a mean is not above 0, so there is no ratio"
    if method == "pairs":
        if any(value <= 0 for sessions in values for value in sessions[0]):
            return "a trial's value is not above 0, so it has no ratio (--interval welch)"
        return "fewer than two blocks hold trials of both"
    return (
        "several runs on one side, so two on each are needed" if method == "welch" else "no ratio"
    )


def _ratio(
    new: Sequence[Sequence[float]],
    base: Sequence[Sequence[float]],
    log: LogRatio | None,
    method: Method,
) -> Estimate | None:
    """The ratio with its 95 % interval, or without one if there are too few trials. In pairs
    it is the geometric mean of the blocks' ratios, else the ratio of the means."""
    if not all(new) or not all(base):
        return None
    top, bottom = (mean([mean(session) for session in sessions]) for sessions in (new, base))
    if top <= 0 or bottom <= 0:
        return None
    n = min(sum(map(len, sessions)) for sessions in (new, base))
    if log is None:
        return Estimate(value=top / bottom, n=n, unit="×")
    low, high = (math.exp(log.value) * growth(bound - log.value) for bound in log.interval())
    value = math.exp(log.value) if method == "pairs" else top / bottom
    return Estimate(value=value, low=low, high=high, n=n, unit="×")


def verdict_of(direction: Direction, better: str) -> Change:
    """The verdict for a significant change: an increase is slower where lower is better."""
    if direction in ("same", "undecided"):
        return direction
    return "faster" if (direction == "higher") == (better == "higher") else "slower"


def interleaved(
    blocks: Sequence[Sequence[Blocks]], method: Method
) -> tuple[list[list[Blocks]], str]:
    """Trials of two cells of one run that may be held against each other, and a remark.

    A cell that has reached its precision gets no further trials, while the other one does. If the
    later trials of the other cell differ from its earlier ones, the machine has changed, and only
    the blocks that hold both cells count. In pairs only these blocks count in any case.
    """
    (first,), (second,) = blocks
    both = sorted(first.keys() & second.keys())
    if method != "pairs" and not any(_drifted(cell, both) for cell in (first, second)):
        return [[first], [second]], ""
    common = [[{block: cell[block] for block in both}] for cell in (first, second)]
    if method == "pairs":
        return common, ""
    return common, (
        f"the machine changed while only one of them was measured; the {len(both)} blocks "
        "that hold both count"
    )


def _drifted(cell: Blocks, both: Sequence[int]) -> bool:
    """Do a cell's trials outside the common blocks differ from those inside?"""
    inside = [cell[block] for block in both]
    outside = [value for block, value in cell.items() if block not in set(both)]
    if min(len(inside), len(outside)) < 2:
        return False
    change = log_ratio(outside, inside)
    return change is not None and min(change.p_above(), change.p_below()) < _DRIFT_LEVEL / 2
