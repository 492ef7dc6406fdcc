"""Samples of plain columns of values, for the tests of what is judged by them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from concurve.analysis.samples import Samples
from concurve.stats.blocks import Blocks
from concurve.terms import Level

Values = Callable[[Mapping[str, Level], str], Sequence[float]]


def column_samples(
    values: Values,
    levels: Callable[[str], Sequence[Level]] = lambda _: [],
    better: str = "lower",
    resolution: float = 0.0,
) -> Samples:
    """Samples whose cells have these values, in blocks by chance (always the same chance): the
    trials of a block have nothing in common."""

    def by_block(cell: Mapping[str, Level], indicator: str) -> Blocks:
        column = list(values(cell, indicator))
        random.Random(repr(sorted(cell.items()))).shuffle(column)
        return dict(enumerate(column))

    return Samples(by_block, levels, lambda _: better, lambda _, __: resolution)
