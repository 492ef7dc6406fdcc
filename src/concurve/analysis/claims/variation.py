"""How far the figures of some cells lie apart, for the tests of claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from concurve.analysis.samples import Samples
from concurve.definition.claim_kinds import Cell
from concurve.estimate import Estimate
from concurve.stats.blocks import range_of

#: Why there is no variation.
NO_VARIATION = "fewer than two blocks hold every level with a value above 0"


class Variation(NamedTuple):
    """The greatest centre over the least one: the indices of both cells, their ratio, the spread of
    its logarithms, and by which share a ratio may be off."""

    greatest: int
    least: int
    ratio: Estimate
    spread: float
    resolution: float

    @property
    def share(self) -> Estimate:
        """The greatest less the least, over the least."""
        low, high = self.ratio.low, self.ratio.high
        assert low is not None
        assert high is not None
        return msgspec.structs.replace(
            self.ratio, value=self.ratio.value - 1, low=low - 1, high=high - 1
        )


def variation(
    cells: Sequence[Cell], indicator: str, samples: Samples, confidence: float
) -> Variation | None:
    """How the figures vary over some cells (:func:`~concurve.stats.blocks.range_of`); ``None``
    where fewer than two blocks hold every cell, or a value is not above 0.

    Raises:
        MissingError: a cell or the indicator was not measured.
    """
    columns = [samples.by_block(cell, indicator) for cell in cells]
    off = max(
        samples.ratio_resolution(cell, other, indicator)
        for place, cell in enumerate(cells)
        for other in cells[:place]
    )
    found = range_of(columns, confidence, samples.is_staged, off)
    if found is None:
        return None
    return Variation(found.greatest, found.least, found.ratio, found.spread, off)
