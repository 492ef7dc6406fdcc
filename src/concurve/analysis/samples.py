"""The values of a run that the tests of claims and of published figures read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.stats.intervals import paired_ratio, ratio_estimate
from concurve.terms import Level


class MissingError(Exception):
    """A cell or an indicator that this run does not have.

    ``cell`` names the cell if one lacks something, and ``reason`` says what is missing; the text of
    the error is both.
    """

    def __init__(self, reason: str, cell: str = "") -> None:
        self.reason = reason
        self.cell = cell
        super().__init__(f"{cell} {reason}" if cell else reason)


class Samples(NamedTuple):
    """Reads the values of a run; raises :class:`MissingError` where there are none.

    ``by_block`` is given if the cells of a block share their random draws; ratios are then
    computed block by block.
    """

    values: Callable[[Mapping[str, Level], str], Sequence[float]]
    levels: Callable[[str], Sequence[Level]]
    better: Callable[[str], str]
    pilot: int | None
    by_block: Callable[[Mapping[str, Level], str], Mapping[int, float]] | None = None

    def ratio(
        self,
        top: Mapping[str, Level],
        bottom: Mapping[str, Level],
        indicator: str,
        confidence: float = 0.95,
    ) -> Estimate | None:
        """``indicator`` in the cell ``top`` over that in ``bottom``; ``None`` where there is none.

        Raises:
            MissingError: a cell or the indicator was not measured.
        """
        columns = self.values(top, indicator), self.values(bottom, indicator)
        if self.by_block is None:
            return ratio_estimate(*columns, confidence, self.pilot)
        above, below = self.by_block(top, indicator), self.by_block(bottom, indicator)
        both = sorted(above.keys() & below.keys())
        pairs = [above[block] for block in both], [below[block] for block in both]
        return paired_ratio(*pairs, confidence, self.pilot)


def by_indicator(chooses: Callable[[str], bool], first: Samples, second: Samples) -> Samples:
    """Samples that read an indicator from ``first`` if ``chooses`` accepts its name, else from
    ``second``."""

    def values(cell: Mapping[str, Level], indicator: str) -> Sequence[float]:
        return (first if chooses(indicator) else second).values(cell, indicator)

    def by_block(cell: Mapping[str, Level], indicator: str) -> Mapping[int, float]:
        found = (first if chooses(indicator) else second).by_block
        assert found is not None
        return found(cell, indicator)

    return first._replace(values=values, by_block=by_block if first.by_block else None)
