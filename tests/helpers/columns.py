"""Samples of plain columns of values, for the tests of what is judged by them."""

from __future__ import annotations

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
    """Samples whose cells have these values, the n-th in block n."""

    def by_block(cell: Mapping[str, Level], indicator: str) -> Blocks:
        return dict(enumerate(values(cell, indicator)))

    return Samples(by_block, levels, lambda _: better, lambda _, __: resolution)
