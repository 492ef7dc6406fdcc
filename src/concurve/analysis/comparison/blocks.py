"""Trials of two cells of one run that may be held against each other."""

from __future__ import annotations

from collections.abc import Sequence

from concurve.stats.comparison import Method
from concurve.stats.welch import log_ratio

#: A cell's later trials differ from its earlier ones at this level: once in a hundred by chance.
_DRIFT_LEVEL = 0.01

Blocks = dict[int, float]
"""Values of a cell's trials in use, by block, in the order in which they were made."""


def interleaved(
    blocks: Sequence[Sequence[Blocks]], method: Method
) -> tuple[list[list[Blocks]], str]:
    """Trials of two cells of one run that may be held against each other, and a remark.

    A cell that has its precision gets no further trials, the other goes on. Where the latter's
    own trials then differ from those before, the machine was no longer the same, and only the
    blocks that hold both count; in pairs it is always so.
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
