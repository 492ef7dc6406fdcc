"""Cells of randomised blocks, with what the trials of a block share taken out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from concurve.stats.moments import mean


def without_block_effects(cells: Sequence[Mapping[int, float]]) -> list[list[float]]:
    """The positive values of cells by block → columns of equal length, each value divided by its
    block's geometric mean over the cells and multiplied by that of all blocks.

    In a two-way layout (cell × block on the logarithm) this leaves the effect of the cell and the
    error. Only blocks that all cells with values hold are kept. The error then has a few degrees
    of freedom less than the columns seem to have: one in ``len(cells)``.
    """
    held = [set(cell) for cell in cells if cell]
    blocks = sorted(set.intersection(*held)) if held else []
    logs = [[math.log(cell[block]) for block in blocks] if cell else [] for cell in cells]
    shared = [mean([column[i] for column in logs if column]) for i in range(len(blocks))]
    centre = mean(shared) if shared else 0.0
    return [
        [math.exp(value - effect + centre) for value, effect in zip(column, shared, strict=True)]
        if column
        else []
        for column in logs
    ]
